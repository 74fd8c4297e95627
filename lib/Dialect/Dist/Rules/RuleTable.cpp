//===- RuleTable.cpp - Sharding rules shared by structure ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/RuleTable.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

const ShardingRule &RuleTable::keep(ShardingRule rule) {
  rules.push_back(std::move(rule));
  return rules.back();
}

const ShardingRule &RuleTable::identity(RankedTensorType type) {
  const ShardingRule *&rule = known[{type.getAsOpaquePointer()}];
  if (!rule)
    rule = &keep(identityRule(shapeOf(type)));
  return *rule;
}

/// Whether each iteration writes an element of its own in every result: nothing is reduced.
static bool isInjective(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops() &&
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isPermutation();
         });
}

/// Adds what `getLinalgRule` reads: maps, iterators, and of the body how its results combine and
/// whether it only moves. Element types are those of the operands.
static void addLinalg(linalg::LinalgOp op, SmallVectorImpl<const void *> &key) {
  const void *yes = op->getName().getAsOpaquePointer();
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    key.push_back(generic.getIteratorTypes().getAsOpaquePointer());
  key.push_back(op.getIndexingMaps().getAsOpaquePointer());
  // Bodies lie apart from their ops: they are read where it matters.
  if (!isInjective(op))
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      Operation *combiner = matchCombiner(op, i);
      key.push_back(combiner ? combiner->getName().getAsOpaquePointer() : nullptr);
    }
  if (op.getNumDpsInputs() == 1)
    key.push_back(yieldsFirstInput(op) ? yes : nullptr);
}

bool RuleTable::keyOf(Operation *op, AddressKey &key) {
  key.push_back(op->getName().getAsOpaquePointer());
  for (Type type : op->getOperandTypes())
    key.push_back(type.getAsOpaquePointer());
  for (Type type : op->getResultTypes())
    key.push_back(type.getAsOpaquePointer());
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    addLinalg(linalgOp, key);
    return true;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    bool splat = isa<SplatElementsAttr>(constant.getValue());
    key.push_back(splat ? op->getName().getAsOpaquePointer() : nullptr);
    return true;
  }
  if (isa<tensor::EmptyOp, tensor::SplatOp, tensor::ExtractOp, tensor::InsertOp,
          tensor::FromElementsOp>(op))
    return true;
  if (isa<tensor::ConcatOp, tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::GatherOp>(op)) {
    for (StringRef name : {"dim", "gather_dims", "static_offsets", "static_sizes", "static_strides"})
      key.push_back(op->getAttr(name).getAsOpaquePointer());
    return true;
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    key.push_back(op->getAttr("static_low").getAsOpaquePointer());
    key.push_back(op->getAttr("static_high").getAsOpaquePointer());
    key.push_back(pad.getConstantPaddingValue() ? op->getName().getAsOpaquePointer() : nullptr);
    return true;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    key.push_back(op->getAttr("reassociation").getAsOpaquePointer());
    return true;
  }
  return false;
}

const ShardingRule *RuleTable::lookup(Operation *op, std::string *why) {
  AddressKey key;
  bool shared = keyOf(op, key);
  if (shared)
    if (auto it = known.find(key); it != known.end())
      return it->second;
  std::optional<ShardingRule> rule = getShardingRule(op, why);
  if (!rule)
    return nullptr;
  const ShardingRule &kept = keep(std::move(*rule));
  if (shared)
    known.emplace(std::move(key), &kept);
  return &kept;
}

const ShardingRule &RuleTable::lookupOrWhole(Operation *op) {
  if (const ShardingRule *rule = lookup(op))
    return *rule;
  AddressKey key{nullptr};
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())}) {
    for (Type type : types)
      key.push_back(type.getAsOpaquePointer());
    key.push_back(nullptr);
  }
  const ShardingRule *&rule = known[std::move(key)];
  if (!rule)
    rule = &keep(replicatedRule(op));
  return *rule;
}
