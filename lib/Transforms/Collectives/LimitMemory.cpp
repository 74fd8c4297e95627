//===- LimitMemory.cpp - Send again what would take memory meanwhile -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight that is gathered for the forward pass and read again in the backward pass
// takes its whole size in between. Under a budget it is gathered twice, as ZeRO-3 does
// (S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
// parameter models", 2020): of all that lies idle at the worst time, what frees most
// bytes for a second of sending is sent again, until everything fits.
//
//===----------------------------------------------------------------------===//

#include "../Memory/ValueLives.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Transforms/CostOptions.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

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

/// Whether the op moves a value without adding anything up: it can be done again at any time.
bool isMove(Operation *op) {
  return op && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         isa<AllGatherOp, AllToAllOp, PermuteOp, ExchangeOp, SliceOp, HaloExchangeOp>(op);
}

/// The bytes of a function by time.
class Profile {
public:
  explicit Profile(int64_t end) : bytes(end + 2, 0.0) {}
  void add(int64_t from, int64_t to, double amount) {
    for (int64_t time = from; time <= to && time < std::ssize(bytes); ++time)
      bytes[time] += amount;
  }
  int64_t worst() const { return llvm::max_element(bytes) - bytes.begin(); }
  double at(int64_t time) const { return bytes[time]; }

private:
  std::vector<double> bytes;
};

class MemoryLimiter {
public:
  MemoryLimiter(func::FuncOp function, const MeshTable &meshes, const sharding::Topology &topology)
      : function(function), meshes(meshes), topology(topology) {}

  /// The peak that is left.
  double run(double budget) {
    if (double peak = peakNow(); peak <= budget)
      return peak;
    sendLate();
    return sendAgain(budget);
  }

private:
  /// A value that lies idle from one of its uses to another, and what it costs to send it again.
  struct Gap {
    Value value;
    int64_t from = 0, to = 0;     ///< between these times nothing uses it
    SmallVector<Operation *> way; ///< the moves that make it, last first
    double freed = 0;             ///< bytes
    double seconds = 0;
  };

  Profile profileOf(const ValueLives &lives) {
    Profile profile(lives.end());
    forEachOwn(function, lives, [&](Value, ValueLives::Life life, double bytes) {
      profile.add(life.from, life.to, bytes);
    });
    return profile;
  }

  double peakNow() {
    Profile profile = profileOf(ValueLives(function));
    return profile.at(profile.worst());
  }

  /// The op of the function's body in which a use is.
  Operation *placeOf(Operation *user) { return function.front().findAncestorOpInBlock(*user); }

  /// Everything that grows by being sent is sent just before it is needed.
  void sendLate() {
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

  double secondsOf(Operation *move) {
    auto collective = cast<CollectiveOpInterface>(move);
    const sharding::Mesh &mesh = meshes.get(collective.getMeshAttr());
    FailureOr<sharding::Traffic> traffic = collective.getTraffic(mesh);
    sharding::AxisList axes;
    if (AxisListAttr group = collective.getGroupAxes())
      if (auto list = resolveAxes(group, mesh, [&]() { return move->emitOpError(); });
          succeeded(list))
        axes = *list;
    return succeeded(traffic)
               ? topology.linksOf(mesh).seconds(mesh, axes, collective.getKind(), *traffic)
               : 0;
  }

  /// The longest idle time of a value around `time`, if there is one.
  std::optional<Gap> gapOf(Value value, const ValueLives &lives, int64_t time) {
    Gap gap{value, lives.of(value).from, std::numeric_limits<int64_t>::max(), {}, 0, 0};
    for (Operation *user : value.getUsers()) {
      int64_t until = lives.readUntil(user), at = lives.timeOf(placeOf(user));
      if (at > time)
        gap.to = std::min(gap.to, at);
      else if (until >= time)
        return std::nullopt;
      else
        gap.from = std::max(gap.from, until);
    }
    if (gap.from >= time || gap.to == std::numeric_limits<int64_t>::max())
      return std::nullopt;
    gap.freed = bytesOf(value);
    for (Operation *op = value.getDefiningOp(); isMove(op);
         op = op->getOperand(0).getDefiningOp()) {
      gap.way.push_back(op);
      gap.seconds += secondsOf(op);
      // What it is made of must be there still, at the price of its bytes.
      Value base = op->getOperand(0);
      ValueLives::Life life = lives.of(base);
      double kept = life.to >= gap.to || isa<BlockArgument>(base) ? 0 : bytesOf(base);
      if (kept < bytesOf(value) && (kept == 0 || !isMove(base.getDefiningOp()))) {
        gap.freed -= kept;
        return gap;
      }
    }
    return std::nullopt;
  }

  double sendAgain(double budget) {
    ValueLives lives(function);
    Profile profile = profileOf(lives);
    SmallVector<Value> candidates;
    for (Operation &op : function.front())
      if (isMove(&op) && lives.of(op.getResult(0)).kind == ValueLives::Kind::own)
        candidates.push_back(op.getResult(0));
    for (;;) {
      int64_t worst = profile.worst();
      if (profile.at(worst) <= budget)
        return profile.at(worst);
      // Freed bytes beyond what is too much count for nothing.
      double excess = profile.at(worst) - budget;
      std::optional<Gap> best;
      auto priceOf = [&](const Gap &gap) { return gap.seconds / std::min(gap.freed, excess); };
      for (Value value : candidates)
        if (std::optional<Gap> gap = gapOf(value, lives, worst); gap && gap->freed > 0)
          if (!best || priceOf(*gap) < priceOf(*best))
            best = std::move(gap);
      if (!best)
        return profile.at(worst);
      Value again = split(*best, lives);
      profile.add(best->from + 1, best->to - 1, -best->freed);
      candidates.push_back(again);
      lives.split(best->value, best->from, again, best->to);
    }
  }

  /// Sends a value again for all uses from `gap.to` on.
  Value split(const Gap &gap, const ValueLives &lives) {
    SmallVector<OpOperand *> later;
    Operation *first = nullptr;
    for (OpOperand &use : gap.value.getUses()) {
      Operation *place = placeOf(use.getOwner());
      if (lives.timeOf(place) < gap.to)
        continue;
      later.push_back(&use);
      if (!first || place->isBeforeInBlock(first))
        first = place;
    }
    OpBuilder builder(first);
    Value made = gap.way.back()->getOperand(0);
    for (Operation *op : llvm::reverse(gap.way)) {
      Operation *copy = builder.clone(*op);
      copy->setOperand(0, made);
      copy->setAttr(DistDialect::kReason,
                    builder.getStringAttr("sent again, since keeping it takes memory"));
      made = copy->getResult(0);
    }
    for (OpOperand *use : later)
      use->set(made);
    return made;
  }

  func::FuncOp function;
  const MeshTable &meshes;
  const sharding::Topology &topology;
};

struct DistLimitMemory : dist::impl::DistLimitMemoryBase<DistLimitMemory> {
  using DistLimitMemoryBase::DistLimitMemoryBase;

  void runOnOperation() override {
    if (double budget = memoryBudget; !(budget >= 0 && std::isfinite(budget))) { // NaN neither
      getOperation().emitError() << "dist-limit-memory: memory-budget is "
                                 << llvm::formatv("{0}", budget).str()
                                 << "; it is 0, for none, or a number of GiB";
      return signalPassFailure();
    }
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function) && memoryBudget > 0 && function.getBody().hasOneBlock())
        MemoryLimiter(function, meshes, cost->topology).run(memoryBudget * 1024 * 1024 * 1024);
  }
};

} // namespace
