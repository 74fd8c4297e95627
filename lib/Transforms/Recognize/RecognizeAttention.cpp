//===- RecognizeAttention.cpp - Products and softmax as one op ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Recognize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTRECOGNIZEATTENTION
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static void eraseReplaced(ArrayRef<Operation *> ops, Block *block) {
  SmallVector<Operation *> sorted(
      llvm::make_filter_range(ops, [&](Operation *op) { return op->getBlock() == block; }));
  llvm::sort(sorted, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *op : sorted)
    if (isOpTriviallyDead(op))
      op->erase();
}

void dist::eraseDeadTensorOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (!isa<linalg::LinalgOp>(op->getParentOp()))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (isa<linalg::LinalgOp, tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
            arith::ConstantOp, ext::AttentionOp>(op) &&
        isOpTriviallyDead(op))
      op->erase();
}

/// Cancels a reshape of the output with the inverse reshape of its user.
static void cancelReshapes(Value output) {
  auto collapse = output.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return;
  for (Operation *user : llvm::make_early_inc_range(output.getUsers()))
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user);
        expand && expand.getType() == collapse.getSrcType())
      expand.replaceAllUsesWith(collapse.getSrc());
}

void dist::replaceWithAttention(Operation *root, Value output, ArrayRef<Operation *> replaced) {
  Block *block = root->getBlock();
  root->getResult(0).replaceAllUsesWith(output);
  cancelReshapes(output);
  eraseReplaced(replaced, block);
}

void dist::recognizeAttention(func::FuncOp function, int64_t leastScoreBytes) {
  SmallVector<linalg::LinalgOp> products;
  function.walk([&](linalg::LinalgOp op) {
    if (isProduct(op))
      products.push_back(op);
  });
  int64_t leastBytes = leastBytesOfMatch(function, leastScoreBytes);
  bool any = false;
  for (linalg::LinalgOp product : products) {
    std::optional<AttentionMatch> match = matchAttention(product, false, leastBytes);
    if (!match || !isWorthRecomputing(*match, leastScoreBytes))
      continue;
    OpBuilder b(match->root);
    Value output = writeAttention(b, *match).output;
    SmallVector<Operation *> replaced(match->replaced.begin(), match->replaced.end());
    match->expressions.reset(); // it refers to erased ops
    replaceWithAttention(match->root, output, replaced);
    any = true;
  }
  if (any)
    eraseDeadTensorOps(function);
}

namespace {
struct DistRecognizeAttention : dist::impl::DistRecognizeAttentionBase<DistRecognizeAttention> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!isLocalView(function)) {
        recognizeAttention(function, 0);
        splitChunks(function);
      }
  }
};
} // namespace
