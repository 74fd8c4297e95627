//===- PeelMoves.cpp - Moves that a loop's ends waste ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeelMoves.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Limits on the iterations, of which a longer loop saves little, and on the ops of one.
static constexpr int64_t kMostTrips = 64, kMostOps = 500;

static bool communicates(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.getKind() != sharding::CollectiveKind::slice;
}

/// The ops of the body that an iteration needs for the carries whose results are used.
static DenseSet<Operation *> neededAtEnd(scf::ForOp loop) {
  DenseSet<Operation *> needed; // looked up, never iterated
  SmallVector<Operation *> todo;
  auto need = [&](Operation *op) {
    Operation *own = op ? loop.getBody()->findAncestorOpInBlock(*op) : nullptr;
    if (own && needed.insert(own).second)
      todo.push_back(own);
  };
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      need(&op);
  for (auto [result, yielded] : llvm::zip_equal(loop.getResults(), loop.getYieldedValues()))
    if (!result.use_empty())
      need(yielded.getDefiningOp());
  while (!todo.empty())
    todo.pop_back_val()->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        need(operand.getDefiningOp());
    });
  return needed;
}

/// The constant that a value is in the first iteration everywhere, or null.
static Attribute constantAtStart(scf::ForOp loop, Value value) {
  while (isa_and_nonnull<tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto carry = dyn_cast<BlockArgument>(value);
  if (!carry || carry.getOwner() != loop.getBody() || carry == loop.getInductionVar())
    return nullptr;
  DenseElementsAttr constant;
  return matchPattern(loop.getTiedLoopInit(carry)->get(), m_Constant(&constant)) &&
                 constant.isSplat()
             ? constant.getSplatValue<Attribute>()
             : Attribute();
}

/// The collectives that move one constant in the first iteration, with it.
static SmallVector<std::pair<Operation *, Attribute>> movesOfConstants(scf::ForOp loop) {
  SmallVector<std::pair<Operation *, Attribute>> found;
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || !communicates(&op) || collective.getReductionKind() ||
        op.getNumOperands() != 1 || op.hasAttr("fill"))
      continue;
    if (Attribute constant = constantAtStart(loop, op.getOperand(0)))
      found.push_back({&op, constant});
  }
  return found;
}

/// Executes the last iteration after the loop, as far as it is needed.
static void peelLast(scf::ForOp loop, int64_t last, const DenseSet<Operation *> &needed) {
  OpBuilder before(loop), after(loop->getContext());
  after.setInsertionPointAfter(loop);
  Value index = arith::ConstantOp::create(
      before, loop.getLoc(), before.getIntegerAttr(loop.getInductionVar().getType(), last));
  SmallVector<SmallVector<OpOperand *>> uses;
  for (Value result : loop.getResults())
    uses.push_back(llvm::map_to_vector(result.getUses(), [](OpOperand &use) { return &use; }));
  loop.setUpperBound(index); // excluded
  IRMapping map;
  map.map(loop.getInductionVar(), index);
  map.map(loop.getRegionIterArgs(), loop.getResults());
  for (Operation &op : loop.getBody()->without_terminator())
    if (needed.contains(&op))
      after.clone(op, map);
  for (auto [yielded, own] : llvm::zip_equal(loop.getYieldedValues(), uses))
    for (OpOperand *use : own)
      use->set(map.lookupOrDefault(yielded));
}

/// Executes the first iteration before the loop, without moves of constants.
static void peelFirst(scf::ForOp loop, int64_t first, int64_t second,
                      ArrayRef<std::pair<Operation *, Attribute>> moves) {
  OpBuilder b(loop);
  auto indexOf = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loop.getLoc(),
                                     b.getIntegerAttr(loop.getInductionVar().getType(), value));
  };
  IRMapping map;
  map.map(loop.getInductionVar(), indexOf(first));
  map.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto move = llvm::find_if(moves, [&](const auto &each) { return each.first == &op; });
    if (move == moves.end()) {
      b.clone(op, map);
      continue;
    }
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    auto constant =
        arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(type, move->second));
    for (StringRef name : {DistDialect::kShardings, DistDialect::kGlobalType})
      if (Attribute attribute = op.getAttr(name))
        constant->setAttr(name, attribute);
    map.map(op.getResult(0), constant.getResult());
  }
  loop.setLowerBound(indexOf(second));
  for (auto [init, yielded] : llvm::zip_equal(loop.getInitArgsMutable(), loop.getYieldedValues()))
    init.set(map.lookupOrDefault(yielded));
}

static void peel(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSExtValue() <= 0)
    return;
  int64_t from = lower.getSExtValue(), by = step.getSExtValue();
  int64_t trips = (upper.getSExtValue() - from + by - 1) / by, ops = 0;
  loop.getBody()->walk([&](Operation *op) { ops += !op->getParentOfType<linalg::LinalgOp>(); });
  if (trips < 2 || trips > kMostTrips || ops > kMostOps)
    return;
  DenseSet<Operation *> needed = neededAtEnd(loop);
  bool isWasted = false;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!needed.contains(&op))
      op.walk([&](Operation *inner) { isWasted |= communicates(inner); });
  if (isWasted) {
    peelLast(loop, from + (trips - 1) * by, needed);
    --trips;
  }
  if (trips < 2)
    return;
  if (SmallVector<std::pair<Operation *, Attribute>> moves = movesOfConstants(loop); !moves.empty())
    peelFirst(loop, from, from + by, moves);
}

void dist::peelMoves(func::FuncOp function) {
  SmallVector<scf::ForOp> loops; // inner ones first
  function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    peel(loop);
}
