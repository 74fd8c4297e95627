//===- Liveness.cpp - Live ranges of values in memory ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Liveness.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"
#include "tessera/Planning/Contraction.h"
#include "tessera/Planning/Gemm.h"
#include "tessera/Planning/InPlace.h"
#include "tessera/Planning/MemoryProfile.h"
#include "tessera/Planning/Updates.h"
#include "tessera/Planning/Views.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <map>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Whether an op is lowered to the interface for matrix products.
static bool isProduct(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalg::isaContractionOpInterface(linalgOp);
}

/// Whether the op may share a kernel with others.
static bool isKernelPart(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return linalgOp && !isa<linalg::FillOp>(op) && !isProduct(op) && !matchContraction(linalgOp) &&
         !(generic && matchGroupedProduct(generic));
}

/// The slice of its result that a contraction computes; the rest of the result is not in memory.
static tensor::ExtractSliceOp onlySliceOf(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  std::optional<ContractionForm> form =
      linalgOp && !isProduct(op) ? matchContraction(linalgOp) : std::nullopt;
  return form ? form->slice : tensor::ExtractSliceOp();
}

bool Liveness::isView(Operation *op) {
  if (isReshape(op))
    return true;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    bool isCutByReaders = llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user->getBlock() == op->getBlock() && isKernelPart(user);
    });
    return (succeeded(viewOffset(op)) || isCutByReaders) &&
           onlySliceOf(slice.getSource().getDefiningOp()) != op;
  }
  if (isa<linalg::TransposeOp>(op) && llvm::all_of(op->getUsers(), isProduct))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && isTakenByContractions(linalgOp);
}

/// Whether the results are recomputed at their uses, or are constants, which are not in the arena.
static bool takesNothing(Operation *op) {
  return isa<tensor::EmptyOp, arith::ConstantOp>(op) || isMadeOfScalars(op) ||
         (isa<linalg::FillOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
            auto linalgOp = dyn_cast<linalg::LinalgOp>(use.getOwner());
            return linalgOp && linalgOp.isDpsInit(&use);
          }));
}

Value dist::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!Liveness::isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static FuseKind kindOf(Operation *op) {
  if (isKernelPart(op) && !Liveness::isView(op))
    return FuseKind::kernel;
  bool communicates =
      isa<CollectiveOpInterface, LoopLikeOpInterface, scf::IfOp, StartOp, WaitOp>(op);
  return communicates ? FuseKind::ordered : FuseKind::alone;
}

std::vector<std::vector<Operation *>> Liveness::kernelsOf(Block &block, FuseGraph::IsSent isSent) {
  // A look-up reads any element of its source, which must be in memory when the look-up begins.
  auto isApart = [&](OpOperand &operand) {
    auto generic = dyn_cast<linalg::GenericOp>(operand.getOwner());
    return (generic && isLookedUp(generic, operand)) || (isSent && isSent(operand));
  };
  FuseGraph graph(block, kMostFusedOps, kindOf, isApart);
  graph.fuse();
  return graph.order();
}

/// Sets the times of the ops of a block and of all nested blocks.
void Liveness::order(Block &block, FuseGraph::IsSent isSent) {
  std::vector<std::vector<Operation *>> groups = kernelsOf(block, isSent);
  groups.push_back({block.getTerminator()});
  for (std::vector<Operation *> &members : groups) {
    int64_t time = timeline.next();
    for (Operation *op : members) {
      timeline.set(op, time, time);
      if (!isa<linalg::LinalgOp>(op))
        for (Region &region : op->getRegions())
          for (Block &inner : region)
            order(inner, isSent);
      timeline.set(op, time, timeline.end());
    }
    kernels.push_back(std::move(members));
  }
}

bool Liveness::isHandedOn(Operation *op, Value value) const {
  return isKernelPart(op) && !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return user->getBlock() == op->getBlock() && timeOf(user) == timeOf(op);
         });
}

/// Whether the kernel of the result may write it over the operand.
bool Liveness::runsInPlace(Value operand, Value result) const {
  Operation *last = result.getDefiningOp();
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(last))
    if (linalgOp.getDpsInits()[cast<OpResult>(result).getResultNumber()] == operand)
      return operand.hasOneUse(); // an accumulator
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(last))
    return insert.getDest() == operand && operand.hasOneUse();
  if (isa<AllReduceOp>(last))
    return last->getOperand(cast<OpResult>(result).getResultNumber()) == operand;
  return mayReplace(operand, result, [&](Operation *op) {
    return op->getBlock() == last->getBlock() && timeOf(op) == timeOf(last);
  });
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * bytesPerElement(type.getElementType());
}

/// Each result of a kernel reuses the bytes of one operand whose last reader is the kernel.
void Liveness::reuse(ArrayRef<Operation *> kernel) {
  int64_t time = timeOf(kernel.front());
  for (Operation *op : kernel)
    for (Value result : op->getResults()) {
      auto made = lives.find(result);
      if (made == lives.end() || made->second.kind != Kind::own ||
          !isa<linalg::LinalgOp, tensor::InsertSliceOp, AllReduceOp>(op))
        continue;
      LiveRange *dying = nullptr;
      // A kernel that reads the same bytes twice, with different shapes, may not overwrite them.
      auto isOnlyOne = [&](Value operand) {
        return llvm::all_of(kernel, [&](Operation *reader) {
          return llvm::all_of(reader->getOperands(), [&](Value other) {
            return other == operand || rootOf(other) != rootOf(operand);
          });
        });
      };
      for (Operation *reader : kernel)
        for (Value operand : reader->getOperands()) {
          if (dying || operand.getType() != result.getType())
            continue;
          Value root = rootOf(operand);
          auto it = lives.find(root);
          if (it != lives.end() && it->second.kind == Kind::own && it->second.from < time &&
              it->second.to == time && bytesOf(root) == bytesOf(result) &&
              runsInPlace(operand, result) && isOnlyOne(operand))
            dying = &it->second;
        }
      if (dying) {
        dying->to = time - 1;
        dying->isTaken = true;
      }
    }
}

/// An asynchronous all-reduce writes its result over its operand if the operand has no other reader
/// from the start on.
void Liveness::reuseStarted(WaitOp wait) {
  StartOp start = wait.getStart();
  if (!isa<AllReduceOp>(start.getCollective()))
    return;
  for (auto [operand, result] :
       llvm::zip_equal(start.getCollective()->getOperands(), wait.getResults())) {
    auto made = lives.find(result), dying = lives.find(operand);
    if (made != lives.end() && made->second.kind == Kind::own && dying != lives.end() &&
        dying->second.kind == Kind::own && dying->second.from < timeOf(start) &&
        timeline.diesInStart(operand, start)) {
      dying->second.to = timeOf(start) - 1;
      dying->second.isTaken = true;
    }
  }
}

std::pair<int64_t, int64_t> Liveness::readOf(OpOperand &operand) const {
  Operation *user = operand.getOwner(), *reader = Timeline::readerOf(operand.get(), user);
  int64_t until = reader == user ? timeOf(user) : endOf(reader);
  if (isView(user))
    until = std::max(until, lives.lookup(user->getResult(0)).to);
  return {timeOf(reader), until};
}

/// A loop's next carry overwrites the carry after its last read: sums, and slices inserted into a
/// stack of results.
void Liveness::replaceCarries(func::FuncOp function) {
  function.walk([&](scf::ForOp loop) {
    for (auto [carry, next] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
      Value root = rootOf(next);
      Operation *op = root.getDefiningOp();
      if (op && op->getBlock() == loop.getBody() && root.getType() == carry.getType() &&
          timeline.lastUse(carry) <= timeOf(op) && lives.count(root)) {
        lives[root].kind = Kind::view;
        replaceStack(carry, root);
      }
    }
  });
}

Value dist::updatedBy(Operation *op) {
  if (auto insert = dyn_cast_or_null<tensor::InsertSliceOp>(op))
    return insert.getDest();
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && isScatter(generic) ? generic.getDpsInits()[0] : Value();
}

/// Consecutive insertions of slices into a carry, and other updates of it, all write into the
/// carry's bytes if nothing reads it after the first of them.
void Liveness::replaceStack(Value carry, Value last) {
  SmallVector<Value> between;
  for (Value dest = updatedBy(last.getDefiningOp()); dest && dest != carry;
       dest = updatedBy(dest.getDefiningOp())) {
    if (!dest.hasOneUse() || !lives.count(dest) || !updatedBy(dest.getDefiningOp()))
      return;
    between.push_back(dest);
  }
  if (!between.empty() && timeline.lastUse(carry) > timeOf(between.back().getDefiningOp()))
    return;
  for (Value value : between)
    lives[value].kind = Kind::view;
}

/// A loop's initial value without other readers shares the carry's bytes.
void Liveness::reuseInits(scf::ForOp loop) {
  int64_t time = timeOf(loop);
  for (auto [init, result] : llvm::zip(loop.getInitArgs(), loop.getResults())) {
    auto dying = lives.find(init), made = lives.find(result);
    if (dying == lives.end() || made == lives.end() || dying->second.kind != Kind::own ||
        made->second.kind != Kind::own || !init.hasOneUse() || dying->second.from >= time ||
        dying->second.to != time)
      continue;
    dying->second.to = time - 1;
    dying->second.isTaken = true;
  }
}

/// A product that is added to an argument has no bytes; it is computed when the argument has no
/// other reader.
void Liveness::addUpdates(func::FuncOp function, FuseGraph::IsSent isSent) {
  for (Update &update : updatesOf(function)) {
    auto product = lives.find(update.product->getResult(0));
    if (product == lives.end() ||
        (isSent && llvm::any_of(update.reads, [&](OpOperand *read) { return isSent(*read); })))
      continue;
    product->second.kind = Kind::inside;
    for (Value operand : update.product->getOperands().take_front(2))
      if (auto read = lives.find(rootOf(operand)); read != lives.end())
        read->second.to = std::max(read->second.to, timeOf(update.after));
  }
}

/// A result that feeds an argument overwrites the argument after its last read.
void Liveness::replaceArguments(func::FuncOp function) {
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
      if (argument.getType() == root.getType() && timeline.lastUse(argument) <= timeOf(op))
        lives[root].kind = Kind::view;
  }
}

Liveness::Liveness(func::FuncOp function, FuseGraph::IsSent isSent) : timeline(isView) {
  for (Block &block : function.getBody())
    order(block, isSent);
  for (BlockArgument argument : function.getArguments())
    lives[argument] = {0, end(), Kind::own};
  auto forEachOp = [&](llvm::function_ref<void(Operation *)> visit) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != function && !isa<linalg::LinalgOp, StartOp>(op->getParentOp()))
        visit(op);
    });
  };
  forEachOp([&](Operation *op) {
    if (takesNothing(op))
      return;
    // An asynchronous collective writes its result from its start on.
    auto wait = dyn_cast<WaitOp>(op);
    int64_t made = timeOf(wait ? wait.getStart() : op);
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()))
        lives[value] = {made, std::max(timeOf(op), timeline.lastUse(value)),
                        isView(op)                                 ? Kind::view
                        : isHandedOn(op, value) || onlySliceOf(op) ? Kind::inside
                                                                   : Kind::own};
  });
  addUpdates(function, isSent);
  replaceArguments(function);
  replaceCarries(function);
  for (const std::vector<Operation *> &kernel : kernels)
    reuse(kernel);
  function.walk([&](scf::ForOp loop) { reuseInits(loop); });
  function.walk([&](WaitOp wait) { reuseStarted(wait); });
}

void dist::forEachOwn(func::FuncOp function, const Liveness &lives,
                      llvm::function_ref<void(Value, Liveness::LiveRange, double)> visit) {
  auto take = [&](Value value, Liveness::LiveRange life) {
    visit(value, life, alignedBytes(static_cast<double>(bytesOf(value))));
  };
  auto add = [&](Value value) {
    Liveness::LiveRange life = lives.of(value);
    if (isa<RankedTensorType>(value.getType()) && life.kind == Liveness::Kind::own &&
        life.to >= life.from)
      take(value, life);
  };
  llvm::for_each(function.getArguments(), add);
  for (Update &update : updatesOf(function)) {
    if (lives.of(update.product->getResult(0)).kind != Liveness::Kind::inside)
      continue;
    // The kernel that makes an operand makes the copy, too. After the last other reader of the
    // operand only one of them is there.
    Value operand = update.product->getOperand(update.scaled);
    Operation *maker = operand.getDefiningOp();
    int64_t time = lives.timeOf(update.after), from = time, to = time;
    if (maker && isKernelPart(maker)) {
      from = to = lives.timeOf(maker);
      for (OpOperand &use : operand.getUses())
        if (use.getOwner() != update.product)
          to = std::max(to, lives.readOf(use).second);
    }
    take(operand, {from, std::min(to, time), Liveness::Kind::copy});
  }
  function.walk([&](Operation *op) {
    if (op == function || isa<linalg::LinalgOp, StartOp>(op->getParentOp()))
      return;
    llvm::for_each(op->getResults(), add);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    int64_t time = lives.timeOf(op);
    if (!linalgOp)
      return;
    std::array<bool, 2> packed = packedOperands(linalgOp), widened = widenedOperands(linalgOp);
    for (unsigned i = 0; i < packed.size(); ++i) {
      if (packed[i] && lives.of(rootOf(op->getOperand(i))).to > time)
        take(op->getOperand(i), {time, time, Liveness::Kind::copy});
      if (widened[i]) {
        double ratio = getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() /
                       getElementTypeOrSelf(op->getOperand(i).getType()).getIntOrFloatBitWidth();
        visit(op->getOperand(i), {time, time, Liveness::Kind::copy},
              alignedBytes(ratio * static_cast<double>(bytesOf(op->getOperand(i)))));
      }
    }
  });
}
