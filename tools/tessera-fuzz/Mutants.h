//===- Mutants.h - Invalid inputs by mutation -------------------*- C++ -*-===//
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
  std::vector<std::string> files; ///< valid inputs: .mlir, .mlirbc, .tsra, .json, .npy
  uint64_t first = 0, last = 0;   ///< seeds, `last` exclusive
  unsigned jobs = 1;
  unsigned seconds = 10; ///< limit per mutant
  std::string dumpDir;   ///< folder for mutants that crash or hang; empty: none
};

/// Passes each seed's mutant of one of the files to the reader of such files: the compiler, with or
/// without a search, from any phase, and a run of the result; the runtime; the readers of
/// topologies, problems and arrays. A mutant passes if it ends with a result or with a diagnosed
/// error. Crashes of MLIR's parser or verifiers, which the tools' supervision reports
/// (Supervisor.h), are counted separately. Prints failures and counts. Returns the exit code.
int runMutants(const MutantOptions &options);

} // namespace tessera::fuzz

#endif // TESSERA_TOOLS_TESSERA_FUZZ_MUTANTS_H
