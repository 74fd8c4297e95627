//===- SearchWithin.cpp - Search between propagation's arguments ----------===//
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
// Propagation leaves latencies out, since collectives are joined later. Where the step
// is mostly latencies all the same, as in unrolled recurrences, the program is also
// compiled with latencies, as if no collectives were joined, and without the cuts that no
// tensor of an op has, which are reshards at least. Where even computing all of it on each
// device would take a fraction of the step, as of a factorization, whose rows depend on each
// other, the program is compiled with whole arguments, too.
//
//===----------------------------------------------------------------------===//

#include "Variants.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Pipeline/SimulateStep.h"

using namespace mlir;
using namespace tessera;

/// Programs with more ops, or on more devices, are not searched, or not compiled with latencies.
static constexpr int64_t kMostOps = 1500, kMostDevices = 64, kMostOpsCompiledTwice = 20000;
/// The part of a step that communication must take, and that of a step, or of the bytes, that must
/// be saved; of the other measure at least the small part. Less is not worth a plan that is harder
/// to follow.
static constexpr double kLeastPart = 0.05, kLeastGain = 1.0 / 3, kSmallGain = 0.05;
/// Memory of a device, also where the step is half as long, and computation, relative to
/// propagation's plan.
static constexpr double kMostMemory = 1.25, kMostMemoryOfShort = 1.5, kMostWork = 1.05;
/// Bytes that a device has to spare.
static constexpr double kLittleMemory = 1 << 26;
/// The time of computing with as much arithmetic, where the step is at most this part.
static constexpr double kMostWorkOfShort = 2, kShortStep = 0.5;
/// The part of a step of many latencies at which repeated work counts no longer.
static constexpr double kFraction = 0.25;
/// Arithmetic of a device over its part: more is searched although little is sent.
static constexpr double kMostRepeated = 1.5;
/// Fewer bytes do not matter.
static constexpr int64_t kLeastBytes = 4096;
/// Latencies count where more collectives than this take the rest of the step.
static constexpr int64_t kManyCollectives = 12;
/// Whoever cuts a batch wants its work to be divided, even where every device could do all of it.
/// So arguments are gathered only in place of more collectives, as one for each row of a matrix,
/// and if the step is this part then.
static constexpr int64_t kCollectivesOfRows = 256;
static constexpr double kStepOfGathered = 1.0 / 16;
static constexpr double kMostWithoutLatencies = 0.5, kLittleMore = 1.25;

static int64_t devicesOf(ModuleOp module) {
  int64_t devices = 1;
  for (int64_t extent : (*module.getOps<dist::ProcessMeshOp>().begin()).getShape())
    devices *= extent;
  return devices;
}

/// The only function of a program that has at most so many ops on one mesh with several devices.
static func::FuncOp smallFunction(ModuleOp module, int64_t mostOps) {
  auto functions = module.getOps<func::FuncOp>();
  auto meshes = module.getOps<dist::ProcessMeshOp>();
  if (!llvm::hasSingleElement(functions) || !llvm::hasSingleElement(meshes))
    return {};
  int64_t devices = devicesOf(module), count = 0;
  if (devices < 2 || devices > kMostDevices)
    return {};
  (*functions.begin()).walk([&](Operation *) { ++count; });
  return count <= mostOps ? *functions.begin() : func::FuncOp();
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
                  static_cast<double>(report.wireBytesTotal()), peakOf(program)};
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

/// Whether it needs little more memory.
static bool fits(const Measures &found, const Measures &plain) {
  bool isShort = found.step <= kShortStep * plain.step;
  return found.memory <=
         std::max((isShort ? kMostMemoryOfShort : kMostMemory) * plain.memory, kLittleMemory);
}

/// Whether a program is better in step and bytes, and much better in one of them, with little more
/// memory and computation. A step half as long may read and write memory for longer; where that
/// replaces many latencies, any much shorter one may, and one a fraction as long may repeat work.
static bool isMuchBetter(const Measures &found, const Measures &plain, bool byBytes,
                         bool hasManyLatencies) {
  double step = found.step / plain.step, bytes = found.bytes / plain.bytes,
         computing = found.computing / plain.computing;
  if (!fits(found, plain) || step > 1 || bytes > 1)
    return false;
  bool repeatsNone = found.arithmetic <= kMostWork * plain.arithmetic;
  if (hasManyLatencies && step <= (repeatsNone ? 1 - kLeastGain : kFraction))
    return true;
  if (computing > (step <= kShortStep ? kMostWorkOfShort : kMostWork))
    return false;
  bool isMuchShorter = step <= 1 - kLeastGain, isMuchLess = bytes <= 1 - kLeastGain;
  if (computing <= kMostWork && (byBytes ? isMuchLess : isMuchShorter))
    return true;
  // Whoever cuts a batch wants its work to be divided, even where every device could do all of it.
  return repeatsNone && (isMuchShorter || (isMuchLess && step <= 1 - kSmallGain));
}

/// Whether a program with fewer collectives has a much shorter step, with little more memory and
/// arithmetic; what it sends is in its step.
static bool isMuchShorter(const Measures &found, const Measures &plain) {
  return found.step <= (1 - kLeastGain) * plain.step && fits(found, plain) &&
         found.arithmetic <= kLittleMore * plain.arithmetic;
}

/// The number of collectives that a device executes.
static int64_t executedCollectives(const Report &report) {
  int64_t count = 0;
  for (const CollectiveReport &each : report.collectives)
    count += each.trips;
  return count;
}

/// Whether a step is mostly latencies of collectives.
static FailureOr<bool> hasManyLatencies(ModuleOp program, const Report &report,
                                        sharding::Topology topology) {
  if (executedCollectives(report) < kManyCollectives)
    return false;
  for (sharding::LinkClass &link : topology.links)
    link.link.alpha = 0;
  FailureOr<pipeline::StepReport> step = pipeline::simulateStep(program, topology);
  if (failed(step))
    return failure();
  return step->seconds <= kMostWithoutLatencies * report.stepSeconds;
}

/// Moves arguments that are cut to all devices, where they are read.
static void gatherArguments(func::FuncOp function, const dist::MeshTable &meshes) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  for (BlockArgument argument : function.getArguments()) {
    dist::ShardingAttr sharding = dist::getSharding(argument);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!sharding || !type || argument.use_empty())
      continue;
    auto whole = dist::ShardingAttr::get(sharding.getMesh(), meshes.get(sharding.getMesh()),
                                         sharding::TensorSharding::replicated(type.getRank()),
                                         builder.getContext());
    auto moved = dist::ReshardOp::create(builder, argument.getLoc(), type, argument, whole);
    argument.replaceAllUsesExcept(moved, moved);
  }
}

/// Compiles `normalized` by other options, and replaces the program if that is better. Its messages
/// are dropped: the program was already compiled with messages.
static bool tryOther(PhasedProgram &program, const PipelineOptions &options, Phase start,
                     OwningOpRef<ModuleOp> normalized,
                     llvm::function_ref<bool(ModuleOp, const Report &)> isBetter) {
  program.origins.pause(true);
  Variant variant = tryVariant(program, std::move(normalized), [&] {
    return runPhases(program, options, start, Phase::scheduled);
  });
  program.origins.pause(false);
  if (failed(variant.result) || isStopped(*variant.module) ||
      !isBetter(*variant.module, variant.report))
    return false;
  program.module = std::move(variant.module);
  return true;
}

LogicalResult tessera::searchWithin(PhasedProgram &program, const PipelineOptions &pipeline,
                                    Phase from) {
  Phase start = std::max(from, Phase::normalized);
  if (failed(program.run(pipeline, from, start)))
    return failure();
  func::FuncOp function = smallFunction(*program.module, kMostOpsCompiledTwice);
  if (!function)
    return runPhases(program, pipeline, start, Phase::scheduled);
  int64_t devices = devicesOf(*program.module);
  bool isSmall = static_cast<bool>(smallFunction(*program.module, kMostOps));
  OwningOpRef<ModuleOp> normalized = program.module->clone();
  PipelineOptions propagation = pipeline;
  propagation.marksRecuts = true;
  if (failed(program.run(propagation, start, Phase::propagated)))
    return failure();
  bool isRecut = static_cast<bool>((*program.module)->removeAttr(dist::kRecut));
  OwningOpRef<ModuleOp> placed;
  if (isSmall) {
    placed = normalized->clone();
    auto copy = [&](bool ofState) {
      copyShardings(*program.module->getOps<func::FuncOp>().begin(),
                    *placed->getOps<func::FuncOp>().begin(), ofState);
    };
    copy(/*ofState=*/false);
    // State is open until then; with overlap the updates are divided or not.
    OwningOpRef<ModuleOp> propagated = program.module->clone();
    if (failed(program.run(pipeline, Phase::propagated, Phase::resharded)))
      return failure();
    copy(/*ofState=*/true);
    program.module = std::move(propagated);
  }
  if (failed(runPhases(program, pipeline, Phase::propagated, Phase::scheduled)))
    return failure();
  FailureOr<Report> plain = program.report();
  if (failed(plain))
    return failure();
  int64_t bytes = plain->wireBytesTotal();
  if (bytes < kLeastBytes)
    return success();
  FailureOr<dist::CostOptions> cost =
      dist::readCostOptions(*program.module, "time", pipeline.topology);
  if (failed(cost))
    return failure();
  FailureOr<Measures> best = measure(*program.module, *plain, cost->topology);
  FailureOr<bool> many = hasManyLatencies(*program.module, *plain, cost->topology);
  if (failed(best) || failed(many))
    return failure();
  bool byBytes = pipeline.objective == sharding::Objective::bytes;
  auto remark = [&](StringRef what) {
    emitRemark((*program.module->getOps<func::FuncOp>().begin()).getLoc())
        << what << ": propagation sends " << bytes << " bytes in " << executedCollectives(*plain)
        << " collectives";
  };

  if (*many && !byBytes) {
    const Measures propagated = *best;
    auto isBetter = [&](ModuleOp found, const Report &report) {
      FailureOr<Measures> measures = measure(found, report, cost->topology);
      bool isTaken = succeeded(measures) && isMuchShorter(*measures, propagated) &&
                     measures->step < best->step;
      best = isTaken ? measures : best;
      return isTaken;
    };
    PipelineOptions options = pipeline;
    options.latencies = true;
    if (tryOther(program, options, start, normalized->clone(), isBetter))
      remark("latencies count where ops are cut, for fewer collectives");
    options.latencies = options.recuts = false;
    if (isRecut && tryOther(program, options, start, normalized->clone(), isBetter))
      remark("ops keep cuts that a tensor of theirs has, for fewer collectives");
  }

  func::FuncOp before = *normalized->getOps<func::FuncOp>().begin();
  if (*many && !byBytes && executedCollectives(*plain) >= kCollectivesOfRows &&
      arithmeticOf(before, cost->topology, devices) <= kStepOfGathered * best->step) {
    OwningOpRef<ModuleOp> gathered = normalized->clone();
    gatherArguments(*gathered->getOps<func::FuncOp>().begin(), dist::MeshTable(*gathered));
    auto isBetter = [&](ModuleOp found, const Report &report) {
      FailureOr<Measures> measures = measure(found, report, cost->topology);
      bool isTaken = succeeded(measures) && measures->step <= kStepOfGathered * best->step &&
                     measures->bytes <= best->bytes && fits(*measures, *best);
      best = isTaken ? measures : best;
      return isTaken;
    };
    if (tryOther(program, pipeline, start, std::move(gathered), isBetter))
      remark("all devices compute the program from whole arguments");
  }

  double part =
      isSmall ? arithmeticOf(before, cost->topology, devices) / static_cast<double>(devices) : 0;
  bool isLittle = plain->communicationSeconds() < kLeastPart * plain->stepSeconds &&
                  best->arithmetic <= kMostRepeated * part;
  if (!isSmall || isLittle)
    return success();
  PipelineOptions options = pipeline;
  options.search.mode = "dynamic_programming";
  options.search.fullyUseDevices = false;
  if (tryOther(program, options, start, std::move(placed),
               [&](ModuleOp found, const Report &report) {
                 FailureOr<Measures> measures = measure(found, report, cost->topology);
                 return succeeded(measures) && isMuchBetter(*measures, *best, byBytes, *many);
               })) {
    (*program.module)->removeAttr(dist::DistDialect::kSearch);
    remark("between its arguments and results the program is searched");
  }
  return success();
}
