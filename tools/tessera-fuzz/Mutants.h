//===- Mutants.h - Wrong inputs, one after the other ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_FUZZ_MUTANTS_H
#define TESSERA_TOOLS_TESSERA_FUZZ_MUTANTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::fuzz {

struct MutantOptions {
  std::vector<std::string> files; ///< correct inputs: .mlir, .mlirbc, .tsra, .json, .npy
  uint64_t first = 0, last = 0;   ///< seeds, `last` exclusive
  unsigned jobs = 1;
  unsigned seconds = 10; ///< that a mutant may take
  std::string dumpDir;   ///< where mutants that crash or hang are written; empty: nowhere
};

/// Gives each seed's mutant of one of the files to what reads such a file: the compiler, with or
/// without a search, from any phase, and a run of what it made; the runtime; the readers of
/// topologies, problems and arrays. A mutant passes if that ends with a result or with an error in
/// words. Where MLIR's parser or verifiers crash, the tools' supervision reports that
/// (Supervisor.h); it is counted apart. Prints the others, and counts. Returns the exit code.
int runMutants(const MutantOptions &options);

} // namespace tessera::fuzz

#endif // TESSERA_TOOLS_TESSERA_FUZZ_MUTANTS_H
