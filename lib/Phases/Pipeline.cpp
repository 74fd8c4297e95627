//===- Pipeline.cpp - The phases by name ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Phases/Pipeline.h"

#include "tessera/Transforms/Autodiff/Passes.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Pipeline/Passes.h"

using namespace mlir;
using namespace tessera;

static constexpr StringRef kPhaseNames[] = {"input",   "normalized",  "propagated", "resharded",
                                            "planned", "partitioned", "fused",      "scheduled"};

StringRef tessera::toString(Phase phase) {
  return kPhaseNames[static_cast<int>(phase)];
}

std::optional<Phase> tessera::parsePhase(StringRef name) {
  auto it = llvm::find(kPhaseNames, name);
  if (it == std::end(kPhaseNames))
    return std::nullopt;
  return static_cast<Phase>(it - std::begin(kPhaseNames));
}

std::string tessera::phaseNames() {
  return llvm::join(ArrayRef<StringRef>(kPhaseNames), ", ");
}

/// Gives `--comm-fusion` to the pass. LLVM's parser prints its own error for a value that is not a
/// number, so such values are rejected before.
static LogicalResult readFusion(Pass &pass, StringRef text) {
  auto refuse = [&](StringRef detail) {
    llvm::errs() << "error: comm-fusion: '" << text << "' is not a list of options"
                 << (detail.empty() ? "" : ": ") << detail.rtrim()
                 << "; write for example \"all-reduce=size all-reduce-config=16\"\n";
    return failure();
  };
  for (StringRef option : llvm::split(text, ' ')) {
    auto [name, values] = option.split('=');
    if (!name.ends_with("-config"))
      continue;
    for (StringRef value : llvm::split(values, ','))
      if (int64_t number; value.trim("{}").getAsInteger(10, number))
        return refuse(("'" + value + "' is not a whole number").str());
  }
  return pass.initializeOptions(text, [&](const Twine &detail) { return refuse(detail.str()); });
}

void tessera::addLocalOrder(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistSchedulePipelineOptions pipeline;
  pipeline.memoryBudget = options.search.memoryBudget.value_or(0);
  pipeline.schedule = options.schedule;
  pipeline.topology = options.topology;
  manager.addPass(dist::createDistSchedulePipeline(pipeline));
  if (!options.search.memoryBudget)
    return;
  dist::DistLimitMemoryOptions limit;
  limit.memoryBudget = *options.search.memoryBudget;
  limit.topology = options.topology;
  manager.addPass(dist::createDistLimitMemory(limit));
}

LogicalResult tessera::addFusion(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistFuseCollectivesOptions fuse;
  fuse.memoryBudget = options.search.memoryBudget.value_or(0);
  fuse.topology = options.topology;
  std::unique_ptr<Pass> pass = dist::createDistFuseCollectives(fuse);
  std::string fusion = options.fusion;
  if (fusion.empty() && options.overlaps)
    fusion = "all-reduce=bucket all-gather=bucket reduce-scatter=bucket moves=bucket";
  if (failed(readFusion(*pass, fusion)))
    return failure();
  manager.addPass(std::move(pass));
  return success();
}

void tessera::addOverlap(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistOverlapCollectivesOptions overlap;
  overlap.memoryBudget = options.search.memoryBudget.value_or(0);
  overlap.topology = options.topology;
  manager.addPass(dist::createDistOverlapCollectives(overlap));
}

static void addNormalization(OpPassManager &manager, const PipelineOptions &options) {
  int64_t devices = options.search.mode.empty() ? 0 : options.search.devices;
  manager.addPass(dist::createDistGuard());
  dist::DistNormalizeOptions normalize;
  normalize.devices = devices;
  manager.addPass(dist::createDistNormalize(normalize));
  dist::DistRecognizeAttentionBackwardOptions recognize;
  if (options.attentionSequence == AttentionSequence::ring)
    recognize.recomputedScores = 0; // kept ones would be those of all keys
  manager.addPass(dist::createDistRecognizeAttentionBackward(recognize));
  manager.addPass(dist::createDistRecognizeAttention());
  dist::DistFactorSumsOptions factor;
  factor.devices = devices;
  manager.addPass(dist::createDistFactorSums(factor));
}

static void addSearch(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistSearchOptions search;
  search.mode = options.search.mode;
  search.memoryBudget = options.search.memoryBudget.value_or(0);
  search.takeLeast = options.takeLeast;
  search.minimise = nameOf(options.search.minimise);
  search.fullyUseDevices = options.search.fullyUseDevices;
  search.devices = options.search.devices;
  search.topology = options.topology;
  search.timeLimit = options.search.timeLimit;
  search.solver = options.search.solver;
  manager.addPass(dist::createDistSearch(search));
}

static void addPropagation(OpPassManager &manager, const PipelineOptions &options) {
  bool hasRings = options.attentionSequence == AttentionSequence::ring;
  if (hasRings) {
    dist::DistRingAttentionOptions ring;
    ring.remarks = options.remarks;
    ring.kinds.assign(options.rings.begin(), options.rings.end());
    manager.addPass(dist::createDistRingAttention(ring));
  }
  if (options.search.mode.empty()) {
    dist::DistPropagateOptions propagate;
    propagate.objective = nameOf(options.objective);
    propagate.topology = options.topology;
    propagate.recuts = options.recuts;
    propagate.latencies = options.latencies;
    propagate.markRecuts = options.marksRecuts;
    manager.addPass(dist::createDistPropagate(propagate));
  } else {
    addSearch(manager, options);
  }
  if (hasRings && options.objective == sharding::Objective::time) { // balance takes more bytes
    dist::DistBalanceRingsOptions balance;
    balance.topology = options.topology;
    balance.remarks = options.remarks;
    manager.addPass(dist::createDistBalanceRings(balance));
  }
}

static void addReshards(OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(dist::createDistSinkSlices());
  dist::DistSinkPartialsOptions sink;
  sink.keepCuts =
      options.search.memoryBudget.has_value() || options.search.minimise == Minimise::memory;
  sink.objective = nameOf(options.objective);
  sink.topology = options.topology;
  sink.divideUpdates = options.dividesUpdates;
  manager.addPass(dist::createDistSinkPartials(sink));
  manager.addPass(dist::createDistInsertReshards());
  if (!options.narrowReductions)
    manager.addPass(dist::createDistWidenPartials());
}

static void addPlanning(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistPlanReshardsOptions plan;
  plan.objective = nameOf(options.objective);
  plan.topology = options.topology;
  plan.remarks = options.remarks;
  manager.addPass(dist::createDistPlanReshards(plan));
}

static void addPartitioning(OpPassManager &manager, const PipelineOptions &options) {
  dist::DistPartitionOptions partition;
  partition.objective = nameOf(options.objective);
  partition.topology = options.topology;
  partition.remarks = options.remarks;
  manager.addPass(dist::createDistPartition(partition));
  manager.addPass(dist::createDistCanonicalizeCollectives());
}

LogicalResult tessera::buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  auto leadsTo = [&](Phase phase) { return options.from < phase && phase <= options.to; };
  if (leadsTo(Phase::normalized))
    addNormalization(manager, options);
  if (options.keepsAttention && options.to >= Phase::normalized)
    manager.addPass(dist::createDistMarkFusedAttention());
  if (options.from < Phase::resharded && options.to > Phase::normalized) {
    dist::DistNarrowPartialsOptions narrow;
    narrow.accumulated = !options.narrowReductions;
    manager.addPass(dist::createDistNarrowPartials(narrow));
  }
  if (leadsTo(Phase::propagated))
    addPropagation(manager, options);
  if (leadsTo(Phase::resharded))
    addReshards(manager, options);
  if (leadsTo(Phase::planned))
    addPlanning(manager, options);
  if (leadsTo(Phase::partitioned))
    addPartitioning(manager, options);
  if (leadsTo(Phase::fused)) {
    addLocalOrder(manager, options);
    if (failed(addFusion(manager, options)))
      return failure();
  }
  if (leadsTo(Phase::scheduled) && options.overlaps)
    addOverlap(manager, options);
  return success();
}
