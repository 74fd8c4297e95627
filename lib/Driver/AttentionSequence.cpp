//===- AttentionSequence.cpp - Keys gathered, or in a ring ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the sequence of an attention is cut, a ring moves as many bytes as a gather of
// keys and values, in more messages. It saves memory, and time if blocks are sent
// during computation, which depends on all later passes. So the program is compiled
// both ways, and if it has several kinds of attentions (those of one kind have equal
// loops), once more per kind with the other choice for that kind. Without overlap and
// without a budget only balanced rings pay off.
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Driver/Memory.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Transforms/Search.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

/// Gains to ignore, relative to the time of a step.
static constexpr double kNoGain = 1e-6;

/// Programs with more kinds of attentions are compiled only with all of them as rings, and with
/// none.
static constexpr size_t kMostKinds = 6;

/// Balance does not pay off for attentions with fewer scores: chunks need more messages.
static constexpr int64_t kManyScores = int64_t(1) << 24;

/// Whether an op of the program, before or after attentions are recognized, may have so many
/// scores.
static bool mayHaveManyScores(ModuleOp module) {
  auto isMany = [](ArrayRef<int64_t> extents) {
    double size = 1;
    for (int64_t extent : extents)
      size *= static_cast<double>(extent);
    return size >= static_cast<double>(kManyScores);
  };
  return module
      .walk([&](Operation *op) -> WalkResult {
        if (isa<ext::AttentionOp, ext::AttentionBackwardOp>(op)) {
          ext::AttentionParts parts = ext::partsOf(op);
          SmallVector<int64_t> extents{parts.domain.extents[parts.domain.key]};
          for (unsigned loop : parts.rows)
            extents.push_back(parts.domain.extents[loop]);
          return isMany(extents) ? WalkResult::interrupt() : WalkResult::advance();
        }
        if (isa<math::ExpOp, math::Exp2Op>(op)) { // of a softmax
          auto generic = op->getParentOfType<linalg::GenericOp>();
          if (generic && isMany(generic.getStaticLoopRanges()))
            return WalkResult::interrupt();
        }
        if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
            softmax && isMany(cast<ShapedType>(softmax.getInput().getType()).getShape()))
          return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// The kinds of attentions whose keys may be exchanged in a ring, and, once that is decided, whose
/// sequence is cut; with `onlyBalanced` those whose rings are balanced.
static std::vector<int64_t> kindsOfRings(ModuleOp module, bool isDecided, bool onlyBalanced) {
  ext::AttentionKinds all;
  std::vector<int64_t> kinds;
  module.walk([&](Operation *op) {
    if (!isa<ext::AttentionOp, ext::AttentionBackwardOp>(op))
      return;
    ext::AttentionParts parts = ext::partsOf(op);
    int64_t kind = all.numberOf(parts);
    std::optional<unsigned> query = ext::ringCandidateOf(parts);
    if (!query || llvm::is_contained(kinds, kind) || (onlyBalanced && !op->hasAttr("balanced")))
      return;
    dist::OpShardingAttr sharding = dist::getOpSharding(op);
    if (sharding ? !sharding.getFactors()[parts.factors()[*query]].getAxes().empty() : !isDecided)
      kinds.push_back(kind);
  });
  return kinds;
}

namespace tessera {

/// Compiles one program in several ways.
class AttentionChooser {
public:
  AttentionChooser(Compilation &compilation, PipelineOptions requested, Phase start)
      : compilation(compilation), requested(std::move(requested)), start(start),
        program(compilation.program->clone()), seconds(compilation.seconds) {}

  /// Whether a ring would change the program, which is left unchanged.
  bool mayBeRing(bool onlyBalanced) {
    PipelineOptions options = requested;
    options.attentionSequence = "ring";
    Phase to =
        std::max(start, requested.search.mode.empty() ? Phase::propagated : Phase::normalized);
    ScopedDiagnosticHandler quiet(&compilation.mlirContext, [](Diagnostic &) {});
    compilation.origins.pause(true);
    if (succeeded(compilation.runPhases(options, start, to)))
      kinds = kindsOfRings(*compilation.program, to >= Phase::propagated, onlyBalanced);
    compilation.origins.pause(false);
    compilation.program = program->clone();
    compilation.seconds = seconds;
    return !kinds.empty();
  }

  LogicalResult run() {
    best = attempt({});
    gather = {succeeded(best.result), best.stepSeconds, best.arena};
    compilation.origins.pause(true); // they differ only in the keys
    keepIfBetter(attempt(kinds));
    if (kinds.size() <= kMostKinds)
      for (int64_t kind : kinds) {
        std::vector<int64_t> rings = best.rings;
        auto found = llvm::find(rings, kind);
        if (found != rings.end())
          rings.erase(found);
        else
          rings.push_back(kind);
        if (!rings.empty() && rings.size() < kinds.size()) // the two others are compiled above
          keepIfBetter(attempt(rings));
      }
    compilation.origins.pause(false);
    compilation.program = std::move(best.program);
    compilation.seconds = std::move(best.phases);
    for (Diagnostic &message : best.messages)
      compilation.mlirContext.getDiagEngine().emit(std::move(message));
    if (!best.rings.empty())
      explainRings();
    return best.result;
  }

private:
  struct Attempt {
    std::vector<int64_t> rings; ///< the kinds compiled as rings
    LogicalResult result = failure();
    OwningOpRef<ModuleOp> program;
    std::vector<Diagnostic> messages;
    std::vector<std::pair<std::string, double>> phases;
    double stepSeconds = 0;
    int64_t arena = 0;
  };

  Attempt attempt(const std::vector<int64_t> &rings) {
    Attempt made;
    made.rings = rings;
    ScopedDiagnosticHandler handler(&compilation.mlirContext, [&](Diagnostic &message) {
      made.messages.push_back(std::move(message));
    });
    PipelineOptions options = requested;
    options.attentionSequence = rings.empty() ? "gather" : "ring";
    options.rings = rings;
    compilation.program = program->clone();
    compilation.seconds = seconds;
    if (requested.overlaps && requested.search.mode.empty() && !requested.search.memoryBudget &&
        gather.fits) {
      // Blocks that arrive early may take as much memory as the gathered keys.
      options.search.memoryBudget = static_cast<double>(gather.arena) / (1024.0 * 1024 * 1024);
      made.result = compilation.runPhases(options, start, Phase::scheduled);
    } else {
      made.result = compilation.compile(options, start, Phase::scheduled);
    }
    if (succeeded(made.result))
      made.result = measure(made);
    made.program = std::move(compilation.program);
    made.phases = std::move(compilation.seconds);
    return made;
  }

  LogicalResult measure(Attempt &made) {
    FailureOr<Report> report = compilation.report();
    OwningOpRef<ModuleOp> copy = compilation.program->clone();
    if (failed(report) || failed(codegen::lowerToRt(*copy)))
      return failure();
    made.stepSeconds = report->stepSeconds;
    made.arena = peakMemory(*copy);
    return success();
  }

  void keepIfBetter(Attempt made) {
    bool isBetter = failed(best.result);
    if (succeeded(best.result))
      isBetter = !requested.search.mode.empty() && requested.search.minimise == "memory"
                     ? made.arena < best.arena
                     : made.stepSeconds < best.stepSeconds * (1 - kNoGain);
    if (succeeded(made.result) && isBetter)
      best = std::move(made);
  }

  /// Adds the reason for rings to the report.
  void explainRings() {
    std::string why;
    if (best.rings.size() < kinds.size())
      why = llvm::formatv("{0} of {1} kinds of attentions; ", best.rings.size(), kinds.size());
    why += !gather.fits
               ? std::string("keys and values gathered do not fit into the memory budget")
               : llvm::formatv("{0:F2} us modelled, {1:F2} us with keys and values gathered; {2} "
                               "instead of {3} of memory",
                               best.stepSeconds * 1e6, gather.stepSeconds * 1e6,
                               exactBytesText(static_cast<double>(best.arena)),
                               exactBytesText(static_cast<double>(gather.arena)))
                     .str();
    SmallVector<Attribute> names;
    Builder builder(&compilation.mlirContext);
    if (auto before = (*compilation.program)->getAttrOfType<ArrayAttr>(dist::kParallelisms))
      llvm::append_range(names, before);
    names.push_back(builder.getStringAttr("ring attention (" + why + ")"));
    (*compilation.program)->setAttr(dist::kParallelisms, builder.getArrayAttr(names));
  }

  Compilation &compilation;
  PipelineOptions requested;
  Phase start;
  OwningOpRef<ModuleOp> program;
  std::vector<std::pair<std::string, double>> seconds;
  std::vector<int64_t> kinds; ///< of attentions that may be rings
  struct {
    bool fits;
    double stepSeconds;
    int64_t arena;
  } gather = {false, 0, 0}; ///< without rings
  Attempt best;
};

} // namespace tessera

LogicalResult Compilation::chooseAttention(PipelineOptions pipeline, Phase from) {
  bool hasDevices = !program->getOps<dist::ProcessMeshOp>().empty() || pipeline.search.devices > 1;
  bool onlyBalanced =
      !pipeline.overlaps && !pipeline.search.memoryBudget && pipeline.search.mode.empty();
  if (!hasDevices ||
      (onlyBalanced && (pipeline.objective != "time" || !mayHaveManyScores(*program))))
    return compile(pipeline, from, Phase::scheduled);
  AttentionChooser chooser(*this, pipeline, from);
  return chooser.mayBeRing(onlyBalanced) ? chooser.run()
                                         : compile(pipeline, from, Phase::scheduled);
}
