//===- PartitionScalars.cpp - Which part computes which scalar -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

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

/// Starts from every scalar being there and takes away what is not until nothing changes: a loop's
/// carry is there while its init and what the body yields are.
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
  /// What one source lacks its target lacks.
  void passOn(ValueRange sources, ValueRange targets) {
    for (auto [source, target] : llvm::zip(sources, targets))
      if (lacks(source))
        remove(target);
  }

  void visit(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }

  void visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (lacksAny({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})) {
        llvm::for_each(loop.getBody()->getArguments(), [&](Value v) { remove(v); });
      }
      passOn(loop.getInitArgs(), loop.getRegionIterArgs());
      visit(*loop.getBody());
      passOn(loop.getYieldedValues(), loop.getRegionIterArgs());
      return passOn(loop.getRegionIterArgs(), loop.getResults());
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      passOn(loop.getInits(), loop.getBeforeArguments());
      visit(*loop.getBeforeBody());
      auto condition = loop.getConditionOp();
      bool none = lacks(condition.getCondition());
      for (ValueRange values :
           {ValueRange(loop.getBeforeArguments()), ValueRange(loop.getResults()),
            ValueRange(loop.getAfterArguments())})
        if (none)
          llvm::for_each(values, [&](Value v) { remove(v); });
      passOn(condition.getArgs(), loop.getAfterArguments());
      passOn(condition.getArgs(), loop.getResults());
      visit(*loop.getAfterBody());
      return passOn(loop.getYieldOp()->getOperands(), loop.getBeforeArguments());
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (lacks(branch.getCondition()))
        llvm::for_each(branch.getResults(), [&](Value v) { remove(v); });
      for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
        if (!region->empty()) {
          visit(region->front());
          passOn(region->front().getTerminator()->getOperands(), branch.getResults());
        }
      return;
    }
    if (isElsewhere(op) || lacksAny(op->getOperands()))
      llvm::for_each(op->getResults(), [&](Value v) { remove(v); });
  }

  Part &part;
  llvm::function_ref<bool(Operation *)> isElsewhere;
  bool changed = true;
};

} // namespace

void Partitioner::findMissing(Part &part) {
  // An op on tensors is computed where they lie; an op on scalars wherever its operands are.
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
