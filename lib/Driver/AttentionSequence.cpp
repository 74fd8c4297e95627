//===- AttentionSequence.cpp - Keys gathered, or in a ring -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the sequence of an attention is cut, a ring moves what a gather of keys and
// values moves, in more messages. It pays in memory, and where blocks are sent while
// others are computed: which depends on all that is behind the choice. So the program
// is compiled both ways.
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

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

/// Gains that are not worth another way: in parts of what a step takes.
static constexpr double kNoGain = 1e-6;

/// Whether an attention is one whose keys may come in a ring, and, once that is decided, its
/// sequence is cut.
static bool mayHaveRing(ModuleOp module, bool isDecided) {
  return module
      .walk([&](Operation *op) -> WalkResult {
        if (!isa<ext::AttentionOp, ext::AttentionBackwardOp>(op))
          return WalkResult::advance();
        ext::AttentionParts parts = ext::partsOf(op);
        std::optional<unsigned> query = ext::ringCandidateOf(parts);
        if (!query)
          return WalkResult::advance();
        dist::OpShardingAttr sharding = dist::getOpSharding(op);
        bool may = sharding ? !sharding.getFactors()[parts.factors()[*query]].getAxes().empty()
                            : !isDecided;
        return may ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace tessera {

/// Compiles one program in both ways.
class AttentionChooser {
public:
  AttentionChooser(Compilation &compilation, PipelineOptions wish, Phase start)
      : compilation(compilation), wish(std::move(wish)), start(start),
        program(compilation.program->clone()), seconds(compilation.seconds) {}

  /// Whether a ring would be another program. Leaves the program as it was.
  bool mayBeRing() {
    PipelineOptions options = wish;
    options.attentionSequence = "ring";
    Phase to = std::max(start, wish.search.mode.empty() ? Phase::propagated : Phase::normalized);
    ScopedDiagnosticHandler quiet(&compilation.mlirContext, [](Diagnostic &) {});
    compilation.origins.pause(true);
    bool may = succeeded(compilation.runPhases(options, start, to)) &&
               mayHaveRing(*compilation.program, to >= Phase::propagated);
    compilation.origins.pause(false);
    compilation.program = program->clone();
    compilation.seconds = seconds;
    return may;
  }

  LogicalResult run() {
    gather = attempt("gather");
    compilation.origins.pause(true); // they are alike but for the keys
    ring = attempt("ring");
    compilation.origins.pause(false);
    Attempt &taken = isRingBetter() ? ring : gather;
    compilation.program = std::move(taken.program);
    compilation.seconds = std::move(taken.phases);
    for (Diagnostic &message : taken.messages)
      compilation.mlirContext.getDiagEngine().emit(std::move(message));
    if (&taken == &ring)
      explainRing();
    return taken.result;
  }

private:
  struct Attempt {
    LogicalResult result = failure();
    OwningOpRef<ModuleOp> program;
    std::vector<Diagnostic> messages;
    std::vector<std::pair<std::string, double>> phases;
    double stepSeconds = 0;
    int64_t arena = 0;
  };

  Attempt attempt(StringRef way) {
    Attempt made;
    ScopedDiagnosticHandler handler(&compilation.mlirContext, [&](Diagnostic &message) {
      made.messages.push_back(std::move(message));
    });
    PipelineOptions options = wish;
    options.attentionSequence = way.str();
    compilation.program = program->clone();
    compilation.seconds = seconds;
    if (wish.overlaps && wish.search.mode.empty() && !wish.search.memoryBudget &&
        succeeded(gather.result)) {
      // Blocks that arrive early may take what the gathered keys would.
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

  bool isRingBetter() const {
    if (failed(ring.result) || failed(gather.result))
      return succeeded(ring.result);
    if (!wish.search.mode.empty() && wish.search.minimise == "memory")
      return ring.arena < gather.arena;
    return ring.stepSeconds < gather.stepSeconds * (1 - kNoGain);
  }

  /// Says in the report why the ring was taken.
  void explainRing() {
    std::string why =
        failed(gather.result)
            ? std::string("keys and values gathered do not fit into the memory budget")
            : llvm::formatv("{0:F2} us modelled, {1:F2} us with keys and values gathered; {2} "
                            "instead of {3} of memory",
                            ring.stepSeconds * 1e6, gather.stepSeconds * 1e6,
                            exactBytesText(static_cast<double>(ring.arena)),
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
  PipelineOptions wish;
  Phase start;
  OwningOpRef<ModuleOp> program;
  std::vector<std::pair<std::string, double>> seconds;
  Attempt gather, ring;
};

} // namespace tessera

LogicalResult Compilation::chooseAttention(PipelineOptions pipeline, Phase from) {
  bool hasDevices = !program->getOps<dist::ProcessMeshOp>().empty() || pipeline.search.devices > 1;
  AttentionChooser chooser(*this, pipeline, from);
  return hasDevices && chooser.mayBeRing() ? chooser.run()
                                           : compile(pipeline, from, Phase::scheduled);
}
