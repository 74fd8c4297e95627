//===- KernelLanes.cpp - Bodies on several elements at once ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLanes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::codegen {

void expandIndices(OpBuilder &b, linalg::GenericOp op) {
  OpBuilder::InsertionGuard guard(b);
  for (auto apply : llvm::make_early_inc_range(op.getBody()->getOps<affine::AffineApplyOp>())) {
    b.setInsertionPoint(apply);
    apply.getResult().replaceAllUsesWith(
        affine::expandAffineMap(b, apply.getLoc(), apply.getAffineMap(), apply.getMapOperands())
            ->front());
    apply.erase();
  }
}

bool hasLaneForm(linalg::GenericOp op, std::string &reason) {
  for (Operation &inner : op.getBody()->without_terminator()) {
    bool known = isa<linalg::IndexOp, memref::LoadOp>(inner) ||
                 (OpTrait::hasElementwiseMappableTraits(&inner) && inner.getNumResults() == 1) ||
                 isa<arith::ConstantOp>(inner);
    if (inner.getNumRegions() || !known) {
      reason = ("no vector form of '" + inner.getName().getStringRef() + "'").str();
      return false;
    }
  }
  return true;
}

Value widen(OpBuilder &b, Location loc, Value value, int64_t width) {
  if (width == 0 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, loc, VectorType::get(width, value.getType()), value);
}

/// The op on vectors, once per lane, with the results assembled. For loads at computed indices.
static Value perLane(OpBuilder &b, Operation &op, IRMapping &mapping, int64_t width) {
  Location loc = op.getLoc();
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < width; ++lane) {
    IRMapping scalars;
    for (Value operand : op.getOperands()) {
      Value mapped = mapping.lookupOrDefault(operand);
      if (isa<VectorType>(mapped.getType()))
        mapped = vector::ExtractOp::create(b, loc, mapped, lane);
      scalars.map(operand, mapped);
    }
    lanes.push_back(b.clone(op, scalars)->getResult(0));
  }
  return vector::FromElementsOp::create(b, loc, VectorType::get(width, lanes[0].getType()), lanes);
}

/// The first of lanes that count up by one, as `indexOf` of the emitter makes them; null for
/// others.
static Value firstOfSteps(Value lanes) {
  auto add = lanes.getDefiningOp<arith::AddIOp>();
  if (!add || !add.getRhs().getDefiningOp<vector::StepOp>())
    return {};
  auto first = add.getLhs().getDefiningOp<vector::BroadcastOp>();
  return first && first.getSourceType().isIndex() ? first.getSource() : Value();
}

/// A load of adjacent lanes; null if they may not be adjacent.
static Value loadRun(OpBuilder &b, memref::LoadOp op, IRMapping &mapping, int64_t width) {
  MemRefType type = op.getMemRefType();
  Type element = type.getElementType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (op.getIndices().empty() || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() < 8 ||
      failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return {};
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(mapping.lookupOrDefault(index));
  Value first = firstOfSteps(indices.back());
  if (!first || llvm::any_of(ArrayRef(indices).drop_back(),
                             [](Value index) { return isa<VectorType>(index.getType()); }))
    return {};
  indices.back() = first;
  return vector::LoadOp::create(b, op.getLoc(), VectorType::get(width, element),
                                mapping.lookupOrDefault(op.getMemref()), indices);
}

Value cloneInLanes(OpBuilder &b, Operation &op, IRMapping &mapping, int64_t width) {
  Location loc = op.getLoc();
  bool vectors = llvm::any_of(op.getOperands(), [&](Value operand) {
    return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
  });
  // Values equal in all lanes stay scalar.
  if (!vectors)
    return b.clone(op, mapping)->getResult(0);
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    if (Value run = loadRun(b, load, mapping, width))
      return run;
    return perLane(b, op, mapping, width);
  }
  OperationState state(loc, op.getName());
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    Value mapped = mapping.lookupOrDefault(operand);
    // A scalar condition may select vectors.
    bool condition = isa<arith::SelectOp>(op) && i == 0;
    state.operands.push_back(condition ? mapped : widen(b, loc, mapped, width));
  }
  state.addTypes(VectorType::get(width, op.getResult(0).getType()));
  state.addAttributes(op.getDiscardableAttrDictionary().getValue());
  Operation *clone = b.create(state);
  clone->copyProperties(op.getPropertiesStorage());
  return clone->getResult(0);
}

} // namespace tessera::codegen
