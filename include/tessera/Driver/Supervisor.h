//===- Supervisor.h - A process that outlives a crash -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser and verifiers crash on some wrong programs, not all of which are known.
// The tools therefore work in a child process. If a signal ends it, the parent reads
// the program again, in further children, and reports the unreadable place like any
// other error of the program.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_SUPERVISOR_H
#define TESSERA_DRIVER_SUPERVISOR_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Calls `work` in a child process and returns its exit code; call it first in main, before any
/// thread starts. If a signal ends the child: prints one error and returns 1. The error has a
/// location if reading the program fails; otherwise it is "internal error". A signal that was sent
/// to the child from outside (SIGINT, SIGTERM, SIGKILL, …) ends this process too. If the arguments
/// contain `--in-process`, which `work` does not get, there is no child, and a fault prints a stack
/// trace.
int supervise(int argc, char **argv, const std::function<int(int, char **)> &work);

/// Records the program that the process is about to read. The text is kept for the parent only if
/// it cannot be read again, as from a pipe.
void noteProgram(const std::string &name, std::string_view text);

/// A crash while reading a program.
struct ReadCrash {
  std::string error; ///< "file:line:column: error: …"
  bool isDiagnosed;  ///< whether it is MLIR's own error, printed before the crash
};

/// Reads and verifies a program in child processes; empty if no signal ends them. Only for a
/// process without threads. `isSplit`: parts between `// -----` are separate programs.
std::optional<ReadCrash> findReadCrash(std::string_view text, const std::string &name,
                                       bool isSplit = false);

} // namespace tessera

#endif // TESSERA_DRIVER_SUPERVISOR_H
