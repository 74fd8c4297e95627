//===- BestOverlap.cpp - Overlap that pays --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small buckets of collectives start early and cost latencies; collectives that overlap
// with another iteration of a loop take memory; products in parts cost latencies and
// copies. Which is fastest depends on the computation available meanwhile, so the
// program is scheduled each way, and the shortest modelled step wins. Without a gain it
// is the synchronous program.
//
//===----------------------------------------------------------------------===//

#include "PendingMessages.h"
#include "ProgramHash.h"
#include "Variants.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Planning/LocalPeak.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Variants/Arena.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseSet.h"

#include <chrono>

using namespace mlir;
using namespace tessera;

/// Ways to join collectives; ties go to the first.
static constexpr const char *kFusions[] = {
    "all-reduce=bucket all-gather=bucket reduce-scatter=bucket moves=bucket",
    "all-reduce=bucket all-gather=auto reduce-scatter=bucket moves=bucket",
    "all-reduce=auto all-gather=auto reduce-scatter=auto moves=auto",
    // Steps of a ring, of which one is sent while another computes.
    "all-reduce=bucket all-gather=bucket reduce-scatter=bucket moves=off",
};

/// Overlap that saves less than this part of the step is not used.
static constexpr double kLeastGain = 0.001;

/// The part of the memory that overlap may add which values of a second iteration get; less if
/// nothing fits otherwise.
static constexpr double kPrefetchParts[] = {1, 0.5, 0.25};

static constexpr double kGiB = 1024.0 * 1024 * 1024;

static int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

namespace {

/// Schedules a program, whose ops are in order and whose collectives are not joined, in each way.
class OverlapChooser {
public:
  OverlapChooser(const PhasedProgram &program, PipelineOptions pipeline)
      : context(program.context()), pipeline(std::move(pipeline)), program(program) {}

  struct Choice {
    OwningOpRef<ModuleOp> module;
    double seconds = 0;
    std::vector<Diagnostic> messages;
  };
  /// Adds a choice per way.
  LogicalResult run(ModuleOp ordered);
  /// The program without overlap.
  FailureOr<Choice> synchronous(ModuleOp ordered);
  /// The first of the shortest choices.
  Choice takeBest() {
    auto best = llvm::min_element(
        choices, [](const Choice &a, const Choice &b) { return a.seconds < b.seconds; });
    Choice taken = std::move(*best);
    choices.erase(best);
    return taken;
  }
  bool isEmpty() const { return choices.empty(); }

private:
  LogicalResult runPasses(ModuleOp module, llvm::function_ref<LogicalResult(OpPassManager &)> add) {
    PassManager manager(context, ModuleOp::getOperationName());
    manager.enableVerifier(true);
    return failure(failed(add(manager)) || failed(manager.run(module)));
  }
  LogicalResult runPass(ModuleOp module, std::unique_ptr<Pass> pass) {
    return runPasses(module, [&](OpPassManager &manager) {
      manager.addPass(std::move(pass));
      return success();
    });
  }
  /// With overlap within each number of bytes; 0: slightly more than without.
  LogicalResult fuseCollectivesInEachWay(ModuleOp module, ArrayRef<double> budgets);
  /// The bytes per device: the budget, or slightly more than without overlap.
  LogicalResult findLimits(ModuleOp ordered);
  /// Estimates may be high, so choices slightly above it are planned, too.
  SmallVector<double, 2> budgets() const {
    return pipeline.search.memoryBudget ? SmallVector<double, 2>{most}
                                        : SmallVector<double, 2>{most, 0};
  }
  /// Of the choices from number `first` on, keeps the shortest one whose planned arena is within
  /// the limit, if it is shorter than the previous ones.
  LogicalResult keepFitting(size_t first);
  /// Adds a choice that overlaps with other iterations of loops, if it is faster.
  LogicalResult prefetch(ModuleOp ordered);

  MLIRContext *context;
  PipelineOptions pipeline;
  const PhasedProgram &program;
  std::vector<Choice> choices;
  double peak = 0, most = 0; ///< estimates: without overlap, the limit
  double mostArena = 0;      ///< limit on planned arenas
};

} // namespace

LogicalResult OverlapChooser::fuseCollectivesInEachWay(ModuleOp module, ArrayRef<double> budgets) {
  llvm::DenseSet<uint64_t> known; // most ways to join make the same program
  for (const char *fusion : kFusions) {
    OwningOpRef<ModuleOp> joined = module.clone();
    PendingMessages pending(context);
    PipelineOptions options = pipeline;
    options.fusion = fusion;
    if (failed(runPasses(*joined, [&](OpPassManager &each) { return addFusion(each, options); })))
      return failure();
    if (!known.insert(hashOf(*joined)).second)
      continue;
    for (double budget : budgets) {
      OwningOpRef<ModuleOp> copy = joined->clone();
      options.search.memoryBudget = budget / kGiB;
      auto add = [&](OpPassManager &manager) {
        addOverlap(manager, options);
        return success();
      };
      if (failed(runPasses(*copy, add)))
        return failure();
      FailureOr<Report> made = program.report(*copy);
      if (failed(made))
        return failure();
      choices.push_back({std::move(copy), made->stepSeconds, pending.copy()});
    }
  }
  return success();
}

LogicalResult OverlapChooser::keepFitting(size_t first) {
  std::vector<Choice> added(
      std::make_move_iterator(choices.begin() + static_cast<std::ptrdiff_t>(first)),
      std::make_move_iterator(choices.end()));
  choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(first), choices.end());
  double least = std::numeric_limits<double>::infinity();
  for (const Choice &choice : choices)
    least = std::min(least, choice.seconds);
  llvm::stable_sort(added, [](const Choice &a, const Choice &b) { return a.seconds < b.seconds; });
  for (Choice &choice : added) {
    if (choice.seconds >= least)
      break;
    FailureOr<int64_t> arena = arenaOf(*choice.module);
    if (failed(arena))
      return failure();
    if (static_cast<double>(*arena) > mostArena)
      continue;
    choices.push_back(std::move(choice));
    break;
  }
  return success();
}

LogicalResult OverlapChooser::run(ModuleOp ordered) {
  double budget = pipeline.search.memoryBudget.value_or(0) * kGiB;
  if (failed(fuseCollectivesInEachWay(ordered, budget)))
    return failure();
  bool hasLoops = ordered.walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
  OwningOpRef<ModuleOp> inParts = ordered.clone(), inRings = ordered.clone();
  dist::DistRingProductsOptions rings;
  dist::DistDecomposeProductsOptions parts;
  rings.topology = parts.topology = pipeline.topology;
  if (failed(runPass(*inRings, dist::createDistRingProducts(rings))))
    return failure();
  bool hasRings = countOps(*inRings) != countOps(ordered);
  if (failed(runPass(*inParts, dist::createDistDecomposeProducts(parts))) ||
      (hasRings && failed(runPass(*inRings, dist::createDistDecomposeProducts(parts)))))
    return failure();
  bool hasParts = countOps(*inParts) != countOps(ordered);
  if (!hasParts && !hasRings && !hasLoops)
    return success();
  if (failed(findLimits(ordered)) || (hasLoops && failed(prefetch(ordered))))
    return failure();
  for (auto [isCut, module] : {std::pair(hasParts, *inParts), std::pair(hasRings, *inRings)}) {
    size_t first = choices.size();
    if (isCut && (failed(fuseCollectivesInEachWay(module, budgets())) ||
                  failed(keepFitting(first)) || (hasLoops && failed(prefetch(module)))))
      return failure();
  }
  return success();
}

FailureOr<OverlapChooser::Choice> OverlapChooser::synchronous(ModuleOp ordered) {
  Choice plain{ordered.clone(), 0, {}};
  PendingMessages pending(context);
  PipelineOptions options = pipeline;
  options.overlaps = false;
  auto add = [&](OpPassManager &manager) { return addFusion(manager, options); };
  if (failed(runPasses(*plain.module, add)))
    return failure();
  FailureOr<Report> made = program.report(*plain.module);
  if (failed(made))
    return failure();
  plain.seconds = made->stepSeconds;
  plain.messages = pending.copy();
  return std::move(plain);
}

LogicalResult OverlapChooser::findLimits(ModuleOp ordered) {
  FailureOr<Choice> plain = synchronous(ordered);
  if (failed(plain))
    return failure();
  peak = peakOf(*plain->module);
  if (pipeline.search.memoryBudget) {
    most = mostArena = *pipeline.search.memoryBudget * kGiB;
    return success();
  }
  FailureOr<int64_t> arena = arenaOf(*plain->module);
  if (failed(arena))
    return failure();
  most = dist::kOverlapMemory * peak;
  mostArena = dist::kOverlapMemory * static_cast<double>(*arena);
  return success();
}

LogicalResult OverlapChooser::prefetch(ModuleOp ordered) {
  if (most <= peak)
    return success();
  for (double part : kPrefetchParts) {
    dist::DistPrefetchLoopsOptions options;
    options.memoryBudget = (peak + part * (most - peak)) / kGiB;
    options.topology = pipeline.topology;
    OwningOpRef<ModuleOp> ahead = ordered.clone();
    if (failed(runPass(*ahead, dist::createDistPrefetchLoops(options))))
      return failure();
    if (countOps(*ahead) == countOps(ordered))
      return success();
    size_t first = choices.size();
    if (failed(fuseCollectivesInEachWay(*ahead, budgets())) || failed(keepFitting(first)))
      return failure();
    if (choices.size() > first)
      break;
  }
  return success();
}

LogicalResult tessera::chooseOverlap(PhasedProgram &program, const PipelineOptions &options) {
  auto begin = std::chrono::steady_clock::now();
  auto lap = [&](Phase phase) {
    auto now = std::chrono::steady_clock::now();
    program.seconds.push_back(
        {toString(phase).str(), std::chrono::duration<double>(now - begin).count()});
    begin = now;
  };
  PassManager manager(program.context(), ModuleOp::getOperationName());
  addLocalOrder(manager, options);
  if (failed(manager.run(*program.module)))
    return failure();
  lap(Phase::fused);
  OverlapChooser chooser(program, options);
  FailureOr<OverlapChooser::Choice> plain = chooser.synchronous(*program.module);
  if (failed(plain) || failed(chooser.run(*program.module)))
    return failure();
  OverlapChooser::Choice best = chooser.takeBest();
  if (best.seconds > (1 - kLeastGain) * plain->seconds)
    best = std::move(*plain);
  program.module = std::move(best.module);
  emit(program.context(), std::move(best.messages));
  lap(Phase::scheduled);
  return success();
}

LogicalResult tessera::chooseOverlapWithin(PhasedProgram &program, const PipelineOptions &options,
                                           OwningOpRef<ModuleOp> ordered) {
  double budget = *options.search.memoryBudget * kGiB;
  OwningOpRef<ModuleOp> fused = program.module->clone();
  if (failed(program.run(options, Phase::fused, Phase::scheduled)))
    return failure();
  FailureOr<int64_t> arena = arenaOf(*program.module);
  if (failed(arena))
    return failure();
  if (static_cast<double>(*arena) > budget)
    program.module = std::move(fused);
  FailureOr<Report> made = program.report();
  if (failed(made))
    return failure();
  if (!options.fusion.empty() || !ordered)
    return success();
  PassManager manager(program.context(), ModuleOp::getOperationName());
  addLocalOrder(manager, options);
  OverlapChooser chooser(program, options);
  if (failed(manager.run(*ordered)) || failed(chooser.run(*ordered)))
    return failure();
  while (!chooser.isEmpty()) {
    OverlapChooser::Choice best = chooser.takeBest();
    if (best.seconds >= made->stepSeconds)
      break;
    arena = arenaOf(*best.module);
    if (failed(arena))
      return failure();
    if (static_cast<double>(*arena) > budget)
      continue;
    program.module = std::move(best.module);
    break;
  }
  return success();
}
