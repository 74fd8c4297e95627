//===- Compilation.h - Compilation of one program ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_COMPILATION_H
#define TESSERA_DRIVER_COMPILATION_H

#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Load.h"
#include "tessera/Report/Report.h"
#include "tessera/Phases/Pipeline.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace tessera {

/// Owns the context, the diagnostics and the module of one program from its file to the local view.
/// Errors have been printed when a function fails.
class Compilation {
public:
  explicit Compilation(const ProgramOptions &options);
  ~Compilation();

  /// Keeps attention as one op where a GPU has kernels for it (docs/gpu.md); not for CPUs. Call
  /// before the phases run.
  void keepAttentionWhole() { keepsAttention = true; }
  /// Overlaps computation with collectives unless the options state otherwise. Call before the
  /// phases run.
  void overlapByDefault() { options.overlaps = options.overlaps.value_or(true); }
  /// Loads the program, selects its function, runs the phases up to `scheduled`, or to another one.
  mlir::LogicalResult toLocalView();
  mlir::LogicalResult toPhase(Phase phase);
  /// The same for the program without its meshes: the reference that `--check` compares with.
  mlir::LogicalResult toSingleDevice();
  /// Continues from there to steps over a planned arena (`rt.program`), without compiling kernels.
  /// `forGpu`: as in lowerToRt (Codegen/Compile.h).
  mlir::LogicalResult toSteps(bool forGpu = false);

  /// The single-device program as written, before any pass: the interpreter runs it. Returns the
  /// function.
  mlir::func::FuncOp toReference();

  /// Fails with a located error if the program was loaded in the local view: the part of one device
  /// has no meaning without the others, so there is no single-device program.
  mlir::LogicalResult checkHasReference();
  /// Fails with an error if shardings are already decided: the program was loaded in the local
  /// view, or its phase (--compile-from) is behind the search.
  mlir::LogicalResult checkCanSearch();

  mlir::ModuleOp module() { return *program; }
  mlir::MLIRContext *context() { return &mlirContext; }
  mlir::FailureOr<Report> report() { return report(*program); }
  /// The stream for messages: standard error, or the caller's string.
  llvm::raw_ostream &errors() { return *errorStream; }
  /// Seconds by phase.
  llvm::json::Value timing() const;

private:
  /// Reads the program and runs `options.passes`.
  mlir::LogicalResult read();
  mlir::LogicalResult load();
  mlir::FailureOr<Report> report(mlir::ModuleOp module);
  /// Checks the invariants of the passes that --compile-from skips.
  mlir::LogicalResult checkNormalized();
  mlir::LogicalResult runPhases(Phase to = Phase::scheduled);
  /// Compiles by the options of the pipeline: with the search, the memory budget or the phases
  /// alone.
  mlir::LogicalResult compile(const PipelineOptions &pipeline, Phase from, Phase to);
  /// The phases up to `scheduled`, with keys of cut sequences gathered or in a ring: the variant
  /// that fits into the memory budget and has the shorter modelled step.
  mlir::LogicalResult chooseAttention(PipelineOptions pipeline, Phase from);
  /// Runs some phases with the options of the pipeline.
  mlir::LogicalResult runPhases(PipelineOptions pipeline, Phase from, Phase to);
  /// The phases from `start` to `scheduled`, with choices that keep the planned arena within the
  /// memory budget, or without a budget as small as possible. If nothing fits, fails with an error,
  /// or returns false if the search `mayFail`, which then skips the search for the least memory.
  mlir::FailureOr<bool> fitMemory(const PipelineOptions &pipeline, Phase start, bool mayFail);
  /// From `partitioned` to `scheduled`: joins collectives and prefetches in loops such that the
  /// modelled step is shortest.
  mlir::LogicalResult overlapBest(const PipelineOptions &pipeline);
  /// From `propagated` to `scheduled`: divides updates among devices if that makes the modelled
  /// step with overlap shorter.
  mlir::LogicalResult divideUpdatesBest(PipelineOptions pipeline);
  /// From `fused` to `scheduled`, or better from `ordered`, the same program before its collectives
  /// are joined, if the arena stays within the budget.
  mlir::LogicalResult overlapWithinBudget(const PipelineOptions &pipeline,
                                          mlir::OwningOpRef<mlir::ModuleOp> ordered);

  /// The phases up to `scheduled` for the searched plan or a plain one: the program with the least
  /// reported time among those within the memory budget, if there is one.
  mlir::LogicalResult compileCheapest(const PipelineOptions &pipeline, Phase from);
  /// The phases up to `scheduled`. A program with many small collectives is also compiled without
  /// recuts; a small program that communicates is also searched with the arguments and results that
  /// propagation has. The better program is kept.
  mlir::LogicalResult searchWithin(const PipelineOptions &pipeline, Phase from);
  /// Compiles a normalized program from `start` on by other options, without messages. Returns
  /// whether it is better, and then the current one.
  bool tryPlan(const PipelineOptions &options, Phase start,
               mlir::OwningOpRef<mlir::ModuleOp> normalized,
               llvm::function_ref<bool(mlir::ModuleOp, const Report &)> isBetter);
  friend class AttentionChooser;
  friend class MemoryFitter;
  friend class PlanComparison;

  ProgramOptions options;
  bool keepsAttention = false;
  std::unique_ptr<llvm::raw_string_ostream> captured;
  llvm::raw_ostream *errorStream;
  mlir::MLIRContext mlirContext;
  LineDiagnostics diagnostics;
  OriginRecorder origins;
  mlir::OwningOpRef<mlir::ModuleOp> program;
  std::optional<mlir::Location> localView; ///< of the function, if it was loaded in that view
  std::vector<std::pair<std::string, double>> seconds;
};

/// Fails if the number of devices differs from that of the meshes that the program declares.
mlir::LogicalResult checkDevices(mlir::ModuleOp program, const SearchRequest &search);

/// Writes text to standard output ("-") or a file (through a temporary that is renamed). Exit code.
int writeText(const std::string &path, const std::string &text);

} // namespace tessera

#endif // TESSERA_DRIVER_COMPILATION_H
