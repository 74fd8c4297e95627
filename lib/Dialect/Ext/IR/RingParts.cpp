//===- RingParts.cpp - Common parts of rings ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionWriter.h"
#include "RingWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::TensorSharding;

RingWriter::RingWriter(const Part &part, Operation *op)
    : part(part), op(op), context(part.context), b(context.builder), loc(op->getLoc()),
      write{b, loc}, parts(part.parts), key(parts.domain.key), keys(parts.domain.extents[key]),
      axes(context.getFactorAxes()[parts.factors()[*part.ring]]), devices(sharding::sizeOf(axes)),
      device(context.getDeviceIndex(axes)) {}

void RingWriter::sliceExtras(Block &made, int64_t size, int64_t room) {
  // An extra, padded for all blocks along a dimension over keys.
  auto padded = [&](Value extra, unsigned dim) -> Value {
    auto type = cast<RankedTensorType>(extra.getType());
    if (type.getDimSize(dim) == room)
      return extra;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = room;
    SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high(low);
    high[dim] = b.getIndexAttr(room - type.getDimSize(dim));
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    return tensor::PadOp::create(b, loc, type.clone(shape), extra, low, high, zero);
  };
  Value begin;
  for (unsigned extra = parts.firstExtra; extra < made.operands.size(); ++extra)
    if (hasLoop(parts.maps[extra], key)) {
      if (!begin) {
        Value least = arith::MaxSIOp::create(b, loc, made.begin, write.index(0));
        begin = arith::MinSIOp::create(b, loc, least, write.index(room - size));
      }
      made.operands[extra] =
          write.slice(padded(made.operands[extra], keyDim(extra)), keyDim(extra), begin, size);
    }
}

Value RingWriter::moveBlocks(Value blocks, RankedTensorType global, const TensorSharding &sharding,
                             unsigned dim, int64_t size, int64_t distance) {
  BlockMove move(global.getShape(), sharding, dim, size, distance);
  return context.reshard(blocks, global, move.source, move.target);
}

Value RingWriter::choose(const RingTurn &turn, Value isBehind,
                         llvm::function_ref<Value(bool)> make) {
  if (!turn.behind || !turn.ahead)
    return make(turn.behind);
  Value behind = make(true), ahead = make(false);
  return select(isBehind, behind, ahead);
}

Value RingWriter::select(Value condition, Value yes, Value no) {
  if (yes.getType().isIndex())
    return arith::SelectOp::create(b, loc, condition, yes, no);
  return pointwise({yes, no}, [&](OpBuilder &b, ValueRange in) -> Value {
    return arith::SelectOp::create(b, loc, condition, in[0], in[1]);
  });
}

Value RingWriter::isAtLeast(Value index, int64_t least) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, write.index(least));
}

Value RingWriter::times(Value index, int64_t factor) {
  return arith::MulIOp::create(b, loc, index, write.index(factor));
}

Value RingWriter::pointwise(ValueRange inputs, Body body, Type element) {
  auto type = cast<RankedTensorType>(inputs.front().getType());
  SmallVector<AffineMap> maps(inputs.size(), b.getMultiDimIdentityMap(type.getRank()));
  return write.pointwise(
      inputs, maps, type.getShape(), {element ? element : type.getElementType()},
      [&](OpBuilder &b, ValueRange in) { return SmallVector<Value>{body(b, in)}; })[0];
}

Value RingWriter::add(Value a, Value b) {
  return pointwise({a, b}, [&](OpBuilder &at, ValueRange in) -> Value {
    return arith::AddFOp::create(at, loc, in[0], in[1]);
  });
}

Value RingWriter::convert(Value x, Type element) {
  if (getElementTypeOrSelf(x.getType()) == element)
    return x;
  return pointwise(
      x, [&](OpBuilder &b, ValueRange in) { return convertFloat(b, loc, in[0], element); },
      element);
}

Value RingWriter::inLoop(Value sum, Value received, Body body) {
  auto shape = cast<RankedTensorType>(sum.getType()).getShape();
  auto dim = llvm::find_if(shape, [](int64_t extent) { return extent > 1; }) - shape.begin();
  if (dim == static_cast<int64_t>(shape.size()))
    return pointwise({sum, received}, body);
  int64_t count = 2; // the smallest divisor
  while (shape[dim] % count != 0)
    ++count;
  int64_t size = shape[dim] / count;
  auto loop =
      scf::ForOp::create(b, loc, write.index(0), write.index(shape[dim]), write.index(size), sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value begin = loop.getInductionVar(), carry = loop.getRegionIterArg(0);
  Value part = pointwise(
      {write.slice(carry, dim, begin, size), write.slice(received, dim, begin, size)}, body);
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> at(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  at[dim] = begin;
  Value next = tensor::InsertSliceOp::create(
      b, loc, part, carry, at, getAsIndexOpFoldResult(b.getContext(), type.getShape()), strides);
  scf::YieldOp::create(b, loc, next);
  return loop.getResult(0);
}

SmallVector<Value> RingWriter::finish(ArrayRef<Value> accumulators) {
  Value output = accumulators[0], largest = accumulators[1], sum = accumulators[2];
  auto type = cast<RankedTensorType>(output.getType());
  auto rank = static_cast<unsigned>(type.getRank());
  SmallVector<AffineExpr> row;
  for (unsigned loop : parts.rows)
    row.push_back(b.getAffineDimExpr(dimOf(parts.output, loop)));
  Type element = context.getLocalType(0).getElementType();
  SmallVector<Value> results = write.pointwise(
      {output, sum}, {b.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, row, b.getContext())},
      type.getShape(), {element}, [&](OpBuilder &b, ValueRange in) {
        Value share = arith::DivFOp::create(b, loc, in[0], in[1]);
        return SmallVector<Value>{convertFloat(b, loc, share, element)};
      });
  if (op->getNumResults() > 1) {
    Type element = context.getLocalType(1).getElementType();
    results.push_back(pointwise(
        {largest, sum},
        [&](OpBuilder &b, ValueRange in) -> Value {
          Value log = math::LogOp::create(b, loc, in[1]);
          return convertFloat(b, loc, arith::AddFOp::create(b, loc, in[0], log), element);
        },
        element));
  }
  return results;
}
