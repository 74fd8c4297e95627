//===- LimitMemory.cpp - Rematerialize values by sending them again -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Applies the choices of tessera/Planning/Rematerialize.h to a function of the local
// view: collectives run late, and again.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/Rematerialize.h"
#include "tessera/Planning/StepCosts.h"
#include "tessera/Sharding/CollectiveTraits.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTLIMITMEMORY
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

double bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? static_cast<double>(type.getNumElements() * bytesPerElement(type.getElementType()))
              : 0;
}

/// Whether the op moves a value without a reduction: it can be repeated at any time.
bool isMove(Operation *op) {
  auto collective = dyn_cast_if_present<CollectiveOpInterface>(op);
  return collective && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         !isa<MakePartialOp>(op) && !sharding::traitsOf(collective.getKind()).reduces;
}

class MemoryLimiter {
public:
  MemoryLimiter(func::FuncOp function, const MeshTable &meshes, const sharding::Topology &topology)
      : function(function), costs(function, meshes, topology) {}

  void run(double budget) {
    if (Buffers(*this).plan.peak() <= budget)
      return;
    delayGrowingCollectives();
    Buffers buffers(*this);
    buffers.plan.run(budget, [&](const Rematerializer::Split &split) {
      buffers.values.push_back(
          rematerializeUses(buffers.values[split.buffer], split, buffers.lives));
    });
  }

private:
  /// The current buffers of the function.
  struct Buffers {
    explicit Buffers(MemoryLimiter &limiter);
    Liveness lives;
    Rematerializer plan;
    SmallVector<Value> values; ///< by buffer
  };

  /// The op of the function's body that contains a use.
  Operation *placeOf(Operation *user) { return function.front().findAncestorOpInBlock(*user); }

  /// Delays collectives with larger results than operands to their first use.
  void delayGrowingCollectives() {
    SmallVector<Operation *> moves;
    for (Operation &op : function.front())
      if (isMove(&op) && bytesOf(op.getResult(0)) >= bytesOf(op.getOperand(0)))
        moves.push_back(&op);
    for (Operation *move : llvm::reverse(moves)) {
      Operation *first = nullptr;
      for (Operation *user : move->getUsers())
        if (Operation *place = placeOf(user); !first || place->isBeforeInBlock(first))
          first = place;
      if (first)
        move->moveBefore(first);
    }
  }

  double secondsOf(Operation *move) const {
    FailureOr<CommunicationCost> cost = costs.communicationOf(cast<CollectiveOpInterface>(move));
    return succeeded(cost) ? cost->timing.seconds : 0;
  }

  /// Rematerializes a value for all uses that the split assigns to another buffer.
  Value rematerializeUses(Value value, const Rematerializer::Split &split, Liveness &lives) {
    SmallVector<OpOperand *> later;
    Operation *first = nullptr;
    for (OpOperand &use : value.getUses()) {
      Operation *place = placeOf(use.getOwner());
      if (lives.timeOf(place) < split.from)
        continue;
      later.push_back(&use);
      if (!first || place->isBeforeInBlock(first))
        first = place;
    }
    SmallVector<Operation *> way{value.getDefiningOp()};
    while (std::ssize(way) < split.steps)
      way.push_back(way.back()->getOperand(0).getDefiningOp());
    OpBuilder builder(first);
    Value made = way.back()->getOperand(0);
    for (Operation *op : llvm::reverse(way)) {
      Operation *copy = builder.clone(*op);
      copy->setOperand(0, made);
      copy->setAttr(DistDialect::kReason, builder.getStringAttr("sent again to save memory"));
      lives.place(copy, split.from);
      made = copy->getResult(0);
    }
    for (OpOperand *use : later)
      use->set(made);
    return made;
  }

  func::FuncOp function;
  StepCosts costs;
};

MemoryLimiter::Buffers::Buffers(MemoryLimiter &limiter)
    : lives(limiter.function), plan(lives.end()) {
  std::vector<LiveBuffer> list;
  llvm::DenseMap<Value, int64_t> indexOf; // looked up, never iterated
  forEachOwn(limiter.function, lives, [&](Value value, Liveness::LiveRange life, double bytes) {
    bool isCopy = life.kind == Liveness::Kind::copy;
    if (!isCopy)
      indexOf[value] = std::ssize(list);
    list.push_back({std::ssize(list), life.from, life.to, bytes});
    values.push_back(isCopy ? Value() : value);
  });
  for (auto [value, buffer] : llvm::zip_equal(values, list)) {
    Operation *move = value ? value.getDefiningOp() : nullptr;
    if (!isMove(move) || move->getBlock() != &limiter.function.front())
      continue;
    Value base = rootOf(move->getOperand(0));
    auto known = indexOf.find(base);
    if (known == indexOf.end())
      continue; // shares the buffer of an argument, which may be overwritten
    buffer.base = isa<BlockArgument>(base) ? -1 : known->second;
    buffer.seconds = limiter.secondsOf(move);
    buffer.isRepeatable = true;
    for (OpOperand &use : value.getUses()) {
      Operation *place = limiter.placeOf(use.getOwner());
      buffer.reads.push_back(
          {lives.timeOf(place), std::max(lives.readOf(use).second, lives.endOf(place))});
    }
    llvm::sort(buffer.reads);
  }
  plan.add(std::move(list));
}

struct DistLimitMemory : dist::impl::DistLimitMemoryBase<DistLimitMemory> {
  using DistLimitMemoryBase::DistLimitMemoryBase;

  void runOnOperation() override {
    FailureOr<double> budget = readMemoryBudget(getOperation(), "dist-limit-memory", memoryBudget);
    if (failed(budget))
      return signalPassFailure();
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function) && *budget > 0 && function.getBody().hasOneBlock())
        MemoryLimiter(function, meshes, cost->topology).run(*budget);
  }
};

} // namespace
