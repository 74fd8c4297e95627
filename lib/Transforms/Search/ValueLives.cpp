//===- ValueLives.cpp - When values take memory ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValueLives.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static bool isContraction(linalg::LinalgOp op) {
  return op.getNumReductionLoops() > 0 && op.getNumDpsInputs() >= 2;
}

static bool isElementwise(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops();
}

/// Whether the op may share a kernel with its neighbours.
static bool isKernelPart(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !isa<linalg::FillOp>(op) && !isContraction(linalgOp);
}

static bool isReshape(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool ValueLives::isView(Operation *op) {
  if (isReshape(op))
    return true;
  auto transpose = dyn_cast<linalg::TransposeOp>(op);
  return transpose && llvm::all_of(op->getUsers(), [](Operation *user) {
           auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
           return linalgOp && isContraction(linalgOp);
         });
}

/// What is made where it is read, or a constant, which is not in the arena.
static bool takesNothing(Operation *op) {
  return isa<tensor::EmptyOp, arith::ConstantOp>(op) || isMadeOfScalars(op) ||
         (isa<linalg::FillOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
            auto linalgOp = dyn_cast<linalg::LinalgOp>(use.getOwner());
            return linalgOp && linalgOp.isDpsInit(&use);
          }));
}

/// The value whose bytes a value is a view of: itself for most.
static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!ValueLives::isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether the reader visits the rows that the value is made by: reductions keep the leading
/// dimension.
static bool visitsRows(Operation *user, Value value) {
  auto linalgOp = cast<linalg::LinalgOp>(user);
  for (OpOperand *operand : linalgOp.getDpsInputOperands())
    if (operand->get() == value) {
      AffineMap map = linalgOp.getMatchingIndexingMap(operand);
      if (map.getNumResults() == 0)
        return true;
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(0));
      if (!dim ||
          linalgOp.getIteratorTypesArray()[dim.getPosition()] != utils::IteratorType::parallel)
        return false;
    }
  return true;
}

int64_t ValueLives::kernelOf(Operation *op) const {
  return 2 * kernels.lookup(op) + isKernelPart(op);
}

bool ValueLives::isHandedOn(Operation *op, Value value) const {
  return isKernelPart(op) && !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock() && isKernelPart(user) &&
                  kernels.lookup(user) == kernels.lookup(op) && visitsRows(user, value);
         });
}

int64_t ValueLives::readUntil(Operation *op) const {
  int64_t time = times.lookup(op);
  if (isView(op))
    time = std::max(time, lives.lookup(op->getResult(0)).to);
  return time;
}

void ValueLives::split(Value value, int64_t from, Value other, int64_t to) {
  Life &life = lives[value];
  Life rest = {to, std::max(to, life.to), life.kind};
  life.to = from;
  lives[other] = rest;
  // Ops on the way to the other value run when it is needed.
  for (Operation *op = other.getDefiningOp(); op && !times.count(op);
       op = op->getOperand(0).getDefiningOp())
    times[op] = to;
}

/// A value is read at a time, and what it is a view of.
void ValueLives::addRead(Value value, int64_t time) {
  for (;;) {
    if (auto it = lives.find(value); it != lives.end())
      it->second.to = std::max(it->second.to, time);
    Operation *op = value.getDefiningOp();
    if (!op || !isView(op))
      return;
    value = op->getOperand(0);
  }
}

/// Readers of an op's operands, at their times.
void ValueLives::readBy(Operation *op, func::FuncOp function) {
  for (Value value : op->getOperands()) {
    if (!lives.count(value))
      continue;
    int64_t time = times.lookup(op);
    for (Operation *loop = op->getParentOp(); loop && loop != function; loop = loop->getParentOp())
      if (isa<LoopLikeOpInterface>(loop) &&
          !loop->isAncestor(value.getParentBlock()->getParentOp()))
        time = std::max(time, ends.lookup(loop));
    bool inPlace = isElementwise(op) && op->getNumResults() == 1 &&
                   value.getType() == op->getResult(0).getType();
    addRead(value, inPlace ? time - 1 : time);
  }
}

/// When the last reader of a value, or of a view of it, begins.
int64_t ValueLives::lastRead(Value value) const {
  int64_t last = 0;
  for (Operation *user : value.getUsers())
    last = std::max(last, isView(user) ? lastRead(user->getResult(0)) : times.lookup(user));
  return last;
}

/// What a loop carries on is put where the carry was, once nothing reads that: sums, and slices put
/// into a stack of results.
void ValueLives::replaceCarries(func::FuncOp function) {
  function.walk([&](scf::ForOp loop) {
    for (auto [carry, next] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
      Value root = rootOf(next);
      Operation *op = root.getDefiningOp();
      if (op && op->getBlock() == loop.getBody() && root.getType() == carry.getType() &&
          lastRead(carry) <= times.lookup(op) && lives.count(root))
        lives[root].kind = Kind::view;
    }
  });
}

/// A result that feeds an argument is put where the argument was, once nothing reads it.
void ValueLives::replaceArguments(func::FuncOp function) {
  auto back = dyn_cast<func::ReturnOp>(function.front().getTerminator());
  if (!back)
    return;
  for (auto [index, value] : llvm::enumerate(back.getOperands())) {
    auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds);
    Value root = rootOf(value);
    Operation *op = root.getDefiningOp();
    if (!feeds || !op)
      continue;
    for (BlockArgument argument : function.getArguments()) {
      auto original =
          function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), DistDialect::kArgument);
      int64_t number = original ? original.getInt() : argument.getArgNumber();
      if (number != feeds.getInt() || argument.getType() != root.getType())
        continue;
      if (lastRead(argument) <= times.lookup(op))
        lives[root].kind = Kind::view;
    }
  }
}

ValueLives::ValueLives(func::FuncOp function) {
  int64_t kernel = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return;
    if (isa<linalg::LinalgOp>(op->getParentOp()))
      return;
    times[op] = ++last;
    bool isBetween = isKernelPart(op) || isReshape(op) || takesNothing(op);
    kernel += !isBetween;
    kernels[op] = kernel;
  });
  function.walk<WalkOrder::PostOrder>([&](Operation *op) {
    int64_t end = times.lookup(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          end = std::max(end, ends.lookup(&inner));
    ends[op] = end;
  });
  for (BlockArgument argument : function.getArguments())
    lives[argument] = {0, last, Kind::own};
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function || isa<linalg::LinalgOp>(op->getParentOp()) || takesNothing(op))
      return;
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()))
        lives[value] = {times.lookup(op), times.lookup(op),
                        isView(op)              ? Kind::view
                        : isHandedOn(op, value) ? Kind::inside
                                                : Kind::own};
  });
  function.walk([&](Operation *op) {
    if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
      readBy(op, function);
  });
  replaceArguments(function);
  replaceCarries(function);
}
