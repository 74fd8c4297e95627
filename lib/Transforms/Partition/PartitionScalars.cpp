//===- PartitionScalars.cpp - Parts that compute each scalar --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "tessera/Dialect/Dist/IR/ValueFlow.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

bool Partitioner::has(Part &part, Value value) {
  if (isTensor(value))
    return &partOf(getSharding(value).getMesh()) == &part;
  return !part.missing.contains(value);
}

Part *Partitioner::returnedBy(func::ReturnOp op, unsigned index) {
  for (auto &part : parts)
    if (has(*part, op.getOperand(index)))
      return part.get();
  return nullptr;
}

namespace {

/// Starts with every scalar as available and removes those that are not to a fixpoint: a loop carry
/// is available if its init and the yielded value are.
class MissingScalars {
public:
  MissingScalars(Part &part, llvm::function_ref<bool(Operation *)> isElsewhere)
      : part(part), isElsewhere(isElsewhere) {}

  void run(Block &block) {
    while (std::exchange(changed, false))
      visit(block);
  }

private:
  bool lacks(Value value) { return part.missing.contains(value); }
  bool lacksAny(ValueRange values) {
    return llvm::any_of(values, [&](Value v) { return lacks(v); });
  }
  void remove(Value value) {
    if (!isTensor(value))
      changed |= part.missing.insert(value).second;
  }
  void visit(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }

  void visit(Operation *op) {
    if (auto controlFlow = dyn_cast<RegionBranchOpInterface>(op))
      return visit(controlFlow);
    if (isElsewhere(op) || lacksAny(op->getOperands()))
      llvm::for_each(op->getResults(), [&](Value v) { remove(v); });
  }

  /// A value is missing if one of its sources is. Without its condition or bounds, all values of a
  /// loop or branch are missing.
  void visit(RegionBranchOpInterface op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        visit(block);
    llvm::DenseSet<OpOperand *> handed; // looked up only
    forEachForwardedUse(op, [&](OpOperand &use, Value receiver) {
      handed.insert(&use);
      if (lacks(use.get()))
        remove(receiver);
    });
    bool isSteered = true;
    auto check = [&](Operation *reader) {
      for (OpOperand &use : reader->getOpOperands())
        isSteered = isSteered && (handed.contains(&use) || !lacks(use.get()));
    };
    check(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        check(block.getTerminator());
    if (isSteered)
      return;
    llvm::for_each(op->getResults(), [&](Value v) { remove(v); });
    for (Region &region : op->getRegions())
      llvm::for_each(region.getArguments(), [&](Value v) { remove(v); });
  }

  Part &part;
  llvm::function_ref<bool(Operation *)> isElsewhere;
  bool changed = true;
};

} // namespace

void Partitioner::findMissing(Part &part) {
  // An op on tensors is computed on their mesh; an op on scalars wherever its operands are
  // available.
  auto isElsewhere = [&](Operation *op) {
    SmallVector<Value> values(op->getResults());
    llvm::append_range(values, op->getOperands());
    for (Value value : values)
      if (isTensor(value) && getSharding(value))
        return !has(part, value);
    return false;
  };
  MissingScalars(part, isElsewhere).run(global.getBody().front());
}
