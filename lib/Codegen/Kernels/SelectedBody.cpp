//===- SelectedBody.cpp - The iteration that a selection selects ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Kernels/SelectedBody.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {

Value SelectedBody::write(OpBuilder &b, SmallVectorImpl<Value> &loops, IRMapping known) {
  Block &body = *op.getBody();
  writeIterations(b, loops, known);
  for (OpOperand *input : op.getDpsInputOperands())
    if (BlockArgument argument = op.getMatchingBlockArgument(input); !known.contains(argument))
      known.map(argument, elementOf(b, *input, loops));
  for (Operation &inner : body.without_terminator())
    if (!known.contains(&inner))
      copy(b, &inner, loops, known);
  return known.lookupOrDefault(body.getTerminator()->getOperand(0));
}

void SelectedBody::writeIterations(OpBuilder &b, SmallVectorImpl<Value> &loops, IRMapping &known) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (const dist::SelectedLoop &each : selected) {
    Value at = asIndex(b, computed(b, each.index, loops, known));
    for (Value offset : each.offsets)
      at = arith::SubIOp::create(b, op.getLoc(), at, asIndex(b, computed(b, offset, loops, known)));
    loops[each.loop] = dist::clampIndex(b, op.getLoc(), at, extents[each.loop]);
  }
}

SmallVector<Value> SelectedBody::placeOf(OpBuilder &b, OpOperand &operand, ValueRange loops) {
  SmallVector<Value> at;
  for (AffineExpr position : op.getMatchingIndexingMap(&operand).getResults())
    at.push_back(affine::expandAffineExpr(b, op.getLoc(), position, loops, {}));
  return at;
}

Value SelectedBody::asIndex(OpBuilder &b, Value value) {
  if (value.getType().isIndex())
    return value;
  return arith::IndexCastOp::create(b, op.getLoc(), b.getIndexType(), value);
}

/// The copy in the new body of a value that does not depend on a selected loop.
Value SelectedBody::computed(OpBuilder &b, Value value, ValueRange loops, IRMapping &known) {
  if (known.contains(value))
    return known.lookup(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == op.getBody())
      known.map(value, elementOf(b, *op.getMatchingOpOperand(argument), loops));
    return known.lookupOrDefault(value);
  }
  Operation *producer = value.getDefiningOp();
  if (producer->getBlock() != op.getBody())
    return value;
  for (Value operand : producer->getOperands())
    computed(b, operand, loops, known);
  copy(b, producer, loops, known);
  return known.lookup(value);
}

void SelectedBody::copy(OpBuilder &b, Operation *inner, ValueRange loops, IRMapping &known) {
  if (auto index = dyn_cast<linalg::IndexOp>(inner))
    known.map(index.getResult(), loops[index.getDim()]);
  else
    b.clone(*inner, known);
}

Value SelectedBody::elementOf(OpBuilder &b, OpOperand &operand, ValueRange loops) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return operand.get();
  return tensor::ExtractOp::create(b, op.getLoc(), operand.get(), placeOf(b, operand, loops));
}

} // namespace tessera::codegen
