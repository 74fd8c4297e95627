//===- DimensionOps.cpp - Ops on one dimension ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DimensionOps.h"

#include "LoopNest.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

Value dist::padDim(OpBuilder &b, Location loc, Value tensor, int64_t d, int64_t low, int64_t high) {
  if (!low && !high)
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> lows(type.getRank(), b.getIndexAttr(0)), highs = lows;
  // The dimensions of one tensor are padded by one op.
  if (auto before = tensor.getDefiningOp<tensor::PadOp>())
    if (Value fill = before.getConstantPaddingValue();
        fill && matchPattern(fill, m_AnyZeroFloat()) && before.getStaticLow()[d] == 0 &&
        before.getStaticHigh()[d] == 0) {
      lows = before.getMixedLowPad();
      highs = before.getMixedHighPad();
      tensor = before.getSource();
    }
  lows[d] = b.getIndexAttr(low);
  highs[d] = b.getIndexAttr(high);
  shape[d] += low + high;
  return tensor::PadOp::create(b, loc, type.clone(shape), tensor, lows, highs,
                               zeros(b, loc, type.getElementType()));
}

Value dist::sliceDim(OpBuilder &b, Location loc, Value tensor, int64_t d, int64_t offset,
                     int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (size == type.getDimSize(d))
    return tensor;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  offsets[d] = b.getIndexAttr(offset);
  sizes[d] = b.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, strides);
}

Value dist::spreadDim(OpBuilder &b, Location loc, Value tensor, int64_t d, int64_t step) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (step == 1)
    return tensor;
  SmallVector<int64_t> shape(type.getShape());
  shape[d] = (shape[d] - 1) * step + 1;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  strides[d] = b.getIndexAttr(step);
  return tensor::InsertSliceOp::create(b, loc, tensor, zeros(b, loc, type.clone(shape)), offsets,
                                       sizes, strides);
}

Value dist::splitDim(OpBuilder &b, Location loc, Value tensor, int64_t d, int64_t inner) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups;
  for (int64_t e = 0; e < type.getRank(); ++e) {
    ReassociationIndices &group = groups.emplace_back();
    if (e == d) {
      group.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(type.getDimSize(d) / inner);
    }
    group.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(e == d ? inner : type.getDimSize(e));
  }
  return tensor::ExpandShapeOp::create(b, loc, type.clone(shape), tensor, groups);
}

Value dist::flipDim(OpBuilder &b, Location loc, Value tensor, int64_t d) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getDimSize(d) == 1)
    return tensor;
  LoopNest nest(b, loc, type.getShape());
  SmallVector<AffineExpr> exprs(nest.identityMap().getResults());
  exprs[d] = b.getAffineConstantExpr(type.getDimSize(d) - 1) - exprs[d];
  AffineMap read = AffineMap::get(type.getRank(), 0, exprs, b.getContext());
  // A tensor flipped along another dimension is read through one op for both flips.
  if (auto before = tensor.getDefiningOp<linalg::GenericOp>();
      before && before.getNumDpsInputs() == 1 && before.getNumLoops() == type.getRank() &&
      before.getMatchingIndexingMap(before.getDpsInitOperand(0)).isIdentity() &&
      before.getBlock()->getTerminator()->getOperand(0) == before.getBlock()->getArgument(0)) {
    read = before.getIndexingMapsArray()[0].compose(read);
    tensor = before.getInputs()[0];
  }
  Value element = nest.addInput(tensor, read);
  return nest.emit(element, nest.identityMap(), type);
}
