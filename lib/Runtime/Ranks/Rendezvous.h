//===- Rendezvous.h - Where the processes of a job meet ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H
#define TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H

#include "tessera/Runtime/Artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::runtime {

/// Which process of a job this is, as launchers say: TESSERA_RANK, TESSERA_SIZE and
/// TESSERA_LOCAL_RANK, or the variables of Open MPI, MPICH, Slurm and torchrun.
struct LaunchedRank {
  int64_t rank = 0, size = 1, local = 0;
};
/// Errors quote a variable that is no number, or a rank beyond the size.
Expected<LaunchedRank> launchedRank();

/// Processes that give each other bytes, through rank 0, over TCP. Rank 0 listens at
/// MASTER_ADDR:MASTER_PORT, or at any port, which it writes into the file that
/// TESSERA_RENDEZVOUS=file:PATH names, and which is removed when all have met.
class Rendezvous {
public:
  ~Rendezvous();
  /// Meets all others. Fails after `seconds`, naming the ranks that did not come.
  static Expected<std::unique_ptr<Rendezvous>> open(const LaunchedRank &rank, double seconds);
  /// How long ranks wait for each other: as long as `open` was told, or, since a step of one may be
  /// any longer than that of another, until one of their processes ends.
  enum class Wait { whileOpening, whileRunning };
  /// What each rank gave, by rank. Called by all ranks in the same order.
  Expected<std::vector<std::string>> allGather(const std::string &mine,
                                               Wait wait = Wait::whileOpening);
  /// What any rank failed at fails all of them, with its message: others would only see that it
  /// does not come.
  Status agree(const Status &mine, Wait wait);
  /// Gives all ranks the `size` bytes at `data` of rank `owner`. Fails where that rank gave another
  /// number of them.
  Status broadcast(int64_t owner, std::byte *data, int64_t size, Wait wait);

  /// Whether the processes that this one is connected to still run; does not wait.
  Status checkPeers() const;

private:
  Rendezvous(const LaunchedRank &rank, double seconds) : self(rank), seconds(seconds) {}
  Status listenAndAccept(const std::string &address);
  Status listenAt(const std::string &address);
  Status acceptAll();
  Status connectTo(const std::string &address);

  LaunchedRank self;
  double seconds;
  int listener = -1;
  std::vector<int> peers; ///< rank 0: by rank; others: the connection to rank 0
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_RENDEZVOUS_H
