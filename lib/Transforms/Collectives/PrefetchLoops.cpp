//===- PrefetchLoops.cpp - Overlap communication with other iterations ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Software pipelining of loops over layers. The ops of a body are in up to three stages:
//
//   early   collectives that read nothing of earlier iterations, and what leads to them: the
//           gathers of a layer's weights
//   main    everything else
//   late    collectives whose results only go into what the loop collects: the sums of a layer's
//           gradients
//
// The early stage of iteration i, the main stage of i - 1 and the late stage of i - 2 run at the
// same time, so that products hide the collectives. An iteration of the new loop has two such
// steps: the first one gathers into the buffer that the previous step read, and nothing is copied
// at the back edge. The prologue, the epilogue and an odd step are peeled. Each op runs as often
// as before, with the same operands.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Planning/StepCosts.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

#include <deque>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTPREFETCHLOOPS
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Collectives of different iterations are not joined: they would deadlock.
static constexpr StringRef kIteration = "iteration";

namespace {

enum class Stage { none, early, main, late };

class LoopPrefetcher {
public:
  LoopPrefetcher(scf::ForOp loop, const StepCosts &costs, double memory)
      : loop(loop), body(loop.getBody()), costs(costs), memory(memory) {}

  /// Returns false, without changes, if no collective can move to another iteration.
  bool run();

private:
  /// An iteration in progress.
  struct Flight {
    Value index;
    int64_t number = 0; ///< unique among those in progress
    IRMapping values;   ///< of the stages that have run
  };

  bool readBounds();
  void findEarly();
  bool take(TypeRange types);
  void findLate();
  bool isCollective(Operation *op) const;
  bool isFree(Operation *op) const { return free.contains(op); }
  Stage stageOf(Operation *op) const { return stages.lookup(op); }
  int64_t shiftOf(Stage stage) const {
    return stage == Stage::early ? 0 : stage == Stage::main ? mainShift : mainShift + 1;
  }
  Operation *inBody(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == body ? op : nullptr;
  }
  Operation *inBody(Operation *user) const { return body->findAncestorOpInBlock(*user); }
  void forEachRead(Operation *op, llvm::function_ref<void(Value)> visit) const;
  std::optional<unsigned> carryOf(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != body || argument.getArgNumber() == 0)
      return std::nullopt;
    return argument.getArgNumber() - 1;
  }
  SmallVector<Value> crossing(int64_t age) const;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value shifted(Value index, int64_t by);
  void begin(Value index);
  void emitTime(std::optional<Value> next);
  void emit(Stage stage, Flight &flight);
  Value emitFree(Value value, IRMapping &map);
  void emitLoop(int64_t first, int64_t pairs);
  void writeLayouts(scf::ForOp made, ArrayRef<Value> values);

  scf::ForOp loop;
  Block *body;
  const StepCosts &costs;
  double memory; ///< bytes left for values of a second iteration
  OpBuilder builder{loop};
  Location loc = loop.getLoc();
  int64_t from = 0, step = 0, trips = 0;

  llvm::DenseMap<Operation *, Stage> stages; ///< looked up, never iterated
  llvm::DenseSet<Operation *> free; ///< without cost, with such operands only: copied to their uses
  SmallVector<Stage> stageOfCarry;
  int64_t mainShift = 0, depth = 0, count = 0;

  SmallVector<Value> state;   ///< the current values of the carries
  std::deque<Flight> flights; ///< by age, the youngest first
};

} // namespace

static bool hasNoEffect(Operation *op) {
  if (isa<SendOp, RecvOp, StartOp, WaitOp>(op))
    return false;
  return isa<linalg::LinalgOp, CollectiveOpInterface>(op) ||
         (op->getNumRegions() == 0 && isMemoryEffectFree(op));
}

bool LoopPrefetcher::isCollective(Operation *op) const {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !hasNoEffect(op))
    return false;
  FailureOr<CommunicationCost> cost = costs.communicationOf(collective);
  return succeeded(cost) && !cost->isLocal();
}

void LoopPrefetcher::forEachRead(Operation *op, llvm::function_ref<void(Value)> visit) const {
  llvm::for_each(op->getOperands(), visit);
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::for_each(captured, visit);
}

bool LoopPrefetcher::readBounds() {
  std::optional<APInt> count = loop.getStaticTripCount();
  APInt lower, by;
  if (!count || count->getActiveBits() > 31 || !loop.getInductionVar().getType().isIndex() ||
      !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&by)))
    return false;
  from = lower.getSExtValue();
  step = by.getSExtValue();
  trips = count->getSExtValue();
  return trips >= 2;
}

/// Collectives that do not depend on a carry are early, with the elementwise ops that lead to them:
/// in the order of their first readers, while there is memory for their results.
void LoopPrefetcher::findEarly() {
  llvm::DenseSet<Operation *> carried;                     // looked up, never iterated
  SmallVector<std::pair<int64_t, Operation *>> candidates; // by the position of the first reader
  llvm::DenseMap<Operation *, int64_t> places;             // looked up, never iterated
  for (Operation &op : body->without_terminator()) {
    places[&op] = static_cast<int64_t>(places.size());
    bool reads = !hasNoEffect(&op), isBare = true;
    forEachRead(&op, [&](Value value) {
      Operation *source = inBody(value);
      isBare &= !source || isFree(source);
      reads |= carryOf(value).has_value() || (source && carried.contains(source));
    });
    stages[&op] = Stage::main;
    if (reads)
      carried.insert(&op);
    else if (isCollective(&op))
      candidates.push_back({0, &op});
    else if (isBare && costs.computeSeconds(&op) == 0 &&
             !isa<CollectiveOpInterface, linalg::LinalgOp>(&op))
      free.insert(&op);
  }
  places[body->getTerminator()] = static_cast<int64_t>(places.size());
  for (auto &[first, op] : candidates) {
    first = places.lookup(body->getTerminator());
    for (Operation *user : op->getUsers())
      first = std::min(first, places.lookup(inBody(user)));
  }
  llvm::stable_sort(candidates, llvm::less_first());
  for (auto [first, op] : candidates) {
    if (stageOf(op) == Stage::early)
      continue;
    SetVector<Operation *> ahead;
    ahead.insert(op);
    bool isCheap = true;
    for (size_t i = 0; i < ahead.size(); ++i) {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(ahead[i]);
      isCheap &= !linalgOp || linalgOp.getNumParallelLoops() == linalgOp.getNumLoops();
      forEachRead(ahead[i], [&](Value value) {
        if (Operation *source = inBody(value))
          ahead.insert(source);
      });
    }
    if (!isCheap || !take(op->getResultTypes()))
      continue;
    for (Operation *each : ahead)
      if (!isFree(each))
        stages[each] = Stage::early;
  }
}

/// Reserves the bytes of values, if available.
bool LoopPrefetcher::take(TypeRange types) {
  double bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes +=
          static_cast<double>(tensor.getNumElements() * bytesPerElement(tensor.getElementType()));
  if (bytes > memory)
    return false;
  memory -= bytes;
  return true;
}

/// Collectives whose results only go into carries that the loop collects are late, with all their
/// readers.
void LoopPrefetcher::findLate() {
  auto yielded = loop.getYieldedValues();
  for (Operation &op : body->without_terminator()) {
    if (stageOf(&op) != Stage::main || !isCollective(&op))
      continue;
    SetVector<Operation *> readers;
    readers.insert(&op);
    bool isLate = llvm::none_of(op.getOperands(), [&](Value value) { return carryOf(value); });
    for (size_t i = 0; i < readers.size() && isLate; ++i) {
      isLate = hasNoEffect(readers[i]) && stageOf(readers[i]) != Stage::early;
      for (Operation *user : readers[i]->getUsers())
        if (Operation *reader = inBody(user); reader != body->getTerminator())
          readers.insert(reader);
    }
    auto isInside = [&](Operation *each) {
      return readers.contains(each) || stageOf(each) == Stage::late;
    };
    for (auto [carry, next] : llvm::zip(loop.getRegionIterArgs(), yielded)) {
      Operation *source = inBody(next);
      bool isRead = llvm::any_of(carry.getUsers(), [&](Operation *user) {
        Operation *reader = inBody(user);
        return reader != body->getTerminator() && isInside(reader);
      });
      if (!isRead && !(source && isInside(source)))
        continue;
      // The carry belongs to the late stage as a whole.
      isLate &= source && isInside(source) && llvm::all_of(carry.getUsers(), [&](Operation *user) {
                  return isInside(inBody(user));
                });
    }
    if (isLate && take(op.getOperandTypes()))
      for (Operation *reader : readers)
        stages[reader] = Stage::late;
  }
  for (auto [carry, next] : llvm::zip(loop.getRegionIterArgs(), yielded)) {
    Operation *source = inBody(next);
    stageOfCarry.push_back(source && stageOf(source) == Stage::late ? Stage::late : Stage::main);
  }
}

/// Values passed from the finished stages of an iteration of this age to the others.
SmallVector<Value> LoopPrefetcher::crossing(int64_t age) const {
  SmallVector<Value> values;
  auto shiftOfOp = [&](Operation *op) { return shiftOf(stageOf(op)); };
  for (Operation &op : body->without_terminator()) {
    if (isFree(&op) || shiftOfOp(&op) >= age)
      continue;
    for (Value result : op.getResults()) {
      bool isNeeded = llvm::any_of(result.getUses(), [&](OpOperand &use) {
        Operation *reader = inBody(use.getOwner());
        if (reader == body->getTerminator())
          return shiftOf(stageOfCarry[use.getOperandNumber()]) >= age;
        return shiftOfOp(reader) >= age;
      });
      if (isNeeded)
        values.push_back(result);
    }
  }
  return values;
}

Value LoopPrefetcher::shifted(Value index, int64_t by) {
  return by == 0 ? index : arith::AddIOp::create(builder, loc, index, constant(by)).getResult();
}

/// Copies free ops to their readers.
Value LoopPrefetcher::emitFree(Value value, IRMapping &map) {
  Operation *op = inBody(value);
  if (!op || !isFree(op) || map.contains(value))
    return map.lookupOrDefault(value);
  forEachRead(op, [&](Value read) { emitFree(read, map); });
  builder.clone(*op, map);
  return map.lookup(value);
}

void LoopPrefetcher::emit(Stage stage, Flight &flight) {
  IRMapping map = flight.values;
  map.map(loop.getInductionVar(), flight.index);
  for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (stageOfCarry[index] == stage)
      map.map(argument, state[index]);
  for (Operation &op : body->without_terminator()) {
    if (isFree(&op) || stageOf(&op) != stage)
      continue;
    forEachRead(&op, [&](Value read) { emitFree(read, map); });
    Operation *copy = builder.clone(op, map);
    if (isa<CollectiveOpInterface>(copy))
      copy->setAttr(kIteration, builder.getI64IntegerAttr(flight.number));
    for (Value result : op.getResults())
      flight.values.map(result, map.lookup(result));
  }
  for (auto [index, next] : llvm::enumerate(loop.getYieldedValues()))
    if (stageOfCarry[index] == stage)
      state[index] = emitFree(next, map);
}

/// One step: a stage of each iteration in progress, and of the next one.
void LoopPrefetcher::emitTime(std::optional<Value> next) {
  flights.push_front({next.value_or(Value()), count++, {}});
  auto stageAt = [&](Stage stage) {
    auto age = static_cast<size_t>(shiftOf(stage));
    if (age < flights.size() && flights[age].index)
      emit(stage, flights[age]);
  };
  if (depth > mainShift)
    stageAt(Stage::late);
  if (mainShift > 0)
    stageAt(Stage::early);
  stageAt(Stage::main);
  if (std::ssize(flights) > depth)
    flights.pop_back();
}

void LoopPrefetcher::writeLayouts(scf::ForOp made, ArrayRef<Value> values) {
  for (auto [result, like] : llvm::zip_equal(made.getResults(), values)) {
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    setGlobalType(result, getGlobalType(like));
    if (ShardingAttr sharding = getSharding(like))
      setSharding(result, sharding);
  }
}

/// The loop with two steps per iteration, starting with the early stage of iteration `first`.
void LoopPrefetcher::emitLoop(int64_t first, int64_t pairs) {
  SmallVector<Value> inits = state, like(loop.getResults());
  std::vector<SmallVector<Value>> values;
  for (int64_t age = 1; age <= depth; ++age) {
    values.push_back(crossing(age));
    for (Value value : values.back()) {
      inits.push_back(flights[age - 1].values.lookup(value));
      like.push_back(value);
    }
  }
  Value begin = constant(from + first * step), end = constant(from + (first + 2 * pairs) * step);
  auto made = scf::ForOp::create(builder, loc, begin, end, constant(2 * step), inits);
  writeLayouts(made, like);
  // Maps values of the loop, its arguments or results, to those of the iterations in progress.
  auto enter = [&](ValueRange list, llvm::function_ref<Value(int64_t)> indexAt) {
    llvm::copy(list.take_front(state.size()), state.begin());
    list = list.drop_front(state.size());
    flights.clear();
    for (int64_t age = 1; age <= depth; ++age) {
      Flight flight{indexAt(-age), count - age, {}};
      flight.values.map(values[age - 1], list.take_front(values[age - 1].size()));
      list = list.drop_front(values[age - 1].size());
      flights.push_back(std::move(flight));
    }
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    if (!made.getBody()->mightHaveTerminator())
      builder.setInsertionPointToEnd(made.getBody());
    else
      builder.setInsertionPoint(made.getBody()->getTerminator());
    Value counter = made.getInductionVar();
    SmallVector<Value> indices;
    auto indexAt = [&](int64_t by) {
      indices.push_back(shifted(counter, by * step));
      return indices.back();
    };
    enter(made.getRegionIterArgs(), indexAt);
    emitTime(counter);
    emitTime(indexAt(1));
    SmallVector<Value> next = state;
    for (int64_t age = 1; age <= depth; ++age)
      for (Value value : values[age - 1])
        next.push_back(flights[age - 1].values.lookup(value));
    if (made.getBody()->mightHaveTerminator())
      made.getBody()->getTerminator()->erase();
    builder.setInsertionPointToEnd(made.getBody());
    scf::YieldOp::create(builder, loc, next);
    for (Value index : indices)
      if (Operation *op = index.getDefiningOp(); op && op->use_empty()) {
        Operation *by = op->getOperand(1).getDefiningOp();
        op->erase();
        by->erase();
      }
  }
  int64_t after = first + 2 * pairs;
  enter(made.getResults(), [&](int64_t by) { return constant(from + (after + by) * step); });
}

bool LoopPrefetcher::run() {
  if (!readBounds())
    return false;
  findEarly();
  findLate();
  auto has = [&](Stage stage) {
    return llvm::any_of(body->without_terminator(), [&](Operation &op) {
      return !isFree(&op) && stageOf(&op) == stage && isCollective(&op);
    });
  };
  mainShift = has(Stage::early) ? 1 : 0;
  depth = mainShift + (has(Stage::late) ? 1 : 0);
  if (depth == 0 || trips <= depth)
    return false;
  state.assign(loop.getInitArgs().begin(), loop.getInitArgs().end());
  int64_t time = 0, pairs = (trips - depth) / 2;
  auto indexOf = [&](int64_t iteration) { return constant(from + iteration * step); };
  for (; time < depth; ++time)
    emitTime(indexOf(time));
  if (pairs > 1) {
    emitLoop(time, pairs);
    time += 2 * pairs;
  }
  for (; time < trips; ++time)
    emitTime(indexOf(time));
  for (; time < trips + depth; ++time)
    emitTime(std::nullopt);
  loop.replaceAllUsesWith(state);
  loop.erase();
  return true;
}

namespace {
struct DistPrefetchLoops : dist::impl::DistPrefetchLoopsBase<DistPrefetchLoops> {
  using DistPrefetchLoopsBase::DistPrefetchLoopsBase;

  void runOnOperation() override {
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    FailureOr<double> budget =
        readMemoryBudget(getOperation(), "dist-prefetch-loops", memoryBudget);
    if (failed(budget))
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function) || !function.getBody().hasOneBlock())
        continue;
      SmallVector<scf::ForOp> loops;
      function.walk([&](scf::ForOp loop) {
        WalkResult nested = loop.getBody()->walk([](Operation *op) {
          return isa<LoopLikeOpInterface>(op) ? WalkResult::interrupt() : WalkResult::advance();
        });
        if (!nested.wasInterrupted())
          loops.push_back(loop);
      });
      if (loops.empty())
        continue;
      double peak = localPeakOf(function).bytes;
      double memory = *budget > 0 ? *budget - peak : (kOverlapMemory - 1) * peak;
      for (scf::ForOp loop : loops) {
        StepCosts costs(function, meshes, cost->topology);
        LoopPrefetcher(loop, costs, memory).run();
      }
    }
  }
};
} // namespace
