//===- Driver.h - Run a program from the command line -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by `tessera run` and `tessera-exec`: inputs from files, steps, output of
// results, counted bytes, checks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMMANDLINE_DRIVER_H
#define TESSERA_RUNTIME_COMMANDLINE_DRIVER_H

#include "tessera/Runtime/Session/Session.h"

namespace tessera::runtime {

/// The options of one execution on the command line.
struct DriverOptions {
  using NamedFile = std::pair<std::string, std::string>; ///< name, path
  std::vector<NamedFile> inputs;                         ///< argument = f.npy
  std::vector<NamedFile> streams; ///< argument = f.npy whose leading axis is the step
  std::vector<NamedFile> outputs; ///< result = f.npy, after the last step
  std::optional<int64_t> steps;   ///< default: the length of the shortest stream, else 1
  uint64_t seed = 0;
  std::string jsonPath;  ///< empty: none; "-": standard output
  std::string tracePath; ///< empty: none
  int64_t devices = 0;   ///< 0: as many as the program needs
  int64_t cores = 0;     ///< 0: as many as the machine has
  bool pins = true;      ///< BackendOptions::pins
  std::string backend = "threads";
  uint64_t scheduleSeed = 0;     ///< BackendOptions::scheduleSeed
  double timeout = 0;            ///< BackendOptions::timeoutSeconds
  std::string dumpFolder;        ///< BackendOptions::dumpFolder
  std::string guard = "program"; ///< "full": BackendOptions::guardsCalls
  std::string precision;         ///< BackendOptions::precision
  bool quiet = false;            ///< print nothing (a reference run)
};

/// The compiler's summary, printed before a run: the string "summary" of the artifact's report; may
/// be empty.
std::string planSummary(const Artifact &artifact);

/// Splits "name=f.npy"; the option's name is for the message.
Expected<DriverOptions::NamedFile> parseNamedFile(const std::string &option,
                                                  const std::string &text);

/// One result compared with a reference run.
struct ResultCheck {
  std::string name;
  bool equal = true;
  double maxError = 0, tolerance = 0;
  std::string text; ///< a sentence
  std::vector<std::string> warnings;
};

/// The results of a run.
struct RunReport {
  struct Value {
    std::string name;
    HostTensor value;
  };
  std::vector<Value> results; ///< after the last step
  /// Values of the scalar results by step, in the order of `scalarNames`.
  std::vector<std::string> scalarNames;
  std::vector<std::vector<double>> scalars;
  int64_t steps = 0;
  int64_t devices = 0;
  uint64_t seed = 0;
  std::string backend;
  std::string products; ///< what multiplied matrices on a CPU; empty without products
  std::string cpu;      ///< the CPU whose kernels were run; empty without kernels for a CPU
  std::vector<CollectiveStats> collectives;
  /// For multi-process programs, by collective: its algorithms (`direct`, …), and the bytes that
  /// process `from` sends to process `to` per execution.
  struct Routes {
    int64_t id;
    std::vector<std::string> algorithms;
    struct Bytes {
      int64_t from, to, bytes;
    };
    std::vector<Bytes> sent;
  };
  std::vector<Routes> routes;
  /// Executor::counters of the first step, and of all later ones together.
  std::vector<std::pair<std::string, int64_t>> firstStep, laterSteps;
  /// Whether this process of the job reports: the others have no values, print nothing and write no
  /// files.
  bool reportsResults = true;
  std::string trace;               ///< when DriverOptions::tracePath is set
  std::vector<ResultCheck> checks; ///< filled by checkAgainst
  double seconds = 0;              ///< in steps, without loading
  /// Of each step: wall time, and CPU time of this process. For a backend that returns from a step
  /// before it is done, such as a GPU, the time to issue it.
  std::vector<double> stepSeconds, stepCoreSeconds;
  std::vector<double> deviceStepSeconds; ///< Executor::stepSeconds

  int64_t countedWireBytes() const; ///< sum over collectives, all executions
};

/// Loads inputs, prints the plan summary, runs all steps and prints scalar results every step
/// ("step 12  loss 0.1234", counted from 1) and a line for each other result after the last.
/// Nothing is printed with `quiet`, or when the JSON goes to standard output. Long runs show
/// progress on standard error. Nothing is written to files. Errors name the file, argument or
/// option.
Expected<RunReport> runProgram(std::shared_ptr<const Artifact> artifact,
                               const DriverOptions &options);

/// Compares the results of a run with those of a reference run of the same steps (matched by name)
/// and the scalars of every step; adds one entry each to `report.checks`. Returns whether all
/// agree.
bool checkAgainst(RunReport &report, const RunReport &reference);
/// Prints `check  loss  ok  max error …` lines and warnings to standard output.
void printChecks(const RunReport &report);

/// The JSON of --json: results with checksums (FNV-1a 64 of the global value's bytes), scalars,
/// counted bytes per collective and in total, checks. Times are under "timing".
std::string reportJson(const RunReport &report);

/// Writes --output, --trace and --json files, each through a temporary file and a rename.
Status writeOutputs(const RunReport &report, const DriverOptions &options);

/// Prints "tessera: error: MESSAGE" to standard error, unless another process of the job does;
/// returns 1, the exit code.
int printError(const Status &status);

/// runProgram and writeOutputs with errors printed: the exit code.
int runDriver(std::shared_ptr<const Artifact> artifact, const DriverOptions &options);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_COMMANDLINE_DRIVER_H
