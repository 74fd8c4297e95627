//===- OverlapCollectives.cpp - Overlap collectives with computation ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits each block into kernels, as code generation will form them, and collectives;
// OverlapSchedule.h orders them. A schedule beyond the memory limit is replaced by one
// with stricter limits, finally by none.
//
//===----------------------------------------------------------------------===//

#include "OverlapSchedule.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Planning/StepCosts.h"
#include "tessera/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tessera::dist {
#define GEN_PASS_DEF_DISTOVERLAPCOLLECTIVES
#include "tessera/Transforms/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Minimum gain of a block as a fraction of its time; below it the block is unchanged.
static constexpr double kLeastGain = 0.001;

static constexpr OverlapLimits kLimits[] = {
    {true, true, 2}, {true, false, 2}, {false, false, 2}, {false, false, 1}};

namespace {

int64_t bytesOf(TypeRange types) {
  int64_t bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += tensor.getNumElements() * bytesPerElement(tensor.getElementType());
  return bytes;
}

/// The steps of a block, and the ops of each step.
class BlockSteps {
public:
  /// `keepsOrder`: collectives keep their order, too.
  BlockSteps(Block &block, const StepCosts &costs, bool keepsOrder);

  bool hasCollectives() const { return numCollectives > 0; }
  /// Reorders the ops by the schedule.
  void apply(const OverlapLimits &limits);
  /// Reverts `apply`.
  void undo();

private:
  OverlapStep describe(ArrayRef<Operation *> ops, bool keepsOrder);
  int queueOf(CollectiveOpInterface op, const CommunicationCost &cost) {
    return queues.try_emplace(DeviceClock::queueOf(op, cost), queues.size()).first->second;
  }
  double secondsOf(Operation *op) const;

  Block &block;
  const StepCosts &costs;
  std::vector<std::vector<Operation *>> ops; ///< by step
  std::vector<OverlapStep> steps;
  std::vector<Operation *> before; ///< the order of the ops before `apply`
  std::vector<StartOp> starts;
  std::map<DeviceClock::Queue, int> queues;
  int numCollectives = 0;
};

} // namespace

/// Whether an op must keep its order among ordered ops: it communicates or has side effects.
static bool isOrdered(Operation *op) {
  return !isa<CollectiveOpInterface>(op) && !isa<linalg::LinalgOp>(op) && !isMemoryEffectFree(op);
}

/// Whether the received data takes memory in addition to the sent data: results are larger, or
/// other ops send or read the operand later, as for the blocks of keys in a ring. Not for results
/// of the function, such as updated weights, which are not freed however late they are received.
static bool addsMemory(Operation *op) {
  if (llvm::all_of(op->getUsers(), llvm::IsaPred<func::ReturnOp>))
    return false;
  if (bytesOf(op->getResultTypes()) > bytesOf(op->getOperandTypes()))
    return true;
  return isa<ExchangeOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
           return llvm::any_of(operand.getUsers(), [&](Operation *user) {
             Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
             return here && op->isBeforeInBlock(here);
           });
         });
}

/// Sequential seconds of one execution, with all ops in its regions.
double BlockSteps::secondsOf(Operation *op) const {
  double seconds = 0;
  op->walk([&](Operation *inner) {
    double once = costs.computeSeconds(inner);
    if (auto collective = dyn_cast<CollectiveOpInterface>(inner))
      if (FailureOr<CommunicationCost> cost = costs.communicationOf(collective); succeeded(cost))
        once = cost->timing.seconds;
    seconds += inner == op ? once : once * tripsOf(inner) / tripsOf(op);
    return isa<linalg::LinalgOp>(inner) ? WalkResult::skip() : WalkResult::advance();
  });
  return seconds;
}

OverlapStep BlockSteps::describe(ArrayRef<Operation *> members, bool keepsOrder) {
  OverlapStep step;
  Operation *first = members.front();
  auto collective = dyn_cast<CollectiveOpInterface>(first);
  FailureOr<CommunicationCost> cost = failure();
  if (collective)
    cost = costs.communicationOf(collective);
  if (succeeded(cost) && !cost->isLocal()) {
    step.queue = queueOf(collective, *cost);
    step.seconds = cost->timing.seconds;
    step.grows = addsMemory(first);
    step.isOrdered = keepsOrder;
    ++numCollectives;
    return step;
  }
  for (Operation *op : members) {
    step.seconds += secondsOf(op);
    step.isOrdered |= isOrdered(op);
    for (Region &region : op->getRegions())
      region.walk([&](CollectiveOpInterface inner) {
        if (FailureOr<CommunicationCost> cost = costs.communicationOf(inner);
            succeeded(cost) && !cost->isLocal())
          step.uses.push_back(queueOf(inner, *cost));
      });
  }
  llvm::sort(step.uses);
  step.uses.erase(llvm::unique(step.uses), step.uses.end());
  return step;
}

BlockSteps::BlockSteps(Block &block, const StepCosts &costs, bool keepsOrder)
    : block(block), costs(costs) {
  ops = Liveness::kernelsOf(block);
  llvm::DenseMap<Operation *, unsigned> stepOf; // looked up, never iterated
  for (auto [index, members] : llvm::enumerate(ops)) {
    OverlapStep step = describe(members, keepsOrder);
    auto read = [&](Value value) {
      if (auto source = stepOf.find(value.getDefiningOp());
          source != stepOf.end() && source->second != index)
        step.sources.push_back(source->second);
    };
    for (Operation *op : members) {
      stepOf[op] = index;
      llvm::for_each(op->getOperands(), read);
      SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      llvm::for_each(captured, read);
    }
    llvm::sort(step.sources);
    step.sources.erase(llvm::unique(step.sources), step.sources.end());
    steps.push_back(std::move(step));
  }
}

void BlockSteps::apply(const OverlapLimits &limits) {
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  llvm::DenseMap<unsigned, StartOp> started; // looked up, never iterated
  OverlapSchedule schedule = scheduleOverlap(steps, limits);
  double inTurn = 0;
  for (const OverlapStep &step : steps)
    inTurn += step.seconds;
  if (schedule.seconds > inTurn * (1 - kLeastGain))
    return;
  for (Operation &op : block.without_terminator())
    before.push_back(&op);
  for (const OverlapEvent &event : schedule.events) {
    Operation *op = ops[event.step].front();
    if (event.kind == OverlapEvent::Kind::run) {
      for (Operation *member : ops[event.step])
        member->moveBefore(terminator);
    } else if (event.kind == OverlapEvent::Kind::start) {
      SmallVector<Type> types(op->getResultTypes());
      auto start = StartOp::create(builder, op->getLoc(), TokenType::get(op->getContext(), types));
      started[event.step] = start;
      starts.push_back(start);
      Block &body = start.getBody().emplaceBlock();
      op->moveBefore(&body, body.end());
      OpBuilder inside = OpBuilder::atBlockEnd(&body);
      YieldOp::create(inside, op->getLoc(), op->getResults());
    } else {
      StartOp start = started.lookup(event.step);
      auto wait = WaitOp::create(builder, op->getLoc(), op->getResultTypes(), start.getToken());
      Operation *yield = start.getBody().front().getTerminator();
      op->replaceUsesWithIf(wait.getResults(),
                            [&](OpOperand &use) { return use.getOwner() != yield; });
    }
  }
}

void BlockSteps::undo() {
  for (StartOp start : starts) {
    Operation *collective = start.getCollective();
    WaitOp wait = start.getWait();
    wait->replaceAllUsesWith(collective->getResults());
    wait.erase();
    start.getBody().front().getTerminator()->erase();
    collective->moveBefore(start);
    start.erase();
  }
  starts.clear();
  for (Operation *op : std::exchange(before, {}))
    op->moveBefore(block.getTerminator());
}

/// Schedules all blocks of a function such that its values take at most `budget` bytes, or without
/// a budget (0) little more than without overlap.
static void overlap(func::FuncOp function, const StepCosts &costs, bool keepsOrder, double budget) {
  std::vector<BlockSteps> blocks;
  function.walk([&](Operation *op) {
    if (op != function && !isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
      return WalkResult::skip();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (BlockSteps steps(block, costs, keepsOrder); steps.hasCollectives())
          blocks.push_back(std::move(steps));
    return WalkResult::advance();
  });
  if (blocks.empty())
    return;
  double peak = localPeakOf(function).bytes;
  double most = std::max(peak, budget > 0 ? budget : kOverlapMemory * peak);
  for (const OverlapLimits &limits : kLimits) {
    if (limits.reorders && function->hasAttr(kSchedule))
      continue; // the schedule of the pipeline fixes its order
    for (BlockSteps &steps : blocks)
      steps.apply(limits);
    if (localPeakOf(function).bytes <= most)
      return;
    for (BlockSteps &steps : blocks)
      steps.undo();
  }
}

namespace {
struct DistOverlapCollectives : dist::impl::DistOverlapCollectivesBase<DistOverlapCollectives> {
  using DistOverlapCollectivesBase::DistOverlapCollectivesBase;

  void runOnOperation() override {
    FailureOr<double> budget =
        readMemoryBudget(getOperation(), "dist-overlap-collectives", memoryBudget);
    if (failed(budget))
      return signalPassFailure();
    FailureOr<CostOptions> cost = readCostOptions(getOperation(), "time", topology);
    if (failed(cost))
      return signalPassFailure();
    MeshTable meshes(getOperation());
    SmallVector<func::FuncOp> functions;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isLocalView(function) && function.getBody().hasOneBlock())
        functions.push_back(function);
    // Functions on several meshes communicate by transfers, in the order of all their steps.
    for (func::FuncOp function : functions)
      overlap(function, StepCosts(function, meshes, cost->topology), functions.size() > 1, *budget);
  }
};
} // namespace
