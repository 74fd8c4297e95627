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
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Planning/Contraction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

static void formContraction(linalg::LinalgOp op, bool narrow) {
  std::optional<dist::ContractionForm> form = dist::matchContraction(op, narrow);
  if (!form)
    return;
  auto &[extents, views, slice] = *form;
  Operation *replaced = op;
  if (slice) {
    Value init = takeSlice(slice, op, extents, views);
    views[2] = *dist::through(dist::denseView(init), op.getIndexingMapsArray()[2]);
    replaced = slice;
  }
  SmallVector<int64_t> taken, strides[3], starts;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    taken.push_back(extent);
    for (unsigned operand = 0; operand < 3; ++operand)
      strides[operand].push_back(views[operand].strides[loop]);
  }
  for (const dist::StridedView &view : views)
    starts.push_back(view.start);
  OpBuilder builder(op);
  Value result = rt::ContractionOp::create(builder, op.getLoc(), replaced->getResult(0).getType(),
                                           views[0].base, views[1].base, views[2].base, starts,
                                           taken, strides[0], strides[1], strides[2],
                                           /*overwrite=*/false);
  replaced->getResult(0).replaceAllUsesWith(result);
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
