//===- GpuIndexedSums.cpp - Separate sums from look-ups -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of all elements that are computed from indices, such as those of a table's rows,
//
//   s = sum over i, j of table[place[i], j] * y[i, j],
//
// cannot be split into parts by GpuSplit.cpp, since the loops of a body that reads their indices
// must stay. Its elements become an op of their own, which a launch shares with the sums of the
// rows: they are never in memory.
//
//===----------------------------------------------------------------------===//

#include "../GpuStages.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tessera::codegen {

/// One block adds up fewer elements than this.
static constexpr int64_t kFewElements = 32 << 10;

static void separate(linalg::GenericOp op, IRRewriter &rewriter) {
  unsigned loops = op.getNumLoops();
  if (op.getNumResults() != 1 || loops == 0 || op.getNumReductionLoops() != loops ||
      op.hasDynamicShape() || !op.hasIndexSemantics())
    return;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t count = 1;
  for (int64_t range : ranges)
    count *= range;
  SmallVector<Operation *> combiners;
  Value element = matchReduction(op.getRegionOutputArgs(), 0, combiners);
  if (count < kFewElements || !element || combiners.size() != 1)
    return;
  Location loc = op.getLoc();
  Operation *combiner = combiners[0];
  AffineMap all = rewriter.getMultiDimIdentityMap(loops);
  rewriter.setInsertionPoint(op);
  Value empty = tensor::EmptyOp::create(rewriter, loc, ranges, element.getType());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.back() = all;
  auto elements = linalg::GenericOp::create(
      rewriter, loc, empty.getType(), op.getDpsInputs(), empty, maps,
      SmallVector<utils::IteratorType>(loops, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location, ValueRange arguments) {
        IRMapping mapping;
        for (auto [from, to] : llvm::zip(op.getRegionInputArgs(), arguments))
          mapping.map(from, to);
        for (Operation &inner : op.getBody()->without_terminator())
          if (&inner != combiner)
            b.clone(inner, mapping);
        linalg::YieldOp::create(b, loc, mapping.lookupOrDefault(element));
      });
  auto sum = linalg::GenericOp::create(
      rewriter, loc, op->getResultTypes(), elements->getResults(), op.getDpsInits(),
      ArrayRef<AffineMap>{all, op.getIndexingMapsArray().back()}, op.getIteratorTypesArray(),
      [&](OpBuilder &b, Location, ValueRange arguments) {
        IRMapping mapping;
        mapping.map(element, arguments[0]);
        mapping.map(op.getRegionOutputArgs()[0], arguments[1]);
        linalg::YieldOp::create(b, loc, b.clone(*combiner, mapping)->getResult(0));
      });
  rewriter.replaceOp(op, sum);
}

void separateIndexedSums(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::GenericOp op : ops)
    separate(op, rewriter);
}

} // namespace tessera::codegen
