//===- Local.cpp - Write ops of the local view ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Local.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::ext;

SmallVector<Value>
Local::pointwise(ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape,
                 ArrayRef<Type> elements,
                 function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
  SmallVector<AffineMap> all(maps);
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (Type element : elements) {
    inits.push_back(tensor::EmptyOp::create(b, loc, shape, element));
    types.push_back(inits.back().getType());
    all.push_back(b.getMultiDimIdentityMap(shape.size()));
  }
  SmallVector<utils::IteratorType> parallel(shape.size(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, types, inputs, inits, all, parallel,
      [&](OpBuilder &inner, Location, ValueRange args) {
        linalg::YieldOp::create(inner, loc, body(inner, args.take_front(inputs.size())));
      });
  return SmallVector<Value>(generic.getResults());
}

Value Local::slice(Value tensor, unsigned dim, OpFoldResult offset, int64_t count) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> sizes(type.getShape());
  sizes[dim] = count;
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = offset;
  return tensor::ExtractSliceOp::create(b, loc, type.clone(sizes), tensor, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), sizes), strides);
}

Value Local::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value Local::isInside(ArrayRef<int64_t> shape, unsigned dim, Value begin, int64_t extent) {
  return pointwise({}, {}, shape, {b.getI1Type()}, [&](OpBuilder &inner, ValueRange) {
    Value at = arith::AddIOp::create(inner, loc, linalg::IndexOp::create(inner, loc, dim), begin);
    Value end = arith::ConstantIndexOp::create(inner, loc, extent);
    return SmallVector<Value>{
        arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, at, end)};
  })[0];
}

Value Local::zeroOutside(Value tensor, unsigned dim, Value begin, int64_t extent) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  return pointwise(
      {tensor}, {b.getMultiDimIdentityMap(type.getRank())}, type.getShape(), {element},
      [&](OpBuilder &inner, ValueRange args) {
        Value at =
            arith::AddIOp::create(inner, loc, linalg::IndexOp::create(inner, loc, dim), begin);
        Value end = arith::ConstantIndexOp::create(inner, loc, extent);
        // Unsigned: a negative index is beyond the end.
        Value isInside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ult, at, end);
        Value zero = arith::ConstantOp::create(inner, loc, inner.getZeroAttr(element));
        return SmallVector<Value>{arith::SelectOp::create(inner, loc, isInside, args[0], zero)};
      })[0];
}
