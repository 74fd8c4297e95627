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
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Goes to the interface for matrix products.
static bool isContraction(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalg::isaContractionOpInterface(linalgOp);
}

/// Whether the op may share a kernel with others.
static bool isKernelPart(Operation *op) {
  return isa<linalg::LinalgOp>(op) && !isa<linalg::FillOp>(op) && !isContraction(op);
}

static bool isReshape(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

/// Whether a slice is a run of its source's bytes: behind the first dimension of more than one
/// index all are whole.
static bool isRun(tensor::ExtractSliceOp slice) {
  bool isMany = false;
  for (auto [extent, size, stride] : llvm::zip_equal(
           slice.getSourceType().getShape(), slice.getStaticSizes(), slice.getStaticStrides())) {
    if ((isMany && size != extent) || (size > 1 && stride != 1))
      return false;
    isMany |= size > 1;
  }
  return true;
}

bool ValueLives::isView(Operation *op) {
  if (isReshape(op))
    return true;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return isRun(slice) || llvm::all_of(op->getUsers(), [&](Operation *user) {
             return user->getBlock() == op->getBlock() && isKernelPart(user);
           });
  return isa<linalg::TransposeOp>(op) && llvm::all_of(op->getUsers(), isContraction);
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

static FuseKind kindOf(Operation *op) {
  if (isKernelPart(op) && !ValueLives::isView(op))
    return FuseKind::kernel;
  bool communicates = isa<CollectiveOpInterface, LoopLikeOpInterface, scf::IfOp, StartOp>(op);
  return communicates ? FuseKind::ordered : FuseKind::alone;
}

/// Gives the ops of a block, and of all blocks within, their times.
void ValueLives::order(Block &block, FuseGraph::IsSent isSent) {
  FuseGraph graph(block, kMostFusedOps, kindOf, isSent);
  graph.fuse();
  std::vector<std::vector<Operation *>> groups = graph.order();
  groups.push_back({block.getTerminator()});
  for (std::vector<Operation *> &members : groups) {
    ++last;
    for (Operation *op : members) {
      times[op] = last;
      if (!isa<linalg::LinalgOp>(op))
        for (Region &region : op->getRegions())
          for (Block &inner : region)
            order(inner, isSent);
      ends[op] = last;
    }
    kernels.push_back(std::move(members));
  }
}

bool ValueLives::isHandedOn(Operation *op, Value value) const {
  return isKernelPart(op) && !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock() && times.lookup(user) == times.lookup(op);
         });
}

/// Whether the op computes an element of its result from that element of the value.
static bool keepsOrder(Operation *op, Value value) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
         llvm::all_of(linalgOp->getOpOperands(), [&](OpOperand &operand) {
           bool counts = operand.get() == value || linalgOp.isDpsInit(&operand);
           AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
           return !counts || map.isIdentity() || map.getNumResults() == 0;
         });
}

/// Whether the kernel that makes the result may write it over the operand.
bool ValueLives::runsInPlace(Value operand, Value result) const {
  Operation *last = result.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(last))
    if (linalgOp.getDpsInits()[cast<OpResult>(result).getResultNumber()] == operand)
      return operand.hasOneUse(); // an accumulator
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(last))
    return insert.getDest() == operand && operand.hasOneUse();
  if (isa<AllReduceOp>(last))
    return last->getOperand(cast<OpResult>(result).getResultNumber()) == operand;
  SmallVector<Value> values{operand};
  for (size_t next = 0; next < values.size(); ++next)
    for (Operation *user : values[next].getUsers()) {
      if (times.lookup(user) != times.lookup(last))
        continue;
      if (!keepsOrder(user, values[next]))
        return false;
      if (user != last && !llvm::is_contained(values, user->getResult(0)))
        values.push_back(user->getResult(0));
    }
  return true;
}

/// What a kernel makes takes the bytes of what it is the last to read, one each.
void ValueLives::reuse(ArrayRef<Operation *> kernel) {
  int64_t time = times.lookup(kernel.front());
  for (Operation *op : kernel)
    for (Value result : op->getResults()) {
      auto made = lives.find(result);
      if (made == lives.end() || made->second.kind != Kind::own ||
          !isa<linalg::LinalgOp, tensor::InsertSliceOp, AllReduceOp>(op))
        continue;
      Life *dying = nullptr;
      for (Operation *reader : kernel)
        for (Value operand : reader->getOperands()) {
          auto it = lives.find(operand);
          if (!dying && it != lives.end() && it->second.kind == Kind::own &&
              it->second.from < time && it->second.to == time &&
              operand.getType() == result.getType() && runsInPlace(operand, result))
            dying = &it->second;
        }
      if (dying) {
        dying->to = time - 1;
        dying->isTaken = true;
      }
    }
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
    addRead(value, time);
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
  std::map<int64_t, SmallVector<BlockArgument, 1>> byNumber;
  for (BlockArgument argument : function.getArguments()) {
    auto original =
        function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), DistDialect::kArgument);
    byNumber[original ? original.getInt() : argument.getArgNumber()].push_back(argument);
  }
  for (auto [index, value] : llvm::enumerate(back.getOperands())) {
    auto feeds = function.getResultAttrOfType<IntegerAttr>(index, DistDialect::kFeeds);
    Value root = rootOf(value);
    Operation *op = root.getDefiningOp();
    if (!feeds || !op)
      continue;
    for (BlockArgument argument : byNumber[feeds.getInt()])
      if (argument.getType() == root.getType() && lastRead(argument) <= times.lookup(op))
        lives[root].kind = Kind::view;
  }
}

ValueLives::ValueLives(func::FuncOp function, FuseGraph::IsSent isSent) {
  for (Block &block : function.getBody())
    order(block, isSent);
  for (BlockArgument argument : function.getArguments())
    lives[argument] = {0, last, Kind::own};
  auto forEachOp = [&](llvm::function_ref<void(Operation *)> visit) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
        visit(op);
    });
  };
  forEachOp([&](Operation *op) {
    if (takesNothing(op))
      return;
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()))
        lives[value] = {times.lookup(op), times.lookup(op),
                        isView(op)              ? Kind::view
                        : isHandedOn(op, value) ? Kind::inside
                                                : Kind::own};
  });
  forEachOp([&](Operation *op) { readBy(op, function); });
  replaceArguments(function);
  replaceCarries(function);
  for (const std::vector<Operation *> &kernel : kernels)
    reuse(kernel);
}

void dist::forEachOwn(func::FuncOp function, const ValueLives &lives,
                      llvm::function_ref<void(Value, ValueLives::Life, double)> visit) {
  auto add = [&](Value value) {
    ValueLives::Life life = lives.of(value);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || life.kind != ValueLives::Kind::own || life.to < life.from)
      return;
    auto bytes =
        static_cast<double>(type.getNumElements() * bytesPerElement(type.getElementType()));
    visit(value, life, kArenaAlignment * std::ceil(bytes / kArenaAlignment));
  };
  llvm::for_each(function.getArguments(), add);
  function.walk([&](Operation *op) {
    if (op != function && !isa<linalg::LinalgOp>(op->getParentOp()))
      llvm::for_each(op->getResults(), add);
  });
}
