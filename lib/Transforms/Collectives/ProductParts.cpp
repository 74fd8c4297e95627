//===- ProductParts.cpp - Products in parts -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

FailureOr<std::optional<unsigned>> dist::dimOfLoop(AffineMap map, unsigned loop) {
  std::optional<unsigned> found;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    if (found || !isa<AffineDimExpr>(expr))
      return failure();
    found = dim;
  }
  return found;
}

RankedTensorType dist::withSize(Type type, unsigned dim, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  return tensor.clone(shape);
}

Value dist::sliceOf(OpBuilder &builder, Location loc, Value value, unsigned dim, OpFoldResult from,
                    int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  if (DenseElementsAttr splat; matchPattern(value, m_Constant(&splat)) && splat.isSplat()) {
    auto part = withSize(type, dim, size);
    return arith::ConstantOp::create(builder, loc, splat.resizeSplat(part));
  }
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), sizes,
      strides(type.getRank(), builder.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(builder.getIndexAttr(extent));
  offsets[dim] = from;
  sizes[dim] = builder.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(builder, loc, value, offsets, sizes, strides);
}

Value dist::insertedAt(OpBuilder &builder, Location loc, Value part, Value into, unsigned dim,
                       OpFoldResult from) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), sizes,
      strides(type.getRank(), builder.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(builder.getIndexAttr(extent));
  offsets[dim] = from;
  return tensor::InsertSliceOp::create(builder, loc, part, into, offsets, sizes, strides);
}

double dist::bytesOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return static_cast<double>(type.getNumElements() * bytesPerElement(type.getElementType()));
}
