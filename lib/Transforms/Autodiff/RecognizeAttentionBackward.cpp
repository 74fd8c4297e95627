//===- RecognizeAttentionBackward.cpp - Match given derivatives -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Recognize/MatchAttentionBackward.h"
#include "../Recognize/RecomputeStacks.h"
#include "AttentionReverse.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/Autodiff/Passes.h"
#include "tessera/Transforms/Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTRECOGNIZEATTENTIONBACKWARD
#include "tessera/Transforms/Autodiff/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Emits both ops, and replaces the targets by results of the second one.
static bool write(AttentionBackwardMatch &match) {
  AttentionMatch &forward = match.forward;
  Location loc = forward.root->getLoc();
  OpBuilder b(forward.root);
  WrittenAttention written = writeAttention(b, forward);
  Value output = written.op.getOutput();
  ext::AttentionOp op = addLogsumexp(written.op);
  if (written.output == output)
    written.output = op.getOutput();
  Operation *first = nullptr;
  for (const AttentionBackwardMatch::Target &target : match.targets)
    if (target.op && (!first || target.op->isBeforeInBlock(first)))
      first = target.op;
  b.setInsertionPoint(first);
  auto [gradient, gradientMap] = asOperand(b, loc, *forward.loops, written.numbers, match.gradient);
  SmallVector<Type> types(op.getOperands().take_front(3).getTypes());
  for (auto [type, target] : llvm::zip_equal(types, match.targets))
    if (target.op)
      type = cast<RankedTensorType>(type).clone(
          getElementTypeOrSelf(target.op->getResult(0).getType()));
  DerivedAttention derived = deriveAttention(b, op, gradient, gradientMap, types);
  if (derived.without)
    return false;
  SmallVector<AffineMap> maps = ext::partsOf(derived.op).maps;
  unsigned firstResult = derived.op->getNumOperands();
  for (unsigned i = 0; i < 3; ++i)
    if (Operation *target = match.targets[i].op)
      target->getResult(0).replaceAllUsesWith(atIndices(
          b, loc, derived.op->getResult(i), maps[firstResult + i], written.numbers,
          match.targets[i].indices, cast<RankedTensorType>(target->getResult(0).getType())));
  SmallVector<Operation *> replaced(match.replaced.begin(), match.replaced.end());
  forward.expressions.reset(); // it refers to erased ops
  replaceWithAttention(forward.root, written.output, replaced);
  return true;
}

static void recognizeIn(Block &block, int64_t leastScoreBytes, int64_t leastBytes) {
  SetVector<Operation *> products;
  for (Operation &op : block)
    if (auto product = dyn_cast<linalg::LinalgOp>(op); product && isProduct(product))
      products.insert(&op);
  while (!products.empty()) {
    auto product = cast<linalg::LinalgOp>(products.front());
    products.erase(products.begin());
    std::optional<AttentionBackwardMatch> match = matchAttentionBackward(product, leastBytes);
    if (!match || !isWorthRecomputing(match->forward, leastScoreBytes))
      continue;
    SmallVector<Operation *> replaced(match->replaced.begin(), match->replaced.end());
    if (write(*match))
      products.remove_if([&](Operation *op) { return llvm::is_contained(replaced, op); });
  }
}

namespace {
struct DistRecognizeAttentionBackward
    : dist::impl::DistRecognizeAttentionBackwardBase<DistRecognizeAttentionBackward> {
  using DistRecognizeAttentionBackwardBase::DistRecognizeAttentionBackwardBase;

  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (isLocalView(function))
        continue;
      SmallVector<Operation *> elementwise;
      function.walk([&](Operation *op) {
        if (isElementwiseOnTensors(op))
          elementwise.push_back(op);
      });
      llvm::for_each(elementwise, elementwiseToGeneric);
      recomputeStacks(function, recomputedScores);
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) {
        if (!isa<linalg::LinalgOp>(block->getParentOp()))
          blocks.push_back(block);
      });
      for (Block *block : blocks) {
        int64_t least = recomputedScores / iterationsOf(*block);
        int64_t leastBytes = leastBytesOfMatch(function, least);
        recognizeIn(*block, least, leastBytes);
        if (addForwardProducts(*block, leastBytes))
          recognizeIn(*block, least, leastBytes);
      }
      eraseDeadTensorOps(function);
    }
  }
};
} // namespace
