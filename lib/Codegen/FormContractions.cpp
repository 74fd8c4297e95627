//===- FormContractions.cpp - Convolutions as steps -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every map of a convolution is linear in the loops, and so is the position of an element in a
// dense operand. A loop is then only an extent and a stride in each operand; overlapping windows
// need no special treatment. The forward pass, the derivative by the input (a flipped kernel has
// negative strides) and by the weights (a sum over batch and space) have the same form.
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/LinearExpr.h"
#include "tessera/Dialect/Rt/IR/Bounds.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Contraction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENFORMCONTRACTIONS
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// Narrows loops and views to the elements that a slice of the result reads; returns the init of
/// the slice.
static Value takeSlice(tensor::ExtractSliceOp slice, linalg::LinalgOp op,
                       MutableArrayRef<int64_t> extents, MutableArrayRef<dist::StridedView> views) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  for (auto [expr, offset, size] :
       llvm::zip_equal(op.getIndexingMapsArray()[2].getResults(), slice.getStaticOffsets(),
                       slice.getType().getShape())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    extents[loop] = size;
    for (dist::StridedView &view : views.take_front(2))
      view.start += offset * view.strides[loop];
  }
  Value init = op.getDpsInits()[0];
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return tensor::ExtractSliceOp::create(builder, loc, slice.getType(), init,
                                          slice.getMixedOffsets(), slice.getMixedSizes(),
                                          slice.getMixedStrides());
  Value empty = tensor::EmptyOp::create(builder, loc, slice.getType().getShape(),
                                        slice.getType().getElementType());
  return linalg::FillOp::create(builder, loc, fill.getInputs()[0], empty).getResult(0);
}

/// Adds to `bounds` where an operand that is padded with zeros is read inside: for each padded
/// dimension a begin, an end, and the stride of each loop, which starts at `offsets`.
static void addBounds(linalg::LinalgOp op, unsigned operand, ArrayRef<int64_t> offsets,
                      SmallVector<SmallVector<int64_t>> &bounds) {
  auto insert = op->getOperand(operand).getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || !insert.hasUnitStride() ||
      llvm::any_of(insert.getStaticOffsets(), ShapedType::isDynamic) ||
      insert.getSourceType().getRank() != insert.getType().getRank())
    return;
  auto fill = insert.getDest().getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()))
    return;
  for (auto [expr, begin, size, padded] :
       llvm::zip_equal(op.getIndexingMapsArray()[operand].getResults(), insert.getStaticOffsets(),
                       insert.getSourceType().getShape(), insert.getType().getShape())) {
    std::optional<dist::LinearExpr> place = dist::linearExprOf(expr);
    if (size == padded || !place)
      continue;
    int64_t start = place->constant;
    SmallVector<int64_t> strides(offsets.size(), 0);
    for (auto [loop, coefficient] : place->terms) {
      strides[loop] += coefficient;
      start += coefficient * offsets[loop];
    }
    SmallVector<int64_t> &bound = bounds.emplace_back();
    bound = {begin - start, begin - start + size};
    llvm::append_range(bound, strides);
  }
}

static void formContraction(linalg::LinalgOp op, bool narrow) {
  std::optional<dist::ContractionForm> form = dist::matchContraction(op, narrow);
  if (!form)
    return;
  auto &[extents, views, slice] = *form;
  Operation *replaced = op;
  SmallVector<int64_t> offsets(extents.size(), 0);
  if (slice) {
    for (auto [expr, offset] :
         llvm::zip_equal(op.getIndexingMapsArray()[2].getResults(), slice.getStaticOffsets()))
      offsets[cast<AffineDimExpr>(expr).getPosition()] = offset;
    Value init = takeSlice(slice, op, extents, views);
    views[2] = *dist::through(dist::denseView(init), op.getIndexingMapsArray()[2]);
    replaced = slice;
  }
  SmallVector<SmallVector<int64_t>> bounds;
  for (unsigned operand = 0; operand < 2; ++operand)
    addBounds(op, operand, offsets, bounds);
  SmallVector<int64_t> taken, strides[3], starts, within;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    taken.push_back(extent);
    for (unsigned operand = 0; operand < 3; ++operand)
      strides[operand].push_back(views[operand].strides[loop]);
  }
  for (const dist::StridedView &view : views)
    starts.push_back(view.start);
  for (ArrayRef<int64_t> bound : bounds) {
    llvm::append_range(within, bound.take_front(2));
    for (auto [extent, stride] : llvm::zip_equal(extents, bound.drop_front(2)))
      if (extent != 1)
        within.push_back(stride);
  }
  OpBuilder builder(op);
  auto made = rt::ContractionOp::create(builder, op.getLoc(), replaced->getResult(0).getType(),
                                        views[0].base, views[1].base, views[2].base, starts, taken,
                                        strides[0], strides[1], strides[2], /*overwrite=*/false);
  if (!within.empty())
    made->setAttr(rt::kWithin, builder.getDenseI64ArrayAttr(within));
  replaced->getResult(0).replaceAllUsesWith(made.getResult());
  if (replaced != op)
    replaced->erase();
  op->erase();
}

namespace {
struct CodegenFormContractions
    : codegen::impl::CodegenFormContractionsBase<CodegenFormContractions> {
  using CodegenFormContractionsBase::CodegenFormContractionsBase;

  void runOnOperation() override {
    if (!dist::isLocalView(getOperation()))
      return;
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops)
      formContraction(op, narrow);
  }
};
} // namespace
