//===- Commands.h - The subcommands of tessera ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options of the command line as plain values, and the functions that implement the
// subcommands. No LLVM header here: the tool's main and the Python module include this
// file. Every function returns the exit code; for exit code 1 the error has been
// printed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_COMMANDS_H
#define TESSERA_DRIVER_COMMANDS_H

#include "tessera/Codegen/Target.h"
#include "tessera/Phases/Options.h"
#include "tessera/Runtime/CommandLine/Driver.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Options common to all subcommands that read a program. What decides the artifact is part of its
/// key in the cache (ArtifactCache.cpp).
struct ProgramOptions : PlanOptions {
  std::string file;                  ///< the program, "-" for standard input
  std::optional<std::string> text;   ///< the program itself; `file` then only names it
  std::string *messages = nullptr;   ///< gets errors, warnings, remarks; null: standard error
  std::string function;              ///< empty: @main, else the only public one
  std::string passes;                ///< run on the input program, e.g. dist-autodiff{wrt=w}
  std::string compileFrom = "input"; ///< phase that the file is in
  /// Overlap computation with collectives; by default only for target cuda.
  std::optional<bool> overlaps;
  std::vector<std::string> dialectPlugins; ///< shared objects with dialects of the program
};

/// Options of `tessera explain`.
struct ExplainOptions : ProgramOptions {
  std::string json;           ///< file for the report, "-" for standard output, empty for the table
  bool timing = false;        ///< add compile times under `timing`
  bool communication = false; ///< print each collective's algorithm and the alternatives instead
};

/// Prints the communication of the program; runs nothing.
int explain(const ExplainOptions &options);
/// The same report as JSON text and as the table; `json` and `communication` are ignored. Empty
/// after an error.
struct ReportTexts {
  std::string json, table;
};
std::optional<ReportTexts> explainTexts(const ExplainOptions &options);

/// The program as MLIR text in phase `to` (docs/architecture.md). Empty after an error.
std::optional<std::string> lowerProgram(const ProgramOptions &options, const std::string &to);

/// Options of `tessera compile`.
struct CompileOptions : ProgramOptions {
  std::string output;             ///< the artifact (.tsra)
  std::optional<Target> target;   ///< by default cpu; in `run` that of the backend
  std::vector<std::string> archs; ///< of cuda: sm_NN, compute_NN; empty: the compiler's choice
  bool warpgroups = false;        ///< of cuda for sm_90a alone, and stub: use wgmma
  std::vector<std::string> cpus;  ///< LLVM's names of CPUs, empty: this machine's
  std::string cacheDirectory;     ///< of kernels and artifacts, empty: the user's
  bool noCache = false;
  bool kernels = false; ///< print how each kernel was compiled
};

/// Compiles a program to an artifact that `tessera-exec` runs without LLVM.
int compile(const CompileOptions &options);
/// The artifact itself; null after an error.
std::shared_ptr<const runtime::Artifact> compileProgram(const CompileOptions &options);
/// The same, taken from the cache if this compiler has compiled the program before; messages come
/// at the end.
std::shared_ptr<const runtime::Artifact> compileOnce(const CompileOptions &options);

/// The reference of `--check`: `both` is the compiled program without its meshes, plus the
/// interpreter if the program is small (InterpreterCheck.h).
enum class Check { none, both, compiled, interpreter };
template <> inline constexpr auto kNames<Check> = named("none", "both", "compiled", "interpreter");

/// Options of `tessera run`. A target that is given must be that of the backend.
struct RunOptions : CompileOptions {
  runtime::DriverOptions driver;
  std::string plugin; ///< a shared object that registers a backend; empty: none
  Check check = Check::none;
};

/// Compiles and runs a program; with a check also runs the same program without its meshes and
/// compares the results: exit code 1 if a result differs beyond tolerance.
int run(const RunOptions &options);

/// A separate search: over a program, or over the tables of an exported problem.
struct SearchOptions : ProgramOptions {
  std::string problem; ///< file of an exported problem, "-" for standard input
  std::string json;    ///< file, "-" for standard output, empty for a table
  std::string mps;     ///< file for the mixed-integer program of a problem, empty: none
  int64_t top = 3;     ///< number of a program's plans to print
};

/// Chooses strategies and prints the plans with their proven bounds.
int search(const SearchOptions &options);

} // namespace tessera

#endif // TESSERA_DRIVER_COMMANDS_H
