//===- GpuSums.cpp - Separate sums from their elements --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fusion combines elements and their sum over columns into one op (d is x * y, s the sum of d over
// i):
//
//   d[i, j], s[j] = x[i, j] * y[i, j], s[j] + d[i, j]
//
// The elements iterate over rows like all others. The sum is split into parts (GpuSplit.cpp), so it
// must be an op of its own.
//
//===----------------------------------------------------------------------===//

#include "GpuSums.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace tessera::codegen {

/// For shorter rows, the sums are too many in proportion to their elements.
static constexpr int64_t kShortestRow = 64;

static bool isStatic(linalg::GenericOp op) {
  return !op.hasDynamicShape();
}

static bool readsWhole(linalg::GenericOp op, OpOperand &operand) {
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  return type && isStatic(op) && op.isDpsInput(&operand) &&
         op.getMatchingIndexingMap(&operand).isPermutation();
}

bool isSharedWhole(linalg::GenericOp op, OpOperand &operand) {
  if (!readsWhole(op, operand))
    return false;
  if (auto result = dyn_cast<OpResult>(operand.get()))
    if (auto producer = dyn_cast<linalg::GenericOp>(result.getOwner()))
      if (producer.getIndexingMapMatchingResult(result).isPermutation())
        return true;
  return llvm::any_of(operand.get().getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    return user && user != op && readsWhole(user, use);
  });
}

/// Whether an output is reduced over the outermost dimension of an input.
static bool sumsRows(linalg::GenericOp op) {
  auto kinds = op.getIteratorTypesArray();
  if (llvm::none_of(kinds, linalg::isReductionIterator) ||
      llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
        return !op.getMatchingIndexingMap(&init).isProjectedPermutation();
      }))
    return false;
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    if (!readsWhole(op, *input))
      return false;
    auto first = cast<AffineDimExpr>(op.getMatchingIndexingMap(input).getResult(0));
    return kinds[first.getPosition()] == utils::IteratorType::reduction;
  });
}

/// The values that an op of a body reads, including those in its own regions.
static SetVector<Value> readsOf(Operation &op) {
  SetVector<Value> values(op.operand_begin(), op.operand_end());
  getUsedValuesDefinedAbove(op.getRegions(), values);
  return values;
}

SmallVector<unsigned> wholeOutputs(linalg::GenericOp op) {
  SmallVector<unsigned> whole;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (op.getMatchingIndexingMap(&init).isPermutation())
      whole.push_back(init.getOperandNumber() - op.getNumDpsInputs());
  SetVector<Operation *> behind;
  for (Operation &inner : op.getBody()->without_terminator())
    if (llvm::any_of(readsOf(inner), [&](Value value) {
          auto argument = dyn_cast<BlockArgument>(value);
          return argument ? argument.getArgNumber() >= op.getNumDpsInputs()
                          : behind.contains(value.getDefiningOp());
        }))
      behind.insert(&inner);
  for (unsigned output : whole) {
    Value value = op.getBody()->getTerminator()->getOperand(output);
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument ? argument.getArgNumber() >= op.getNumDpsInputs()
                 : behind.contains(value.getDefiningOp()))
      return {};
  }
  return whole;
}

linalg::GenericOp takeOutputs(linalg::GenericOp op, ArrayRef<unsigned> outputs,
                              ArrayRef<std::pair<Value, OpOperand *>> known,
                              ArrayRef<Value> knownInputs, IRRewriter &rewriter) {
  SmallVector<Value> inputs(op.getDpsInputs()), inits;
  inputs.append(knownInputs.begin(), knownInputs.end());
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    maps.push_back(op.getMatchingIndexingMap(input));
  for (auto &[value, init] : known)
    maps.push_back(op.getMatchingIndexingMap(init));
  SmallVector<bool> used(op.getNumLoops(), false);
  for (unsigned output : outputs) {
    inits.push_back(op.getDpsInitOperand(output)->get());
    maps.push_back(op.getMatchingIndexingMap(op.getDpsInitOperand(output)));
    for (AffineExpr expr : maps.back().getResults())
      used[cast<AffineDimExpr>(expr).getPosition()] = true;
  }
  SmallVector<utils::IteratorType> kinds;
  for (bool parallel : used)
    kinds.push_back(parallel ? utils::IteratorType::parallel : utils::IteratorType::reduction);
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    IRMapping mapping;
    unsigned own = op.getNumDpsInputs();
    for (unsigned i = 0; i < own; ++i)
      mapping.map(op.getBody()->getArgument(i), arguments[i]);
    for (auto [place, entry] : llvm::enumerate(known))
      mapping.map(entry.first, arguments[own + place]);
    for (auto [place, output] : llvm::enumerate(outputs))
      mapping.map(op.getBody()->getArgument(own + output), arguments[inputs.size() + place]);
    SetVector<Operation *> needed;
    SmallVector<Value> work;
    for (unsigned output : outputs)
      work.push_back(op.getBody()->getTerminator()->getOperand(output));
    SmallVector<Value> results = work;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *def = value.getDefiningOp();
      if (!mapping.contains(value) && def && def->getBlock() == op.getBody() && needed.insert(def))
        llvm::append_range(work, readsOf(*def));
    }
    for (Operation &inner : op.getBody()->without_terminator())
      if (needed.contains(&inner))
        b.clone(inner, mapping);
    for (Value &result : results)
      result = mapping.lookupOrDefault(result);
    linalg::YieldOp::create(b, loc, results);
  };
  return linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(inits)), inputs,
                                   inits, maps, kinds, body);
}

void separateSums(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> ops;
  kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  bool changed = false;
  for (linalg::GenericOp op : ops) {
    if (op.getNumResults() < 2 || !sumsRows(op))
      continue;
    SmallVector<unsigned> whole = wholeOutputs(op), sums;
    for (unsigned output = 0; output < op.getNumResults(); ++output)
      if (!llvm::is_contained(whole, output))
        sums.push_back(output);
    if (whole.empty() || sums.empty())
      continue;
    rewriter.setInsertionPoint(op);
    linalg::GenericOp elements = takeOutputs(op, whole, {}, {}, rewriter);
    SmallVector<std::pair<Value, OpOperand *>> known;
    for (unsigned output : whole)
      known.emplace_back(op.getBody()->getTerminator()->getOperand(output),
                         op.getDpsInitOperand(output));
    SmallVector<Value> made(elements.getResults());
    linalg::GenericOp reduced = takeOutputs(op, sums, known, made, rewriter);
    for (auto [output, value] : llvm::zip_equal(whole, elements.getResults()))
      rewriter.replaceAllUsesWith(op.getResult(output), value);
    for (auto [output, value] : llvm::zip_equal(sums, reduced.getResults()))
      rewriter.replaceAllUsesWith(op.getResult(output), value);
    rewriter.eraseOp(op);
    changed = true;
  }
  if (!changed)
    return;
  RewritePatternSet patterns(kernel.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  (void)applyPatternsGreedily(kernel, std::move(patterns));
}

bool sumRowsFirst(linalg::GenericOp op, IRRewriter &rewriter) {
  unsigned loops = op.getNumLoops();
  if (op.getNumResults() != 1 || loops < 2 || op.getNumReductionLoops() != loops || !isStatic(op))
    return false;
  // All inputs are read in the order of the loops, and another op shares one of them.
  bool shared = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.isPermutation() && !map.isIdentity())
      return false;
    shared |= isSharedWhole(op, *input);
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<Operation *> combiners;
  Value combined = matchReduction(op.getRegionOutputArgs(), 0, combiners);
  if (!shared || ranges.back() < kShortestRow || !combined || combiners.size() != 1)
    return false;
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combiners[0]);
  if (!neutral)
    return false;
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto type = RankedTensorType::get(ArrayRef(ranges).drop_back(),
                                    getElementTypeOrSelf(op.getResult(0).getType()));
  Value zero = arith::ConstantOp::create(rewriter, loc, *neutral);
  Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
  Value filled = linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap rows = AffineMap::getMultiDimIdentityMap(loops, op.getContext()).dropResult(loops - 1);
  maps.back() = rows;
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  auto partial =
      linalg::GenericOp::create(rewriter, loc, type, op.getDpsInputs(), filled, maps, kinds);
  rewriter.cloneRegionBefore(op.getRegion(), partial.getRegion(), partial.getRegion().end());
  SmallVector<utils::IteratorType> reduced(loops - 1, utils::IteratorType::reduction);
  SmallVector<AffineMap> sumMaps = {AffineMap::getMultiDimIdentityMap(loops - 1, op.getContext()),
                                    AffineMap::get(loops - 1, 0, op.getContext())};
  Value init = op.getDpsInitOperand(0)->get();
  auto sum =
      linalg::GenericOp::create(rewriter, loc, init.getType(), partial.getResult(0), init, sumMaps,
                                reduced, [&](OpBuilder &b, Location, ValueRange arguments) {
                                  Operation *clone = b.clone(*combiners[0]);
                                  clone->setOperands({arguments[1], arguments[0]});
                                  linalg::YieldOp::create(b, loc, clone->getResult(0));
                                });
  rewriter.replaceOp(op, sum.getResults());
  return true;
}

} // namespace tessera::codegen
