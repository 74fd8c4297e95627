//===- Pipeline.cpp - The phases by name ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Pipeline.h"

#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Ext/IR/FusedAttention.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Transforms/Autodiff/Passes.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Pipeline/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

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

bool tessera::isAttentionSequence(StringRef name) {
  return llvm::is_contained({"auto", "gather", "ring"}, name);
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
    fusion = "all-reduce=bucket all-gather=bucket reduce-scatter=bucket";
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

LogicalResult tessera::buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  if (!isAttentionSequence(options.attentionSequence)) {
    llvm::errs() << "error: attention sequence '" << options.attentionSequence
                 << "' is neither auto, gather nor ring\n";
    return failure();
  }
  auto leadsTo = [&](Phase phase) { return options.from < phase && phase <= options.to; };
  if (leadsTo(Phase::normalized)) {
    manager.addPass(dist::createDistGuard());
    dist::DistNormalizeOptions normalize;
    normalize.devices = options.search.mode.empty() ? 0 : options.search.devices;
    manager.addPass(dist::createDistNormalize(normalize));
    dist::DistRecognizeAttentionBackwardOptions recognize;
    if (options.attentionSequence == "ring")
      recognize.recomputedScores = 0; // kept ones would be those of all keys
    manager.addPass(dist::createDistRecognizeAttentionBackward(recognize));
    manager.addPass(dist::createDistRecognizeAttention());
    dist::DistFactorSumsOptions factor;
    factor.devices = normalize.devices;
    manager.addPass(dist::createDistFactorSums(factor));
  }
  if (options.narrowReductions && options.from < Phase::resharded && options.to > Phase::normalized)
    manager.addPass(dist::createDistNarrowPartials());
  if (leadsTo(Phase::propagated) && options.attentionSequence == "ring") {
    dist::DistRingAttentionOptions ring;
    ring.remarks = options.remarks;
    ring.kinds.assign(options.rings.begin(), options.rings.end());
    manager.addPass(dist::createDistRingAttention(ring));
  }
  if (leadsTo(Phase::propagated) && !options.search.mode.empty()) {
    dist::DistSearchOptions search;
    search.mode = options.search.mode;
    search.memoryBudget = options.search.memoryBudget.value_or(0);
    search.takeLeast = options.takeLeast;
    search.minimise = options.search.minimise;
    search.fullyUseDevices = options.search.fullyUseDevices;
    search.devices = options.search.devices;
    search.topology = options.topology;
    search.timeLimit = options.search.timeLimit;
    search.solver = options.search.solver;
    manager.addPass(dist::createDistSearch(search));
  } else if (leadsTo(Phase::propagated)) {
    dist::DistPropagateOptions propagate;
    propagate.objective = options.objective;
    propagate.topology = options.topology;
    propagate.recuts = options.recuts;
    propagate.markRecuts = options.marksRecuts;
    manager.addPass(dist::createDistPropagate(propagate));
  }
  if (leadsTo(Phase::propagated) && options.attentionSequence == "ring" &&
      options.objective == "time") { // balance takes more bytes
    dist::DistBalanceRingsOptions balance;
    balance.topology = options.topology;
    balance.remarks = options.remarks;
    manager.addPass(dist::createDistBalanceRings(balance));
  }
  if (leadsTo(Phase::resharded)) {
    manager.addPass(dist::createDistSinkSlices());
    dist::DistSinkPartialsOptions sink;
    sink.keepCuts = options.search.memoryBudget.has_value() || options.search.minimise == "memory";
    sink.objective = options.objective;
    sink.topology = options.topology;
    sink.divideUpdates = options.dividesUpdates;
    manager.addPass(dist::createDistSinkPartials(sink));
    manager.addPass(dist::createDistInsertReshards());
    if (!options.narrowReductions)
      manager.addPass(dist::createDistWidenPartials());
  }
  if (leadsTo(Phase::planned)) {
    dist::DistPlanReshardsOptions plan;
    plan.objective = options.objective;
    plan.topology = options.topology;
    plan.remarks = options.remarks;
    manager.addPass(dist::createDistPlanReshards(plan));
  }
  if (leadsTo(Phase::partitioned)) {
    dist::DistPartitionOptions partition;
    partition.objective = options.objective;
    partition.topology = options.topology;
    partition.remarks = options.remarks;
    manager.addPass(dist::createDistPartition(partition));
    manager.addPass(dist::createDistCanonicalizeCollectives());
  }
  if (leadsTo(Phase::fused)) {
    addLocalOrder(manager, options);
    if (failed(addFusion(manager, options)))
      return failure();
  }
  if (leadsTo(Phase::scheduled) && options.overlaps)
    addOverlap(manager, options);
  return success();
}

namespace {
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> from{*this, "compile-from", llvm::cl::desc("Phase of the input"),
                           llvm::cl::init("input")};
  Option<std::string> to{*this, "compile-to", llvm::cl::desc("Phase to stop after"),
                         llvm::cl::init("scheduled")};
  Option<std::string> objective{*this, "objective", llvm::cl::desc("time or bytes"),
                                llvm::cl::init("time")};
  Option<bool> narrowReductions{*this, "narrow-reductions",
                                llvm::cl::desc("Reduce 16-bit floats in 16 bits")};
  Option<std::string> attentionSequence{
      *this, "attention-sequence",
      llvm::cl::desc("Keys of a cut sequence: gather or ring; auto is gather here"),
      llvm::cl::init("auto")};
  Option<bool> overlap{*this, "overlap", llvm::cl::desc("Overlap collectives with computation"),
                       llvm::cl::init(false)};
  Option<std::string> topology{*this, "topology", llvm::cl::desc("Topology file (JSON)")};
  Option<std::string> mode{*this, "mode", llvm::cl::desc("Mode of dist-search; none: propagate")};
  Option<int64_t> devices{*this, "devices",
                          llvm::cl::desc("Devices of the mesh for a program without one"),
                          llvm::cl::init(0)};
  Option<double> memoryBudget{*this, "memory-budget",
                              llvm::cl::desc("GiB per device; 0: no budget"), llvm::cl::init(0)};
  Option<std::string> minimise{*this, "minimise", llvm::cl::desc("time or memory"),
                               llvm::cl::init("time")};
  Option<bool> fullyUseDevices{*this, "fully-use-devices",
                               llvm::cl::desc("Contractions use every device where sizes allow"),
                               llvm::cl::init(true)};
  Option<double> timeLimit{*this, "time-limit", llvm::cl::desc("Seconds until the search stops"),
                           llvm::cl::init(SearchRequest().timeLimit)};
  Option<std::string> solver{*this, "solver", llvm::cl::desc("HiGHS library or cbc program")};
  Option<std::string> fusion{*this, "comm-fusion",
                             llvm::cl::desc("Options of dist-fuse-collectives, in braces")};
  Option<bool> gpu{*this, "gpu",
                   llvm::cl::desc("Do not decompose attention: GPUs have kernels for it"),
                   llvm::cl::init(false)};
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("Emit remarks with decisions and reasons")};
};
/// A GPU computes attention by kernels that keep the scores in registers.
struct MarkFusedAttention : PassWrapper<MarkFusedAttention, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkFusedAttention)
  void runOnOperation() override { ext::markFusedAttention(getOperation()); }
};
} // namespace

void tessera::registerPipeline() {
  PassPipelineRegistration<TextOptions>(
      "tessera-pipeline", "All passes from one phase to another",
      [](OpPassManager &manager, const TextOptions &text) {
        std::optional<Phase> from = parsePhase(text.from), to = parsePhase(text.to);
        if (!from || !to) { // a registered pipeline has no other way to report an error
          llvm::errs() << "error: unknown phase '" << (from ? text.to : text.from).getValue()
                       << "'; phases are " << phaseNames() << "\n";
          std::exit(1);
        }
        PipelineOptions options;
        options.from = *from;
        options.to = *to;
        options.objective = text.objective;
        options.narrowReductions = text.narrowReductions;
        options.attentionSequence = text.attentionSequence;
        options.overlaps = text.overlap;
        options.topology = text.topology;
        options.search.mode = text.mode;
        options.search.devices = text.devices;
        if (text.memoryBudget != 0) // the pass rejects negative values
          options.search.memoryBudget = text.memoryBudget;
        options.search.minimise = text.minimise;
        options.search.fullyUseDevices = text.fullyUseDevices;
        options.search.timeLimit = text.timeLimit;
        options.search.solver = text.solver;
        options.fusion = text.fusion;
        options.remarks = text.remarks;
        auto build = [&] {
          if (failed(buildPipeline(manager, options))) // it has emitted the error
            std::exit(1);
        };
        if (text.gpu && *to >= Phase::normalized) {
          options.to = Phase::normalized;
          if (*from < Phase::normalized)
            build();
          manager.addPass(std::make_unique<MarkFusedAttention>());
          options.from = std::max(*from, Phase::normalized);
          options.to = *to;
        }
        build();
      });
}

void tessera::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                  scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect,
                  check::CheckDialect, dist::DistDialect, ext::ExtDialect, rt::RtDialect>();
}
