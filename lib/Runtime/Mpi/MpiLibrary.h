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

/// The MPI library that this process uses, for as long as it lives: MPI starts once. The first use
/// starts it, unless the program has (mpi4py does on import); who starts it also ends it, when the
/// process exits.
class MpiLibrary {
public:
  /// Loads the library of the launcher: OMPI_* variables are of Open MPI's, PMI_* of MPICH's; one
  /// that the process has loaded already comes first. `seconds` is the most that starting takes:
  /// MPI waits for all ranks inside, without a limit of its own.
  static Expected<MpiLibrary *> get(double seconds);
  /// Whether a launcher of MPI processes has started this one. MPI alone makes a job of one.
  static bool isLaunched();

  /// The exit of the process must not wait for others, who may have failed as well.
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

/// Ends the process with an error while it lives and `seconds` have passed: MPI has functions that
/// wait for other ranks and cannot be given a limit.
class Alarm {
public:
  Alarm(double seconds, std::string message);
  ~Alarm();

private:
  struct State;
  State *state;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_MPILIBRARY_H
