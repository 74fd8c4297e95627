//===- KernelFuse.cpp - Elementwise fusion --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"
#include "KernelStages.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {

static int64_t volume(linalg::GenericOp op) {
  int64_t product = 1;
  for (int64_t range : op.getStaticLoopRanges())
    product *= range;
  return product;
}

/// The scalar that every element of `value` equals: of a splat constant or of a fill; null if none.
static Value splatScalar(Value value, linalg::GenericOp user, OpBuilder &builder) {
  DenseElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)) && splat.isSplat()) {
    builder.setInsertionPointToStart(user.getBody());
    return arith::ConstantOp::create(builder, user.getLoc(),
                                     cast<TypedAttr>(splat.getSplatValue<Attribute>()));
  }
  auto producer = value.getDefiningOp<linalg::GenericOp>();
  return producer ? filledScalar(producer) : Value();
}

/// Replaces splat inputs by scalars.
static bool inlineSplats(linalg::GenericOp op, IRRewriter &rewriter) {
  bool changed = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (argument.use_empty() || !isa<RankedTensorType>(input->get().getType()))
      continue;
    if (Value scalar = splatScalar(input->get(), op, rewriter)) {
      rewriter.replaceAllUsesWith(argument, scalar);
      changed = true;
    }
  }
  return changed;
}

/// A sum of one term from a filled init is elementwise: drops loops of one iteration, and turns the
/// init into a scalar. As a reduction it would materialize a tensor.
static void dropUnitSums(linalg::GenericOp op, IRRewriter &rewriter) {
  if (op.getNumReductionLoops() == 0 || op.getNumResults() != 1)
    return;
  SmallVector<AffineExpr> places; // in the new nest, by loop
  unsigned kept = 0;
  for (auto [iterator, extent] :
       llvm::zip_equal(op.getIteratorTypesArray(), op.getStaticLoopRanges())) {
    bool sums = iterator == utils::IteratorType::reduction;
    if (sums && extent != 1)
      return;
    places.push_back(sums ? rewriter.getAffineConstantExpr(0) : rewriter.getAffineDimExpr(kept++));
  }
  OpOperand *init = op.getDpsInitOperand(0);
  Value start = splatScalar(init->get(), op, rewriter);
  if (!start)
    return;
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray())
    maps.push_back(map.replaceDimsAndSymbols(places, {}, kept, 0));
  rewriter.replaceAllUsesWith(op.getMatchingBlockArgument(init), start);
  for (auto index : llvm::make_early_inc_range(op.getBody()->getOps<linalg::IndexOp>())) {
    rewriter.setInsertionPoint(index);
    if (auto dim = dyn_cast<AffineDimExpr>(places[index.getDim()]))
      rewriter.replaceOpWithNewOp<linalg::IndexOp>(index, dim.getPosition());
    else
      rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(index, 0);
  }
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(init->get().getType());
  Value empty =
      tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(kept, utils::IteratorType::parallel);
  auto terms = linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(type), op.getInputs(),
                                         empty, maps, iterators);
  rewriter.inlineRegionBefore(op.getRegion(), terms.getRegion(), terms.getRegion().begin());
  rewriter.replaceOp(op, terms.getResults());
}

/// Whether the producer of `operand` may be fused into its user: the user reads each element once,
/// so nothing is recomputed, and other users come later and can use the fused op's result.
static bool shouldFuse(OpOperand &operand, DominanceInfo &dominance) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != consumer->getBlock() ||
      !linalg::areElementwiseOpsFusable(&operand) || volume(producer) != volume(consumer))
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation())
    return false;
  // A fused op uses all its buffers at once; with more, pointers no longer fit registers.
  if (producer->getNumOperands() + consumer->getNumOperands() > 16)
    return false;
  // Other reads of the producer's results must be at the same element. A result without other
  // readers is dropped.
  auto onlyHere = [&](Value result) {
    return llvm::all_of(result.getUsers(), [&](Operation *user) { return user == consumer; });
  };
  for (OpOperand &other : consumer->getOpOperands())
    if (other.get().getDefiningOp() == producer && &other != &operand &&
        (consumer.isDpsInit(&other) || onlyHere(other.get()) || !map.isIdentity() ||
         !consumer.getMatchingIndexingMap(&other).isIdentity() ||
         !producer.getIndexingMapMatchingResult(cast<OpResult>(other.get())).isIdentity()))
      return false;
  SmallVector<Operation *> users;
  for (Value result : producer->getResults())
    llvm::append_range(users, result.getUsers());
  bool shared = llvm::any_of(users, [&](Operation *user) { return user != consumer; });
  if (!shared)
    return true;
  // The producer's result remains: it must be written in the order of the consumer's loops.
  AffineMap result = producer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()));
  if (!map.isIdentity() || !result.isIdentity())
    return false;
  return llvm::all_of(users, [&](Operation *user) {
    return user == consumer ||
           (user->getBlock() == consumer->getBlock() && consumer->isBeforeInBlock(user)) ||
           (user->getBlock() != consumer->getBlock() &&
            dominance.properlyDominates(consumer, user));
  });
}

/// Fuses the producer of `operand` into its user. Other results of the producer that the user reads
/// are then values of the fused body.
static bool fuse(OpOperand &operand, IRRewriter &rewriter) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  Operation *producer = operand.get().getDefiningOp();
  rewriter.setInsertionPoint(consumer);
  FailureOr<linalg::ElementwiseOpFusionResult> result =
      linalg::fuseElementwiseOps(rewriter, &operand);
  if (failed(result))
    return false;
  auto fused = cast<linalg::GenericOp>(result->fusedOp);
  for (OpOperand *input : fused.getDpsInputOperands()) {
    if (input->get().getDefiningOp() != producer)
      continue;
    auto own = dyn_cast_or_null<OpResult>(result->replacements.lookup(input->get()));
    if (!own)
      continue; // the producer remains for it
    OpOperand *init = fused.getDpsInitOperand(own.getResultNumber());
    Value value = fused.getBody()->getTerminator()->getOperand(own.getResultNumber());
    rewriter.replaceAllUsesWith(fused.getMatchingBlockArgument(input), value);
    input->set(init->get()); // no longer read; cleaned up later
  }
  for (auto [original, replacement] : result->replacements)
    rewriter.replaceAllUsesWith(original, replacement);
  rewriter.eraseOp(consumer);
  if (producer->use_empty())
    rewriter.eraseOp(producer);
  return true;
}

void fuseKernel(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);

  auto cleanUp = [&] {
    RewritePatternSet patterns(kernel.getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    (void)applyPatternsGreedily(kernel, std::move(patterns));
  };
  SmallVector<linalg::GenericOp> sums;
  kernel.walk([&](linalg::GenericOp op) { sums.push_back(op); });
  for (linalg::GenericOp op : sums)
    dropUnitSums(op, rewriter);
  bool inlined = false;
  kernel.walk([&](linalg::GenericOp op) { inlined |= inlineSplats(op, rewriter); });
  cleanUp();

  // Terminates, since each fusion removes an op.
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<linalg::GenericOp> ops;
    kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : ops) {
      OpOperand *candidate = nullptr;
      for (OpOperand *input : op.getDpsInputOperands())
        if (shouldFuse(*input, dominance)) {
          candidate = input;
          break;
        }
      if (!candidate)
        continue;
      if (!fuse(*candidate, rewriter))
        continue;
      changed = true;
      break;
    }
  }
  cleanUp();

  // Accumulators that start from the same fill would be copied from it.
  SmallVector<linalg::GenericOp> fills;
  kernel.walk([&](linalg::GenericOp op) {
    if (filledScalar(op))
      fills.push_back(op);
  });
  for (linalg::GenericOp fill : fills) {
    SmallVector<OpOperand *> uses = llvm::to_vector(llvm::make_pointer_range(fill->getUses()));
    for (OpOperand *use : llvm::drop_begin(uses, uses.empty() ? 0 : 1)) {
      rewriter.setInsertionPointAfter(fill);
      use->set(rewriter.clone(*fill)->getResult(0));
    }
  }
}

} // namespace tessera::codegen
