//===- SliceIndices.cpp - Slices of what indices alone determine ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SliceIndices.h"

#include "tessera/Dialect/Dist/Rules/DynamicIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

/// Limit on the ops that compute a tensor: each slice repeats them.
static constexpr int kMostOps = 8;

static bool isSplat(Value tensor) {
  auto constant = tensor.getDefiningOp<arith::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

/// Whether each element is computed from its indices, by ops that compute one element of their
/// result from one of each operand.
static bool isOfIndices(Value tensor, int &left) {
  if (isSplat(tensor))
    return true;
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || --left < 0 || generic->getNumResults() != 1 ||
      !getElementTypeOrSelf(tensor.getType()).isInteger() ||
      generic.getNumParallelLoops() != generic.getNumLoops() ||
      !generic.getIndexingMapsArray().back().isIdentity() ||
      generic.payloadUsesValueFromOperand(generic.getDpsInitOperand(0)))
    return false;
  for (Operation &op : *generic.getBody())
    if (!isPure(&op) || op.getNumRegions() > 0 || isa<tensor::ExtractOp>(op))
      if (!op.hasTrait<OpTrait::IsTerminator>())
        return false;
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
    return generic.getMatchingIndexingMap(operand).isProjectedPermutation() &&
           isOfIndices(operand->get(), left);
  });
}

namespace {
/// A part of a tensor, of its rank.
struct Slice {
  SmallVector<OpFoldResult> offsets, strides;
  SmallVector<int64_t> sizes;

  Slice through(AffineMap map) const {
    Slice result;
    for (AffineExpr expr : map.getResults()) {
      unsigned d = cast<AffineDimExpr>(expr).getPosition();
      result.offsets.push_back(offsets[d]);
      result.strides.push_back(strides[d]);
      result.sizes.push_back(sizes[d]);
    }
    return result;
  }
};
} // namespace

static Value computeSlice(OpBuilder &builder, Location loc, Value tensor, const Slice &slice) {
  auto type = cast<RankedTensorType>(tensor.getType()).clone(slice.sizes);
  if (isSplat(tensor)) {
    auto splat = cast<SplatElementsAttr>(tensor.getDefiningOp<arith::ConstantOp>().getValue());
    return arith::ConstantOp::create(builder, loc, splat.resizeSplat(type));
  }
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  SmallVector<Value> inputs;
  for (OpOperand *operand : generic.getDpsInputOperands())
    inputs.push_back(computeSlice(builder, loc, operand->get(),
                                  slice.through(generic.getMatchingIndexingMap(operand))));
  Value init = tensor::EmptyOp::create(builder, loc, slice.sizes, type.getElementType());
  auto made =
      linalg::GenericOp::create(builder, loc, type, inputs, init, generic.getIndexingMapsArray(),
                                generic.getIteratorTypesArray());
  IRMapping mapping;
  generic->getRegion(0).cloneInto(&made->getRegion(0), mapping);
  OpBuilder::InsertionGuard guard(builder);
  for (auto index : llvm::make_early_inc_range(made.getBody()->getOps<linalg::IndexOp>())) {
    builder.setInsertionPointAfter(index);
    unsigned d = index.getDim();
    Value stride = getValueOrCreateConstantIndexOp(builder, loc, slice.strides[d]);
    Value offset = getValueOrCreateConstantIndexOp(builder, loc, slice.offsets[d]);
    Value scaled = arith::MulIOp::create(builder, loc, index, stride);
    Value place = arith::AddIOp::create(builder, loc, scaled, offset);
    index.getResult().replaceUsesWithIf(
        place, [&](OpOperand &use) { return use.getOwner() != scaled.getDefiningOp(); });
  }
  return made->getResult(0);
}

void dist::sliceIndices(func::FuncOp function) {
  SmallVector<tensor::ExtractSliceOp> slices;
  function.walk([&](tensor::ExtractSliceOp op) {
    int left = kMostOps;
    if (!op.getOffsets().empty() && op.getSizes().empty() && op.getStrides().empty() &&
        !isSplat(op.getSource()) && isOfIndices(op.getSource(), left))
      slices.push_back(op);
  });
  for (tensor::ExtractSliceOp op : slices) {
    OpBuilder builder(op);
    Slice slice{op.getMixedOffsets(), op.getMixedStrides(), llvm::to_vector(op.getStaticSizes())};
    for (auto [d, offset] : llvm::enumerate(slice.offsets))
      if (auto index = dyn_cast<Value>(offset)) // a slice outside of the tensor is moved inside
        offset = clampIndex(builder, op.getLoc(), index,
                            offsetBounds(op.getSourceType().getDimSize(d), slice.sizes[d],
                                         op.getStaticStrides()[d]));
    Value whole = computeSlice(builder, op.getLoc(), op.getSource(), slice);
    if (whole.getType() != op.getType()) {
      // The slice has dropped dimensions.
      SmallVector<OpFoldResult> zeros(slice.sizes.size(), builder.getIndexAttr(0)),
          ones(slice.sizes.size(), builder.getIndexAttr(1));
      whole = tensor::ExtractSliceOp::create(builder, op.getLoc(), op.getType(), whole, zeros,
                                             op.getMixedSizes(), ones);
    }
    op.replaceAllUsesWith(whole);
    op.erase();
  }
}
