//===- SearchWithin.cpp - Search between propagation's arguments -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation chooses among strategies that are propagated from what is annotated. A
// value that is moved once to a dimension that nobody cut, and back after a chain of
// ops, is none of them. A search finds it. So where a small program communicates more
// than it computes, the arguments and results keep the shardings that propagation gave
// them, the values between are searched, and the searched program is taken if it is
// much better by its modelled step or its bytes, and worse in none of them.
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Transforms/Pipeline/SimulateStep.h"

using namespace mlir;
using namespace tessera;

/// Programs with more ops, or on more devices, are not searched.
static constexpr int64_t kMostOps = 1500, kMostDevices = 64;
/// The part of a step that communication must take, and that of a step, or of the bytes, that must
/// be saved; of the other measure at least the small part. Less is not worth a plan that is harder
/// to follow.
static constexpr double kLeastPart = 0.05, kLeastGain = 1.0 / 3, kSmallGain = 0.05;
/// Memory and computation of a device, relative to propagation's plan.
static constexpr double kMostMemory = 1.25, kMostWork = 1.05;
/// The time of computing with as much arithmetic, where the step is at most this part.
static constexpr double kMostWorkOfShort = 2, kShortStep = 0.5;
/// Arithmetic of a device over its part: more is searched although little is sent.
static constexpr double kMostRepeated = 1.5;
/// Fewer bytes do not matter.
static constexpr int64_t kLeastBytes = 4096;

static int64_t devicesOf(ModuleOp module) {
  int64_t devices = 1;
  for (int64_t extent : (*module.getOps<dist::ProcessMeshOp>().begin()).getShape())
    devices *= extent;
  return devices;
}

/// The only function of a program that has few ops on one mesh with several devices.
static func::FuncOp smallFunction(ModuleOp module) {
  auto functions = module.getOps<func::FuncOp>();
  auto meshes = module.getOps<dist::ProcessMeshOp>();
  if (!llvm::hasSingleElement(functions) || !llvm::hasSingleElement(meshes))
    return {};
  int64_t devices = devicesOf(module), count = 0;
  if (devices < 2 || devices > kMostDevices)
    return {};
  (*functions.begin()).walk([&](Operation *) { ++count; });
  return count <= kMostOps ? *functions.begin() : func::FuncOp();
}

/// Gives arguments and results of `to` the shardings of `from`; if `ofState`, only arguments and
/// the results that feed them.
static void copyShardings(func::FuncOp from, func::FuncOp to, bool ofState) {
  dist::SignatureAttrs source(from), target(to);
  auto copy = [](NamedAttrList &of, NamedAttrList &into) {
    if (Attribute sharding = of.get(dist::DistDialect::kSharding))
      into.set(dist::DistDialect::kSharding, sharding);
  };
  for (unsigned i = 0; i < from.getNumArguments(); ++i)
    copy(source.ofArgument(i), target.ofArgument(i));
  for (unsigned i = 0; i < from.getNumResults(); ++i)
    if (!ofState || source.ofResult(i).get(dist::DistDialect::kFeeds))
      copy(source.ofResult(i), target.ofResult(i));
  target.write();
}

/// Whether the time limit ended the search, so that another machine would find another plan.
static bool isStopped(ModuleOp module) {
  auto found = module->getAttrOfType<DictionaryAttr>(dist::DistDialect::kSearch);
  auto stopped = found ? found.getAs<BoolAttr>("stopped_by_time") : BoolAttr();
  return stopped && stopped.getValue();
}

namespace {
/// A compiled program.
struct Measures {
  double step, computing, arithmetic, bytes, memory;
};
} // namespace

static sharding::Topology withoutMemory(sharding::Topology topology) {
  topology.device.memoryRate = std::numeric_limits<double>::infinity();
  return topology;
}

static FailureOr<Measures> measure(ModuleOp program, const Report &report,
                                   const sharding::Topology &topology) {
  FailureOr<pipeline::StepReport> step = pipeline::simulateStep(program, withoutMemory(topology));
  if (failed(step))
    return failure();
  double arithmetic = 0;
  for (const pipeline::PartTimeline &part : step->parts)
    arithmetic += part.computeSeconds;
  return Measures{report.stepSeconds, report.computeSeconds, arithmetic,
                  static_cast<double>(report.wireBytesTotal()),
                  static_cast<double>(report.peakMemoryBytes)};
}

/// Seconds of the arithmetic of a normalized function on one of `devices` devices.
static double arithmeticOf(func::FuncOp function, const sharding::Topology &machine,
                           int64_t devices) {
  sharding::Topology topology = withoutMemory(machine);
  dist::OpCosts costs(function, topology);
  double seconds = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!dist::hasCost(op))
      return WalkResult::advance();
    seconds += dist::tripsOf(op) * costs.seconds(op, devices);
    return WalkResult::skip();
  });
  return seconds;
}

/// Whether a program is better in step and bytes, and much better in one of them, with little more
/// memory and computation. A step half as long may read and write memory for longer.
static bool isMuchBetter(const Measures &found, const Measures &plain, bool byBytes) {
  double step = found.step / plain.step, bytes = found.bytes / plain.bytes,
         computing = found.computing / plain.computing;
  if (found.memory > kMostMemory * plain.memory || step > 1 || bytes > 1 ||
      computing > (step <= kShortStep ? kMostWorkOfShort : kMostWork))
    return false;
  bool isMuchShorter = step <= 1 - kLeastGain, isMuchLess = bytes <= 1 - kLeastGain;
  if (computing <= kMostWork && (byBytes ? isMuchLess : isMuchShorter))
    return true;
  // Whoever cuts a batch wants its work to be divided, even where every device could do all of it.
  return found.arithmetic <= kMostWork * plain.arithmetic &&
         (isMuchShorter || (isMuchLess && step <= 1 - kSmallGain));
}

LogicalResult Compilation::searchWithin(const PipelineOptions &pipeline, Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(runPhases(pipeline, from, start)))
    return failure();
  if (!smallFunction(*program))
    return runPhases(pipeline, start, Phase::scheduled);
  OwningOpRef<ModuleOp> searched = program->clone();
  if (failed(runPhases(pipeline, start, Phase::propagated)))
    return failure();
  auto copy = [&](bool ofState) {
    copyShardings(*program->getOps<func::FuncOp>().begin(),
                  *searched->getOps<func::FuncOp>().begin(), ofState);
  };
  copy(/*ofState=*/false);
  {
    // State is open until then; with overlap the updates are divided or not.
    OwningOpRef<ModuleOp> propagated = pipeline.overlaps ? program->clone() : nullptr;
    if (failed(runPhases(pipeline, Phase::propagated, Phase::resharded)))
      return failure();
    copy(/*ofState=*/true);
    if (propagated)
      program = std::move(propagated);
  }
  Phase reached = pipeline.overlaps ? Phase::propagated : Phase::resharded;
  if (failed(runPhases(pipeline, reached, Phase::scheduled)))
    return failure();
  FailureOr<Report> plain = report();
  if (failed(plain))
    return failure();
  if (plain->wireBytesTotal() < kLeastBytes)
    return success();
  FailureOr<dist::CostOptions> cost = dist::readCostOptions(*program, "time", pipeline.topology);
  FailureOr<Measures> other = failure();
  if (succeeded(cost))
    other = measure(*program, *plain, cost->topology);
  if (failed(other))
    return failure();
  int64_t devices = devicesOf(*program);
  double part = arithmeticOf(*searched->getOps<func::FuncOp>().begin(), cost->topology, devices) /
                static_cast<double>(devices);
  if (plain->communicationSeconds() < kLeastPart * plain->stepSeconds &&
      other->arithmetic <= kMostRepeated * part)
    return success();

  auto times = seconds;
  std::swap(program, searched); // now the propagated one
  PipelineOptions options = pipeline;
  options.search.mode = "dynamic_programming";
  options.search.fullyUseDevices = false;
  bool better = false;
  origins.pause(true);
  {
    ScopedDiagnosticHandler quiet(&mlirContext, [](Diagnostic &) {});
    if (succeeded(runPhases(options, start, Phase::scheduled)) && !isStopped(*program)) {
      FailureOr<Report> found = report();
      FailureOr<Measures> mine = failure();
      if (succeeded(found))
        mine = measure(*program, *found, cost->topology);
      better = succeeded(mine) && isMuchBetter(*mine, *other, pipeline.objective == "bytes");
    }
  }
  origins.pause(false);
  seconds = std::move(times);
  if (!better) {
    program = std::move(searched);
    return success();
  }
  (*program)->removeAttr(dist::DistDialect::kSearch);
  func::FuncOp function = *program->getOps<func::FuncOp>().begin();
  emitRemark(function.getLoc())
      << "between its arguments and results the program is searched: propagation sends "
      << plain->wireBytesTotal() << " bytes";
  return success();
}
