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
#include "tessera/Variants/PhasedProgram.h"

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
  mlir::LogicalResult toLocalView() { return toPhase(Phase::scheduled); }
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

  mlir::ModuleOp module() { return *program.module; }
  mlir::FailureOr<Report> report() { return program.report(); }
  /// The stream for messages: standard error, or the caller's string.
  llvm::raw_ostream &errors() { return *errorStream; }
  /// Seconds by phase.
  llvm::json::Value timing() const;

private:
  /// Reads the program and runs `options.passes`.
  mlir::LogicalResult read();
  mlir::LogicalResult load();
  /// Checks the invariants of the passes that --compile-from skips.
  mlir::LogicalResult checkNormalized(Phase from);
  /// Checks the options of the search against the program, which is in phase `from`.
  mlir::LogicalResult checkSearch(Phase from);
  mlir::LogicalResult runPhases(Phase to);

  ProgramOptions options;
  bool keepsAttention = false;
  std::unique_ptr<llvm::raw_string_ostream> captured;
  llvm::raw_ostream *errorStream;
  mlir::MLIRContext mlirContext;
  LineDiagnostics diagnostics;
  PhasedProgram program;
  std::optional<mlir::Location> localView; ///< of the function, if it was loaded in that view
};

/// Fails if the number of devices differs from that of the meshes that the program declares.
mlir::LogicalResult checkDevices(mlir::ModuleOp program, const SearchRequest &search);

/// Writes text to standard output ("-") or a file (through a temporary that is renamed). Exit code.
int writeText(const std::string &path, const std::string &text);

} // namespace tessera

#endif // TESSERA_DRIVER_COMPILATION_H
