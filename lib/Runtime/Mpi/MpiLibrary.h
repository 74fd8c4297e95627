//===- MpiLibrary.h - The MPI library of this process -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_MPILIBRARY_H
#define TESSERA_LIB_RUNTIME_MPI_MPILIBRARY_H

#include "Shim.h"
#include "tessera/Runtime/Artifact/Status.h"

#include <cstdint>

namespace tessera::runtime {

/// The MPI library of this process, for its lifetime: MPI is initialized once. The first use
/// initializes it, unless the program has (mpi4py does on import); whoever initializes it also
/// finalizes it, when the process exits.
class MpiLibrary {
public:
  /// Loads the library of the launcher: OMPI_* variables mean Open MPI, PMI_* MPICH; a loaded
  /// library takes precedence. `seconds` limits the initialization, in which MPI waits for all
  /// ranks without a limit.
  static Expected<MpiLibrary *> get(double seconds);
  /// Whether a launcher of MPI processes has started this one. Otherwise MPI is a job of one
  /// process.
  static bool isLaunched();

  /// The exit of the process must not wait for others, which may have failed.
  void giveUp() { failed = true; }

  const TesseraMpiShim *shim = nullptr;
  int rank = 0, size = 1;
  uint64_t world = 0; ///< communicator of all

  /// An error of a function of the table, 0 for none: "MPI_Isend to rank 3: …".
  Status error(int code, const std::string &what) const;

private:
  MpiLibrary() = default;
  Status load();
  Status start(double seconds);
  static void atExit();

  bool failed = false;
  bool startedHere = false;
  double exitSeconds = 0;
};

/// Ends the process with an error after `seconds`, unless destroyed before: some functions of MPI
/// wait for other ranks without a limit.
class AlarmTimer {
public:
  AlarmTimer(double seconds, std::string message);
  ~AlarmTimer();

private:
  struct State;
  State *state;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_MPILIBRARY_H
