//===- PeelLastMoves.cpp - Moves that the last iteration wastes -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeelLastMoves.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limits on the iterations, of which a longer loop saves little, and on the ops of one.
static constexpr int64_t kMostTrips = 64, kMostOps = 500;

/// Appends the ops that move a carry along a dimension to what is yielded for it, last first.
/// Returns false if it is made otherwise, or if other ops read what is moved.
static bool collectMoves(Value value, BlockArgument carry, SmallVectorImpl<Operation *> &moves) {
  bool isMoved = false;
  while (value != carry) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RearrangeOp, ShardTensorOp, ReshardOp>(op) || !op->hasOneUse() ||
        !llvm::all_equal(op->getOperands()))
      return false;
    isMoved |= isa<RearrangeOp>(op);
    moves.push_back(op);
    value = op->getOperand(0);
  }
  return isMoved;
}

/// The moves of carries that nothing reads after the last iteration.
static SmallVector<Operation *> lastMoves(scf::ForOp loop) {
  SmallVector<Operation *> moves;
  for (auto [result, carry, yielded] :
       llvm::zip_equal(loop.getResults(), loop.getRegionIterArgs(), loop.getYieldedValues())) {
    SmallVector<Operation *> own;
    if (result.use_empty() && collectMoves(yielded, carry, own))
      moves.append(own);
  }
  return moves;
}

/// The value of the induction variable in the last of several iterations, or nothing.
static std::optional<int64_t> lastIndex(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSExtValue() <= 0)
    return std::nullopt;
  int64_t from = lower.getSExtValue(), by = step.getSExtValue();
  int64_t trips = (upper.getSExtValue() - from + by - 1) / by;
  if (trips < 2 || trips > kMostTrips)
    return std::nullopt;
  return from + (trips - 1) * by;
}

/// Whether an iteration is small, and reads no slices by its index, which the loop reads alike.
static bool mayCopy(scf::ForOp loop) {
  int64_t ops = 0;
  loop.getBody()->walk([&](Operation *) { ++ops; });
  return ops <= kMostOps && llvm::none_of(loop.getInductionVar().getUsers(), [](Operation *user) {
           return isa<OffsetSizeAndStrideOpInterface>(user);
         });
}

static void peel(scf::ForOp loop, int64_t last, ArrayRef<Operation *> moves) {
  OpBuilder before(loop);
  Value index = arith::ConstantOp::create(
      before, loop.getLoc(), before.getIntegerAttr(loop.getInductionVar().getType(), last));
  SmallVector<SmallVector<OpOperand *>> uses;
  for (Value result : loop.getResults())
    uses.push_back(llvm::map_to_vector(result.getUses(), [](OpOperand &use) { return &use; }));
  loop.setUpperBound(index); // the last one is excluded
  IRMapping map;
  map.map(loop.getInductionVar(), index);
  map.map(loop.getRegionIterArgs(), loop.getResults());
  OpBuilder after(loop->getContext());
  after.setInsertionPointAfter(loop);
  for (Operation &op : loop.getBody()->without_terminator())
    if (!llvm::is_contained(moves, &op))
      after.clone(op, map);
  for (auto [yielded, own] : llvm::zip_equal(loop.getYieldedValues(), uses))
    for (OpOperand *use : own)
      use->set(map.lookupOrDefault(yielded));
}

void dist::peelLastMoves(func::FuncOp function) {
  SmallVector<scf::ForOp> loops; // inner ones first
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    SmallVector<Operation *> moves = lastMoves(loop);
    std::optional<int64_t> last = lastIndex(loop);
    if (!moves.empty() && last && mayCopy(loop))
      peel(loop, *last, moves);
  }
}
