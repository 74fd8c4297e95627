//===- GpuPad.cpp - Write padding once ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pad is a fill and an insertion of the source, which writes the interior twice. One op over all
// elements selects instead,
//
//   y[i, j] = i - 1 < n and j - 1 < m ? x[i - 1, j - 1] : 0
//
// unless the source is so small that writing its elements twice costs little.
//
//===----------------------------------------------------------------------===//

#include "../../Kernels/KernelGroup.h"
#include "../GpuStages.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {

/// A source of less than 1 / kSmallShare of the result is inserted.
static constexpr int64_t kSmallShare = 20;

/// The value of everything around the source, if a select can replace the insertion.
static Value paddingOf(tensor::InsertSliceOp insert) {
  auto fill = insert.getDest().getDefiningOp<linalg::GenericOp>();
  RankedTensorType source = insert.getSourceType(), result = insert.getType();
  if (!fill || !fill->hasOneUse() || !source.hasStaticShape() || !result.hasStaticShape() ||
      source.getRank() != result.getRank() || source.getNumElements() == 0 ||
      source.getNumElements() * kSmallShare < result.getNumElements() || !insert.hasUnitStride() ||
      llvm::any_of(insert.getStaticOffsets(), ShapedType::isDynamic))
    return Value();
  return filledScalar(fill);
}

void chooseInPadding(func::FuncOp kernel) {
  SmallVector<tensor::InsertSliceOp> inserts;
  kernel.walk([&](tensor::InsertSliceOp insert) { inserts.push_back(insert); });
  IRRewriter rewriter(kernel.getContext());
  for (tensor::InsertSliceOp insert : inserts) {
    Value padding = paddingOf(insert);
    if (!padding)
      continue;
    auto fill = insert.getDest().getDefiningOp<linalg::GenericOp>();
    Value source = insert.getSource(), init = fill.getDpsInitOperand(0)->get();
    ArrayRef<int64_t> extents = insert.getSourceType().getShape();
    ArrayRef<int64_t> offsets = insert.getStaticOffsets();
    int64_t rank = insert.getType().getRank();
    rewriter.setInsertionPoint(insert);
    auto choose = [&](OpBuilder &b, Location loc, ValueRange) {
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value inside;
      SmallVector<Value> at;
      for (int64_t dim = 0; dim < rank; ++dim) {
        at.push_back(linalg::IndexOp::create(b, loc, dim));
        if (extents[dim] == insert.getType().getDimSize(dim))
          continue;
        Value shifted = arith::SubIOp::create(b, loc, at.back(), constant(offsets[dim]));
        // Indices before the source are very large as unsigned numbers.
        Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, shifted,
                                           constant(extents[dim]));
        at.back() = arith::SelectOp::create(b, loc, here, shifted, constant(0));
        inside = inside ? arith::AndIOp::create(b, loc, inside, here).getResult() : here;
      }
      Value value = tensor::ExtractOp::create(b, loc, source, at);
      if (inside)
        value = arith::SelectOp::create(b, loc, inside, value, padding);
      linalg::YieldOp::create(b, loc, value);
    };
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto chosen = linalg::GenericOp::create(
        rewriter, insert.getLoc(), insert.getType(), ValueRange(), init,
        AffineMap::getMultiDimIdentityMap(rank, kernel.getContext()), loops, choose);
    rewriter.replaceOp(insert, chosen.getResults());
    if (fill->use_empty())
      rewriter.eraseOp(fill);
  }
}

} // namespace tessera::codegen
