//===- TakeLookups.cpp - Turn sums over tables into look-ups --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop v of
//
//   y[i, j] = sum over v of select(index[i] == v, x[v, j], 0)
//
// becomes the number clamp(index[i], 0, rows - 1), and x an element that the body
// extracts.
//
//===----------------------------------------------------------------------===//

#include "TakeLookups.h"

#include "tessera/Codegen/Kernels/SelectedBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// The value that a tensor is filled with, as a scalar of the function; null for other tensors.
static Value splatOf(OpBuilder &b, Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return fill.value();
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return arith::ConstantOp::create(b, tensor.getLoc(), elements.getSplatValue<TypedAttr>());
}

/// Loops that are in no map and have no extent.
static SmallVector<unsigned> unsizedLoops(unsigned loops, ArrayRef<AffineMap> maps) {
  llvm::SmallBitVector sized(loops);
  for (AffineMap map : maps)
    for (AffineExpr expr : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sized.set(dim.getPosition());
  return llvm::to_vector(sized.flip().set_bits());
}

static void takeLookup(linalg::GenericOp op, ArrayRef<dist::SelectedLoop> selected) {
  OpBuilder b(op);
  llvm::SmallBitVector gone(op.getNumLoops());
  for (const dist::SelectedLoop &each : selected)
    gone.set(each.loop);
  SmallVector<AffineExpr> places; // in the new nest, by loop
  SmallVector<utils::IteratorType> iterators;
  for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
    places.push_back(gone.test(loop) ? getAffineConstantExpr(0, b.getContext())
                                     : getAffineDimExpr(iterators.size(), b.getContext()));
    if (!gone.test(loop))
      iterators.push_back(iterator);
  }

  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> kept; // of the body, by argument of the new one
  auto keep = [&](OpOperand *operand) {
    maps.push_back(
        op.getMatchingIndexingMap(operand).replaceDimsAndSymbols(places, {}, iterators.size(), 0));
    kept.push_back(op.getMatchingBlockArgument(operand));
  };
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (llvm::any_of(gone.set_bits(), [&](unsigned loop) { return map.isFunctionOfDim(loop); }))
      continue;
    inputs.push_back(input->get());
    keep(input);
  }
  OpOperand *init = op.getDpsInitOperand(0);
  keep(init);
  // A tensor that is extracted from is no longer an operand. Loops that only it had, of a summed or
  // compared dimension, get their extents from an unread tensor.
  SmallVector<unsigned> unsized = unsizedLoops(iterators.size(), maps);
  if (!unsized.empty()) {
    SmallVector<int64_t> extents, shape;
    for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges()))
      if (!gone.test(loop))
        extents.push_back(extent);
    SmallVector<AffineExpr> dims;
    for (unsigned loop : unsized) {
      shape.push_back(extents[loop]);
      dims.push_back(getAffineDimExpr(loop, b.getContext()));
    }
    inputs.push_back(tensor::EmptyOp::create(b, op.getLoc(), shape, b.getI8Type()));
    maps.insert(maps.end() - 1, AffineMap::get(iterators.size(), 0, dims, b.getContext()));
    kept.insert(kept.end() - 1, BlockArgument());
  }
  // A sum starts from a scalar, without reading a tensor, unless other loops add to it.
  Value out = init->get();
  Value start =
      llvm::is_contained(iterators, utils::IteratorType::reduction) ? Value() : splatOf(b, out);
  auto type = cast<RankedTensorType>(out.getType());
  if (start)
    out = tensor::EmptyOp::create(b, op.getLoc(), type.getShape(), type.getElementType());
  auto write = [&](OpBuilder &inner, Location loc, ValueRange arguments) {
    IRMapping known;
    for (auto [before, after] : llvm::zip_equal(kept, arguments))
      if (before)
        known.map(before, after);
    if (start)
      known.map(kept.back(), start);
    SmallVector<Value> loops(op.getNumLoops());
    for (auto [loop, place] : llvm::enumerate(places))
      if (auto dim = dyn_cast<AffineDimExpr>(place))
        loops[loop] = linalg::IndexOp::create(inner, loc, dim.getPosition());
    linalg::YieldOp::create(inner, loc, SelectedBody(op, selected).write(inner, loops, known));
  };
  auto lookup = linalg::GenericOp::create(b, op.getLoc(), TypeRange(type), inputs, out, maps,
                                          iterators, write);
  op.getResult(0).replaceAllUsesWith(lookup.getResult(0));
  op.erase();
}

void codegen::takeLookups(func::FuncOp function) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops) {
    SmallVector<dist::SelectedLoop, 2> selected = dist::lookedUpLoops(op);
    if (!selected.empty())
      takeLookup(op, selected);
  }
}
