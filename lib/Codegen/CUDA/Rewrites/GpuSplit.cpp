//===- GpuSplit.cpp - Split long reductions into two stages ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum over the rows of a matrix has one result per column: too few for the threads of a GPU. The
// reduced loop is split in two, and the outer part becomes parallel:
//
//   y[j] = sum over i of x[i, j]   is   p[s, j] = sum over i' of x[s, i', j],   y[j] = sum over s
//   of p[s, j]
//
// The order of the additions depends on shapes alone, so results are the same in every run.
//
//===----------------------------------------------------------------------===//

#include "../GpuLimits.h"
#include "../GpuStages.h"
#include "../Groups/GpuAccess.h"
#include "GpuSums.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;

namespace tessera::codegen {

/// The shortest part, such that writing and reading the partial results is at most 5 % of reading
/// the input.
static constexpr int64_t kShortestPart = 40;
/// The same for parts that share a launch over rows; and the most parts, since more do not help.
static constexpr int64_t kShortestShared = 32, kMostParts = 2048;
/// Parts that share a launch are shorter, down to this, until their teams fill a GPU: a team waits
/// for each row in turn, and the partial results stay in the cache.
static constexpr int64_t kShortestBusy = 16, kFullThreads = 132 * 768;
/// More parts of a column than this are added up in two stages.
static constexpr int64_t kMostInOrder = 1024;
/// The parts of rows whose length has no other divisor: two blocks for a multiprocessor of an H100
/// even for one row.
static constexpr int64_t kTailParts = 256;
static constexpr int64_t kManyElements = 4 << 20; ///< that justify a rest
/// Smaller reductions do not justify a second launch.
static constexpr int64_t kWorthIt = 32 << 10;
/// With enough contiguous rows (kBusyTeams), shorter ones are not split.
static constexpr int64_t kLongRow = 16 << 10;

/// Whether the innermost dimension of the largest input is reduced.
static bool isContiguous(linalg::GenericOp op) {
  unsigned loop = 0;
  int64_t most = -1;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!type || map.getNumResults() == 0 || type.getNumElements() <= most)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!dim)
      continue;
    most = type.getNumElements();
    loop = dim.getPosition();
  }
  return most >= 0 && op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

/// The largest divisor of `number` that is at most `most`.
static int64_t divisorBelow(int64_t number, int64_t most) {
  for (int64_t parts = most; parts > 1; --parts)
    if (number % parts == 0)
      return parts;
  return 1;
}

/// The least number of rows per part in a sum over rows that another op of the kernel computes or
/// reads, so that one launch may serve both (GpuWalk.cpp); 0 if there is no such op. Writing and
/// reading the parts must be less than 5 % of the bytes that this launch moves, even with two sums
/// in it.
static int64_t shortestShared(linalg::GenericOp op) {
  int64_t narrowest = 0, sum = 1;
  for (OpOperand *input : op.getDpsInputOperands())
    if (isSharedWhole(op, *input)) {
      int64_t bytes = bytesOf(getElementTypeOrSelf(input->get()));
      narrowest = narrowest ? std::min(narrowest, bytes) : bytes;
    }
  for (Value result : op.getResults())
    sum = std::max(sum, bytesOf(getElementTypeOrSelf(result)));
  return narrowest ? kShortestShared * std::max<int64_t>(1, sum / narrowest) : 0;
}

/// The number of parts; 1: no split.
static int64_t partsOf(linalg::GenericOp op, int64_t shortestShared) {
  if (op.getNumResults() != 1 || op.getNumReductionLoops() != 1 || op.hasIndexSemantics())
    return 1;
  int64_t results = 1, reduced = 1;
  for (auto [extent, iterator] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    (iterator == utils::IteratorType::parallel ? results : reduced) *= extent;
  if (results == 0 || results >= kBusyElements || reduced * results < kWorthIt)
    return 1;
  if (isContiguous(op) && (results >= kBusyTeams || reduced < kLongRow))
    return 1;
  if (shortestShared && !isContiguous(op)) {
    int64_t narrowest = kAccessBytes;
    for (OpOperand *input : op.getDpsInputOperands())
      narrowest = std::min(narrowest, bytesOf(getElementTypeOrSelf(input->get())));
    int64_t team = std::max<int64_t>(1, results * narrowest / kAccessBytes);
    int64_t most =
        std::max(reduced / shortestShared, std::min(kFullThreads / team, reduced / kShortestBusy));
    if (int64_t parts = divisorBelow(reduced, std::min(kMostParts, most)); parts >= kBusyTeams)
      return parts;
  }
  // Parts are longer if their elements are wider than those of the input.
  int64_t widest = 1, sum = bytesOf(getElementTypeOrSelf(op.getResult(0)));
  for (OpOperand *input : op.getDpsInputOperands())
    widest = std::max(widest, bytesOf(getElementTypeOrSelf(input->get())));
  int64_t shortest = kShortestPart * std::max<int64_t>(1, sum / widest);
  // Several threads share a part of a column (GpuEmitSlices.cpp), so few parts suffice.
  int64_t most = kBusyElements / results;
  if (!isContiguous(op))
    most = std::min(most, kMostInOrder);
  return divisorBelow(reduced, std::min(reduced / shortest, most));
}

/// Replaces inputs that are read at index 0 of a unit dimension by views without it: then the op
/// reads every operand along its loops, which can be merged and split.
static void dropUnitDims(linalg::GenericOp op, IRRewriter &rewriter) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool changed = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap &map = maps[input->getOperandNumber()];
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    auto isUnit = [&](unsigned dim) {
      auto constant = dyn_cast<AffineConstantExpr>(map.getResult(dim));
      return constant && constant.getValue() == 0 && type.getDimSize(dim) == 1;
    };
    if (!type || !type.hasStaticShape())
      continue;
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> results;
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
      if (!isUnit(dim)) {
        shape.push_back(type.getDimSize(dim));
        results.push_back(map.getResult(dim));
      }
    if (results.size() == map.getNumResults())
      continue;
    rewriter.setInsertionPoint(op);
    auto index = [&](int64_t value) { return OpFoldResult(rewriter.getIndexAttr(value)); };
    SmallVector<OpFoldResult> zeros(type.getRank(), index(0)), ones(type.getRank(), index(1)),
        sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(index(size));
    input->set(tensor::ExtractSliceOp::create(rewriter, op.getLoc(),
                                              RankedTensorType::get(shape, type.getElementType()),
                                              input->get(), zeros, sizes, ones));
    map = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
    changed = true;
  }
  if (changed)
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
}

/// Merges several reduced loops that every operand iterates over as one; returns `op` if that is
/// impossible.
static linalg::GenericOp collapseReduced(linalg::GenericOp op, IRRewriter &rewriter) {
  ReassociationIndices reduced;
  for (auto [loop, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (iterator == utils::IteratorType::reduction)
      reduced.push_back(static_cast<int64_t>(loop));
  bool adjacent = reduced.size() > 1 &&
                  reduced.back() - reduced.front() + 1 == static_cast<int64_t>(reduced.size());
  // The upstream predicate supports such maps only: it crashes on a convolution's.
  bool plain = llvm::all_of(op.getIndexingMapsArray(),
                            [](AffineMap map) { return map.isProjectedPermutation(); });
  if (!adjacent || !plain || op.hasIndexSemantics() ||
      !linalg::areDimSequencesPreserved(op.getIndexingMapsArray(), {reduced}))
    return op;
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::CollapseResult> collapsed =
      linalg::collapseOpIterationDims(op, {reduced}, rewriter);
  if (failed(collapsed))
    return op;
  rewriter.replaceOp(op, collapsed->results);
  return cast<linalg::GenericOp>(collapsed->collapsedOp);
}

/// If the reduced extent has no suitable divisor (a prime, say), reduces a multiple of many parts,
/// and continues from there with the elements that remain. Returns the op to split.
static linalg::GenericOp cutTail(linalg::GenericOp op, IRRewriter &rewriter) {
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool plain = llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); });
  if (reduced.size() != 1 || !plain || !isContiguous(op) || op.hasIndexSemantics() ||
      op.getNumResults() != 1)
    return op;
  int64_t extent = op.getStaticLoopRanges()[reduced[0]];
  int64_t head = extent / kTailParts * kTailParts;
  int64_t elements = 1;
  for (int64_t range : op.getStaticLoopRanges())
    elements *= range;
  // Rows are long (partsOf), and their best divisor leaves most of a GPU idle.
  if (head == extent || elements / extent >= kBusyTeams || extent < kLongRow ||
      elements < kManyElements ||
      divisorBelow(extent, std::min(extent / kShortestPart, kBusyElements)) >= kTailParts)
    return op;
  auto reduce = [&](int64_t begin, int64_t size, Value init) {
    SmallVector<Value> inputs;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      auto type = cast<RankedTensorType>(input->get().getType());
      SmallVector<int64_t> shape(type.getShape()), from(shape.size(), 0);
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (cast<AffineDimExpr>(expr).getPosition() == reduced[0]) {
          shape[dim] = size;
          from[dim] = begin;
        }
      SmallVector<int64_t> steps(shape.size(), 1);
      MLIRContext *context = op.getContext();
      inputs.push_back(tensor::ExtractSliceOp::create(
          rewriter, op.getLoc(), type.clone(shape), input->get(),
          getAsIndexOpFoldResult(context, from), getAsIndexOpFoldResult(context, shape),
          getAsIndexOpFoldResult(context, steps)));
    }
    inputs.push_back(init);
    return cast<linalg::GenericOp>(
        clone(rewriter, op.getOperation(), op->getResultTypes(), inputs));
  };
  rewriter.setInsertionPoint(op);
  linalg::GenericOp first = reduce(0, head, op.getDpsInits()[0]);
  linalg::GenericOp rest = reduce(head, extent - head, first.getResult(0));
  rewriter.replaceOp(op, rest->getResults());
  return first;
}

void splitReductions(func::FuncOp kernel) {
  splitOnlineSums(kernel);
  separateSums(kernel);
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::GenericOp whole : ops) {
    if (sumRowsFirst(whole, rewriter))
      continue;
    int64_t shortest = shortestShared(whole);
    if (whole.getNumReductionLoops() > 0)
      dropUnitDims(whole, rewriter);
    linalg::GenericOp op = cutTail(collapseReduced(whole, rewriter), rewriter);
    int64_t parts = partsOf(op, shortest);
    if (parts <= 1)
      continue;
    rewriter.setInsertionPoint(op);
    // The parts of a row are contiguous, so that a team of threads adds them up. Those of a column
    // are a column again: if they are many, they are added up in two stages as well.
    bool isRow = isContiguous(op);
    unsigned last = op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getNumResults();
    auto split = [&](linalg::LinalgOp sum, int64_t into, unsigned place) {
      return linalg::splitReduction(rewriter, sum, [&](linalg::LinalgOp) {
        return linalg::SplitReductionOptions{into, place, /*innerParallel=*/false};
      });
    };
    FailureOr<linalg::SplitReductionResult> stages = split(op, parts, isRow ? last : 0);
    if (failed(stages) || isRow || parts <= kMostInOrder)
      continue;
    auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(parts)));
    if (int64_t inner = divisorBelow(parts, root); inner > 1) {
      rewriter.setInsertionPoint(stages->resultCombiningLinalgOp);
      (void)split(stages->resultCombiningLinalgOp, inner, 0);
    }
  }
}

} // namespace tessera::codegen
