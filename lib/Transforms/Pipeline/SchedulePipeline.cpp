//===- SchedulePipeline.cpp - Order the micro-batches of a pipeline -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageGraph.h"

#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Transforms/Pipeline/Passes.h"
#include "tessera/Transforms/Pipeline/SimulateStep.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace tessera::dist {
#define GEN_PASS_DEF_DISTSCHEDULEPIPELINE
#include "tessera/Transforms/Pipeline/Passes.h.inc"
} // namespace tessera::dist

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::pipeline;

/// Selects the schedule with the shortest modelled step.
static constexpr llvm::StringLiteral kAuto = "auto";
static constexpr double kGiB = 1 << 30;

static StringRef nameOf(pipeline::Pass pass) {
  return pass == pipeline::Pass::forward    ? kForwardPass
         : pass == pipeline::Pass::backward ? kBackwardPass
                                            : kWeightPass;
}

/// Reorders the ops of a part: head, segments in order, update.
static void apply(const StageOps &ops, ArrayRef<Segment> order, int64_t place, int64_t meshes) {
  func::FuncOp function = ops.function;
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  auto move = [&](ArrayRef<Operation *> list) {
    for (Operation *op : list)
      op->moveBefore(end);
  };
  auto begin = [&](StringRef pass, int64_t microBatch, int64_t stage) {
    SegmentOp::create(builder, function.getLoc(), pass, microBatch, stage);
  };
  for (SegmentOp old : llvm::make_early_inc_range(function.getOps<SegmentOp>()))
    old.erase();
  move(ops.head);
  for (const Segment &segment : order) {
    auto list = ops.segments.find({segment.pass, segment.microBatch, segment.chunk});
    if (list == ops.segments.end())
      continue;
    begin(nameOf(segment.pass), segment.microBatch, segment.chunk * meshes + place);
    move(list->second);
  }
  begin(kUpdatePass, 0, place);
  move(ops.update);
}

/// Checks that each op comes after its operands.
static LogicalResult checkOrder(func::FuncOp function) {
  llvm::DenseSet<Operation *> seen; // looked up, never iterated
  for (Operation &op : function.getBody().front()) {
    WalkResult result = op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (!source || source->getBlock() != op.getBlock() || seen.contains(source))
          continue;
        InFlightDiagnostic error =
            op.emitError() << "reads a value of a later micro-batch, which a pipeline computes "
                           << "later; compute shared values before or after all micro-batches";
        error.attachNote(source->getLoc()) << "computed here";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    seen.insert(&op);
  }
  return success();
}

namespace {
struct DistSchedulePipeline : dist::impl::DistSchedulePipelineBase<DistSchedulePipeline> {
  using DistSchedulePipelineBase::DistSchedulePipelineBase;

  void runOnOperation() override {
    if (!(memoryBudget >= 0 && std::isfinite(memoryBudget))) { // rejects NaN
      getOperation().emitError() << "dist-schedule-pipeline: memory-budget "
                                 << llvm::formatv("{0}", static_cast<double>(memoryBudget)).str()
                                 << " is not valid: expected a number of GiB, or 0 for no budget";
      return signalPassFailure();
    }
    llvm::MapVector<StringAttr, SmallVector<func::FuncOp>> programs;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!isLocalView(function) || !function.getBody().hasOneBlock())
        continue;
      if (!schedule.empty() && !function->hasAttr(kSchedule))
        function->setAttr(kSchedule, StringAttr::get(&getContext(), schedule));
      auto partOf = function->getAttrOfType<StringAttr>(DistDialect::kPartOf);
      if (function->hasAttr(kSchedule))
        programs[partOf ? partOf : function.getSymNameAttr()].push_back(function);
    }
    for (auto &[name, functions] : programs)
      if (failed(scheduleParts(functions)))
        return signalPassFailure();
  }

  /// The schedule of a program by its name; nothing for auto.
  FailureOr<std::optional<Schedule>> scheduleOf(func::FuncOp function) {
    std::string name = schedule;
    if (name.empty())
      name = function->getAttrOfType<StringAttr>(kSchedule).str();
    std::optional<Schedule> known = parseSchedule(name);
    if (known || name == kAuto)
      return known;
    return function.emitError() << "unknown schedule '" << name << "'; schedules are "
                                << scheduleNames() << ", " << kAuto;
  }

  LogicalResult scheduleParts(ArrayRef<func::FuncOp> functions) {
    FailureOr<std::optional<Schedule>> chosen = scheduleOf(functions.front());
    if (failed(chosen))
      return failure();
    for (func::FuncOp function : functions) // of an earlier schedule
      for (SegmentOp old : llvm::make_early_inc_range(function.getOps<SegmentOp>()))
        old.erase();
    StageGraph graph;
    if (failed(graph.read(functions)))
      return failure();
    if (!*chosen)
      return chooseSchedule(graph, functions);
    func::FuncOp first = functions.front();
    if (std::optional<std::string> why = refuse(**chosen, graph.getShape()))
      return first.emitError() << "schedule '" << std::string(toString(**chosen)) << "' " << *why;
    setSchedule(functions, **chosen);
    applyAll(graph, **chosen);
    if (failed(checkOrders(graph)))
      return failure();
    return checkMemory(graph, **chosen);
  }

  void setSchedule(ArrayRef<func::FuncOp> functions, Schedule schedule) {
    for (func::FuncOp function : functions)
      function->setAttr(kSchedule, StringAttr::get(&getContext(), std::string(toString(schedule))));
  }

  static void applyAll(const StageGraph &graph, Schedule schedule) {
    auto orders = pipeline::order(schedule, graph.getShape());
    for (auto [place, stage] : llvm::enumerate(graph.getStages()))
      apply(stage, orders[place], static_cast<int64_t>(place), graph.getShape().meshes);
  }

  static LogicalResult checkOrders(const StageGraph &graph) {
    for (const StageOps &stage : graph.getStages())
      if (failed(checkOrder(stage.function)))
        return failure();
    return success();
  }

  /// Chooses the schedule with the shortest modelled step within the budget; among equal ones that
  /// with the least memory.
  LogicalResult chooseSchedule(const StageGraph &graph, ArrayRef<func::FuncOp> functions) {
    FailureOr<CostOptions> costs = readCostOptions(getOperation(), "time", topology);
    if (failed(costs))
      return failure();
    double budget =
        memoryBudget > 0 ? memoryBudget * kGiB : std::numeric_limits<double>::infinity();
    std::optional<std::tuple<double, double, Schedule>> best, least;
    for (Schedule each : allSchedules()) {
      if (refuse(each, graph.getShape()))
        continue;
      setSchedule(functions, each);
      applyAll(graph, each);
      if (failed(checkOrders(graph)))
        return failure();
      FailureOr<StepReport> step = simulateStep(getOperation(), costs->topology);
      if (failed(step))
        return failure();
      double seconds = step->seconds;
      double bytes = largestOf(graph).second;
      if (bytes <= budget)
        best = std::min(best.value_or(std::tuple(seconds, bytes, each)), {seconds, bytes, each});
      least = std::min(least.value_or(std::tuple(bytes, seconds, each)), {bytes, seconds, each});
    }
    Schedule taken = std::get<Schedule>(best ? *best : *least);
    setSchedule(functions, taken);
    applyAll(graph, taken);
    return best ? success() : checkMemory(graph, taken);
  }

  /// The part with the largest peak, and its bytes.
  static std::pair<func::FuncOp, double> largestOf(const StageGraph &graph) {
    std::pair<func::FuncOp, double> largest;
    for (const StageOps &stage : graph.getStages())
      if (double bytes = localPeakOf(stage.function).bytes; bytes > largest.second)
        largest = {stage.function, bytes};
    return largest;
  }

  LogicalResult checkMemory(const StageGraph &graph, Schedule chosen) {
    double budget = memoryBudget * kGiB;
    if (budget == 0)
      return success();
    auto [function, bytes] = largestOf(graph);
    if (bytes <= budget)
      return success();
    std::pair<double, Schedule> least{bytes, chosen};
    for (Schedule other : allSchedules()) {
      if (refuse(other, graph.getShape()))
        continue;
      applyAll(graph, other);
      least = std::min(least, {largestOf(graph).second, other});
    }
    applyAll(graph, chosen);
    auto symbol = function->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh);
    StringRef mesh = symbol ? symbol.getValue() : "";
    if (least.second == chosen)
      return function.emitError() << "no schedule fits into " << bytesText(budget)
                                  << " per device; '" << std::string(toString(chosen))
                                  << "' takes least, " << bytesText(bytes) << " on mesh '" << mesh
                                  << "': use more stages or smaller micro-batches";
    return function.emitError() << "schedule '" << std::string(toString(chosen)) << "' takes "
                                << bytesText(bytes) << " on mesh '" << mesh << "', the budget is "
                                << bytesText(budget) << "; '" << std::string(toString(least.second))
                                << "' takes least, " << bytesText(least.first);
  }
};
} // namespace
