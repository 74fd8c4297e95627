//===- MergeSums.cpp - Sums of sums over mesh axes ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeSums.h"

#include "PlainOps.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs()[0];
  return matchPattern(value, m_Zero()) || matchPattern(value, m_AnyZeroFloat());
}

bool dist::isPlainSum(linalg::LinalgOp op) {
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || !isPlain(op) || !isZero(op.getDpsInits()[0]))
    return false;
  Block *body = op.getBlock();
  if (body->getOperations().size() != 2)
    return false;
  Operation *add = &body->front();
  auto has = [&](unsigned argument) {
    return llvm::is_contained(add->getOperands(), body->getArgument(argument));
  };
  return isa<arith::AddFOp, arith::AddIOp>(add) && has(0) && has(1) &&
         body->getTerminator()->getOperand(0) == add->getResult(0) &&
         op.getIndexingMapsArray()[0].isPermutation() &&
         op.getIndexingMapsArray()[1].isProjectedPermutation();
}

/// The sum whose value is only constrained, at least once, before `value` is read, once.
static linalg::LinalgOp constrainedSum(Value value) {
  if (!value.getDefiningOp<ShardTensorOp>())
    return nullptr;
  while (value.hasOneUse() && value.getDefiningOp<ShardTensorOp>())
    value = value.getDefiningOp()->getOperand(0);
  auto sum = value.getDefiningOp<linalg::LinalgOp>();
  return sum && value.hasOneUse() && isPlainSum(sum) ? sum : nullptr;
}

static void merge(linalg::LinalgOp outer) {
  linalg::LinalgOp inner = constrainedSum(outer->getOperand(0));
  if (!inner || inner->getBlock() != outer->getBlock())
    return;
  AffineMap made = inner.getIndexingMapsArray()[1], read = outer.getIndexingMapsArray()[0];
  SmallVector<utils::IteratorType> iterators = inner.getIteratorTypesArray();
  // The loop of `inner` in place of each one of `outer`.
  SmallVector<AffineExpr> loops(outer.getNumLoops());
  for (unsigned d = 0; d < read.getNumResults(); ++d) {
    unsigned loop = read.getDimPosition(d);
    loops[loop] = made.getResult(d);
    iterators[made.getDimPosition(d)] = outer.getIteratorTypesArray()[loop];
  }
  AffineMap result = outer.getIndexingMapsArray()[1].replaceDimsAndSymbols(
      loops, {}, inner.getNumLoops(), /*numResultSyms=*/0);
  OpBuilder b(outer);
  auto sum = linalg::GenericOp::create(
      b, b.getFusedLoc({inner.getLoc(), outer.getLoc()}), outer->getResultTypes(),
      ValueRange(inner->getOperand(0)), ValueRange(outer.getDpsInits()),
      ArrayRef<AffineMap>{inner.getIndexingMapsArray()[0], result}, iterators);
  sum.getRegion().takeBody(outer->getRegion(0));
  Value last = outer->getOperand(0);
  outer->replaceAllUsesWith(sum);
  outer->erase();
  while (Operation *op = last.use_empty() ? last.getDefiningOp() : nullptr) {
    if (!isa<ShardTensorOp>(op) && op != inner)
      break;
    last = op->getOperand(0);
    op->erase();
  }
}

void dist::mergeSums(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> sums; // in order: a merged sum may be that of a later one
  function.walk([&](linalg::LinalgOp op) {
    if (isPlainSum(op))
      sums.push_back(op);
  });
  for (linalg::LinalgOp op : sums)
    merge(op);
}
