//===- LowerScatters.cpp - Lower sums into computed indices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a look-up selects a row of its result:
//
//   y[v, j] = sum over i of select(index[i] == v, g[i, j], 0)
//
// The loop v becomes the number clamp(index[i]), and the remaining nest adds to y
// in order: the same sums in every run.
//
//   for %i, for %j:   y[index[%i], %j] += g[%i, %j]
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

#include "tessera/Codegen/Kernels/SelectedBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera::codegen {

/// The remaining loops. Dimensions of the result before the indexed ones are outermost, those after
/// them innermost, contiguous; the sums are in between.
static SmallVector<unsigned> orderOf(linalg::GenericOp op, const llvm::SmallBitVector &gone) {
  AffineMap out = op.getIndexingMapsArray().back();
  SmallVector<unsigned> before, behind, order;
  bool isBehind = false;
  for (AffineExpr position : out.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(position);
    if (!dim)
      continue;
    if (gone.test(dim.getPosition()))
      isBehind = true;
    else
      (isBehind ? behind : before).push_back(dim.getPosition());
  }
  order = before;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!gone.test(loop) && !llvm::is_contained(before, loop) && !llvm::is_contained(behind, loop))
      order.push_back(loop);
  llvm::append_range(order, behind);
  return order;
}

/// A writable tensor: a constant is replaced by a fill.
static Value writable(OpBuilder &b, Location loc, Value tensor) {
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value value = arith::ConstantOp::create(b, loc, elements.getSplatValue<TypedAttr>());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(), empty, identity, parallel,
                                   [&](OpBuilder &inner, Location where, ValueRange) {
                                     linalg::YieldOp::create(inner, where, value);
                                   })
      .getResult(0);
}

static void lowerScatter(linalg::GenericOp op, ArrayRef<dist::SelectedLoop> selected) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  llvm::SmallBitVector gone(op.getNumLoops());
  for (const dist::SelectedLoop &each : selected)
    gone.set(each.loop);
  SmallVector<unsigned> order = orderOf(op, gone);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> upper;
  for (unsigned loop : order)
    upper.push_back(arith::ConstantIndexOp::create(b, loc, extents[loop]));
  OpOperand &init = *op.getDpsInitOperand(0);
  SelectedBody body(op, selected);
  auto write = [&](OpBuilder &inner, Location where, ValueRange ivs, ValueRange state) {
    SmallVector<Value> loops(op.getNumLoops());
    for (auto [loop, iv] : llvm::zip_equal(order, ivs))
      loops[loop] = iv;
    IRMapping known;
    body.writeIterations(inner, loops, known);
    SmallVector<Value> at = body.placeOf(inner, init, loops);
    known.map(op.getRegionOutputArgs()[0], tensor::ExtractOp::create(inner, where, state[0], at));
    Value next = body.write(inner, loops, known);
    return scf::ValueVector{tensor::InsertOp::create(inner, where, next, state[0], at)};
  };
  scf::LoopNest nest = scf::buildLoopNest(b, loc, SmallVector<Value>(order.size(), zero), upper,
                                          SmallVector<Value>(order.size(), one),
                                          writable(b, loc, init.get()), write);
  op.getResult(0).replaceAllUsesWith(nest.results[0]);
  op.erase();
}

void lowerScatters(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  for (linalg::GenericOp op : ops)
    if (dist::isScatter(op))
      lowerScatter(op, dist::replaceableLoops(op));
}

} // namespace tessera::codegen
