//===- LaunchedRank.h - The rank of this process in its job -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule is that of tessera.ranks (python/tessera/ranks.py, docs/launch.md);
// test/Python/Inputs/ranks.json holds it as a table for both.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_LAUNCHEDRANK_H
#define TESSERA_LIB_RUNTIME_RANKS_LAUNCHEDRANK_H

#include "tessera/Runtime/Artifact/Status.h"

#include <cstdint>
#include <string>

namespace tessera::runtime {

struct BackendOptions;

struct LaunchedRank {
  int64_t rank = 0, size = 1;
  int64_t local = 0; ///< among the processes of its host; by default the rank
};

/// The description of a process in its environment.
struct LaunchedProcess {
  LaunchedRank rank;
  bool saysLocal = false;
  int64_t localSize = 0;              ///< processes of its host; 0: unknown
  std::string source = "no launcher"; ///< the selected set of variables
};

/// Like getenv.
using Environment = const char *(*)(const char *name);

/// The rank of this process: the first complete set of TESSERA_*, RANK, OMPI_*, PMI_* and SLURM_*
/// wins, and the first four must agree. Errors quote a malformed variable, two contradictory ones,
/// a rank beyond the size, or one without a size.
Expected<LaunchedProcess> launchedProcess(Environment get);
Expected<LaunchedRank> launchedRank();

/// Where rank 0 listens and the others connect: "HOST PORT", or "file:PATH" of a file into which it
/// writes that. TESSERA_RENDEZVOUS=file:PATH; or TESSERA_MASTER_ADDR and _PORT, else MASTER_ADDR
/// and MASTER_PORT (under torchrun the next port, since its agent uses that one), else the first of
/// Slurm's hosts; by default 127.0.0.1 and 29500.
Expected<std::string> jobAddress();
Expected<std::string> jobAddress(Environment get);

/// Seconds that processes wait for each other: of the options, else TESSERA_TIMEOUT, else
/// kDefaultTimeout.
Expected<double> timeoutOf(const BackendOptions &options);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_LAUNCHEDRANK_H
