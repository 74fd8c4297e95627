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

#include "Variants.h"

#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Support/Bytes.h"
#include "tessera/Transforms/Search.h"
#include "tessera/Variants/Arena.h"

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

namespace {

/// Compiles one program in several ways.
class AttentionChooser {
public:
  AttentionChooser(PhasedProgram &program, PipelineOptions requested, Phase start)
      : program(program), requested(std::move(requested)), start(start) {}

  /// Whether a ring would change the program, which is left unchanged.
  bool mayBeRing(bool onlyBalanced);
  LogicalResult run();

private:
  struct Attempt {
    std::vector<int64_t> rings; ///< the kinds compiled as rings
    Variant variant;
    int64_t arena = 0;

    double seconds() const { return variant.report.stepSeconds; }
  };

  Attempt attempt(std::vector<int64_t> rings);
  void keepIfBetter(Attempt made);
  /// Adds the reason for rings to the report.
  void explainRings();

  PhasedProgram &program;
  PipelineOptions requested;
  Phase start;
  std::vector<int64_t> kinds; ///< of attentions that may be rings
  struct {
    bool fits;
    double stepSeconds;
    int64_t arena;
  } gather = {false, 0, 0}; ///< without rings
  Attempt best;
};

} // namespace

bool AttentionChooser::mayBeRing(bool onlyBalanced) {
  PipelineOptions options = requested;
  options.attentionSequence = AttentionSequence::ring;
  Phase to = std::max(start, requested.search.mode.empty() ? Phase::propagated : Phase::normalized);
  OwningOpRef<ModuleOp> before = program.module->clone();
  PhaseTimes seconds = program.seconds;
  ScopedDiagnosticHandler quiet(program.context(), [](Diagnostic &) {});
  program.origins.pause(true);
  if (succeeded(program.run(options, start, to)))
    kinds = kindsOfRings(*program.module, to >= Phase::propagated, onlyBalanced);
  program.origins.pause(false);
  program.module = std::move(before);
  program.seconds = std::move(seconds);
  return !kinds.empty();
}

LogicalResult AttentionChooser::run() {
  best = attempt({});
  gather = {succeeded(best.variant.result), best.seconds(), best.arena};
  program.origins.pause(true); // they differ only in the keys
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
        keepIfBetter(attempt(std::move(rings)));
    }
  program.origins.pause(false);
  LogicalResult result = take(program, std::move(best.variant));
  if (!best.rings.empty())
    explainRings();
  return result;
}

AttentionChooser::Attempt AttentionChooser::attempt(std::vector<int64_t> rings) {
  Attempt made;
  PipelineOptions options = requested;
  options.attentionSequence = rings.empty() ? AttentionSequence::gather : AttentionSequence::ring;
  options.rings = rings;
  // Blocks that arrive early may take as much memory as the gathered keys.
  bool isBound = requested.overlaps && requested.search.mode.empty() &&
                 !requested.search.memoryBudget && gather.fits;
  if (isBound)
    options.search.memoryBudget = static_cast<double>(gather.arena) / (1024.0 * 1024 * 1024);
  made.rings = std::move(rings);
  made.variant = tryVariant(program, program.module->clone(), [&]() -> LogicalResult {
    if (failed(isBound ? runPhases(program, options, start, Phase::scheduled)
                       : compilePlan(program, options, start, Phase::scheduled)))
      return failure();
    FailureOr<int64_t> arena = arenaOf(*program.module);
    made.arena = arena.value_or(0);
    return arena;
  });
  return made;
}

void AttentionChooser::keepIfBetter(Attempt made) {
  bool minimisesMemory =
      !requested.search.mode.empty() && requested.search.minimise == Minimise::memory;
  bool isBetter =
      failed(best.variant.result) ||
      (minimisesMemory ? made.arena < best.arena : made.seconds() < best.seconds() * (1 - kNoGain));
  if (succeeded(made.variant.result) && isBetter)
    best = std::move(made);
}

void AttentionChooser::explainRings() {
  std::string why;
  if (best.rings.size() < kinds.size())
    why = llvm::formatv("{0} of {1} kinds of attentions; ", best.rings.size(), kinds.size());
  why += !gather.fits
             ? std::string("keys and values gathered do not fit into the memory budget")
             : llvm::formatv("{0:F2} us modelled, {1:F2} us with keys and values gathered; {2} "
                             "instead of {3} of memory",
                             best.seconds() * 1e6, gather.stepSeconds * 1e6,
                             exactBytesText(static_cast<double>(best.arena)),
                             exactBytesText(static_cast<double>(gather.arena)))
                   .str();
  SmallVector<Attribute> names;
  ModuleOp module = *program.module;
  Builder builder(program.context());
  if (auto before = module->getAttrOfType<ArrayAttr>(dist::kParallelisms))
    llvm::append_range(names, before);
  names.push_back(builder.getStringAttr("ring attention (" + why + ")"));
  module->setAttr(dist::kParallelisms, builder.getArrayAttr(names));
}

LogicalResult tessera::chooseAttention(PhasedProgram &program, const PipelineOptions &options,
                                       Phase from) {
  bool hasDevices =
      !program.module->getOps<dist::ProcessMeshOp>().empty() || options.search.devices > 1;
  bool onlyBalanced =
      !options.overlaps && !options.search.memoryBudget && options.search.mode.empty();
  if (hasDevices && (!onlyBalanced || (options.objective == sharding::Objective::time &&
                                       mayHaveManyScores(*program.module)))) {
    AttentionChooser chooser(program, options, from);
    if (chooser.mayBeRing(onlyBalanced))
      return chooser.run();
  }
  return compilePlan(program, options, from, Phase::scheduled);
}
