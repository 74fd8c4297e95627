//===- DistReverse.cpp - The reverse of annotations and marks -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "Reverse.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// The sharding of the cotangent of a value with `sharding`: the same, except that the cotangent of
/// a partial sum is replicated.
static ShardingAttr cotangentSharding(ShardingAttr sharding, Operation *op, Type type) {
  MeshTable meshes(op->getParentOfType<ModuleOp>());
  sharding::TensorSharding cotangent = resolveVerified(sharding, meshes, type);
  cotangent.partial.clear();
  return ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()), cotangent,
                           op->getContext(), sharding.getPriority());
}

/// The annotation of a value, through ops that do not move it to another mesh; null if there is
/// none.
static ShardingAttr annotationOf(Value value) {
  while (value) {
    if (ShardingAttr sharding = getSharding(value))
      return sharding;
    Operation *op = value.getDefiningOp();
    if (auto constraint = dyn_cast_or_null<ShardTensorOp>(op))
      return constraint.getSharding();
    if (auto reshard = dyn_cast_or_null<ReshardOp>(op))
      return reshard.getSharding();
    return {};
  }
  return {};
}

/// The mesh on which a value is computed: that of the first annotation among its operands.
static FlatSymbolRefAttr meshOf(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (ShardingAttr sharding = annotationOf(seen[i]))
      return sharding.getMesh();
    if (Operation *op = seen[i].getDefiningOp()) {
      SmallVector<Value> read = valuesRead(op);
      seen.insert(read.begin(), read.end());
    }
  }
  return {};
}

Value dist::onMeshOf(OpBuilder &b, Value value, Value other) {
  auto module = value.getParentRegion()->getParentOfType<ModuleOp>();
  MeshTable meshes(module);
  if (meshes.size() < 2)
    return value;
  FlatSymbolRefAttr from = meshOf(value), to = meshOf(other);
  if (!from || !to || from == to)
    return value;
  auto open = sharding::TensorSharding::allOpen(meshes.get(to),
                                                cast<RankedTensorType>(value.getType()).getRank());
  return ReshardOp::create(b, value.getLoc(), value.getType(), value,
                           ShardingAttr::get(to, meshes.get(to), open, b.getContext()));
}

static LogicalResult reverseReshard(Reverse &reverse, ReshardOp op, Value cotangent) {
  OpBuilder &b = reverse.b;
  Value from = op.getOperand();
  ShardingAttr target = op.getSharding();
  FlatSymbolRefAttr mesh = meshOf(from);
  Value result;
  if (!mesh || mesh == target.getMesh()) {
    // On one mesh: the cotangent has the sharding of the operand.
    result = ShardTensorOp::create(b, op.getLoc(), cotangent.getType(), cotangent,
                                   cotangentSharding(target, op, op.getType()));
  } else {
    MeshTable meshes(op->getParentOfType<ModuleOp>());
    ShardingAttr placement = annotationOf(from);
    if (placement) {
      placement = cotangentSharding(placement, op, op.getType());
    } else {
      auto open = sharding::TensorSharding::allOpen(meshes.get(mesh),
                                                    cast<RankedTensorType>(op.getType()).getRank());
      placement = ShardingAttr::get(mesh, meshes.get(mesh), open, op.getContext());
    }
    Value there = ShardTensorOp::create(b, op.getLoc(), cotangent.getType(), cotangent,
                                        cotangentSharding(target, op, op.getType()));
    result = ReshardOp::create(b, op.getLoc(), there.getType(), there, placement);
  }
  reverse.add(from, result);
  return success();
}

/// Recomputes the region here, and reverses the copy.
static LogicalResult reverseCheckpoint(Reverse &reverse, CheckpointOp op,
                                       ArrayRef<Value> cotangents) {
  OpBuilder &b = reverse.b;
  IRMapping copies;
  for (Operation &inner : op.getBody().front().without_terminator())
    b.clone(inner, copies);
  reverse.activity.copy(op, copies);
  Operation *yield = op.getBody().front().getTerminator();
  for (auto [yielded, cotangent] : llvm::zip_equal(yield->getOperands(), cotangents))
    reverse.add(copies.lookupOrDefault(yielded), cotangent);
  SmallVector<Operation *> again;
  for (Operation &inner : op.getBody().front().without_terminator())
    again.push_back(copies.lookup(&inner));
  return reverse.sweep(again);
}

static LogicalResult reverseCall(Reverse &reverse, func::CallOp call, ArrayRef<Value> cotangents) {
  auto name = call->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kCustomVjp);
  if (!name) // others have been inlined
    return noDerivative(call, "it is called from where calls are not inlined");
  SmallVector<Value> arguments(call.getOperands());
  SmallVector<Type> types;
  llvm::append_range(arguments, call.getResults());
  for (auto [result, cotangent] : llvm::zip_equal(call.getResults(), cotangents))
    if (isDifferentiable(result.getType()))
      arguments.push_back(cotangent ? cotangent
                                    : zeros(reverse.b, call.getLoc(), result.getType()));
  SmallVector<Value> differentiable = llvm::filter_to_vector(
      call.getOperands(), [](Value value) { return isDifferentiable(value.getType()); });
  for (Value value : differentiable)
    types.push_back(value.getType());
  auto back = func::CallOp::create(reverse.b, call.getLoc(), name, types, arguments);
  for (auto [value, result] : llvm::zip_equal(differentiable, back.getResults()))
    reverse.add(value, result);
  return success();
}

LogicalResult dist::reverseDist(Reverse &reverse, Operation *op, ArrayRef<Value> cotangents) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ShardTensorOp op) {
        reverse.add(op.getOperand(),
                    ShardTensorOp::create(reverse.b, op.getLoc(), op.getType(), cotangents[0],
                                          cotangentSharding(op.getSharding(), op, op.getType())));
        return success();
      })
      .Case([&](ReshardOp op) { return reverseReshard(reverse, op, cotangents[0]); })
      .Case([&](CheckpointOp op) { return reverseCheckpoint(reverse, op, cotangents); })
      .Case([&](func::CallOp op) { return reverseCall(reverse, op, cotangents); })
      .Case([](StopGradientOp) { return success(); })
      .Default([](Operation *op) {
        return noDerivative(op, "it belongs to the local view; programs are differentiated before "
                                "they are partitioned");
      });
}
