//===- Nccl.h - Collectives through NCCL ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H

#include "../../Ranks/Engine.h"
#include "../../Ranks/Rendezvous.h"
#include "NcclApi.h"

#include <functional>
#include <map>

namespace tessera::runtime::gpu {

/// The ranks of one process. Communicators are split from one of all processes; every call is
/// non-blocking, and a call that exceeds `seconds` is aborted.
class Nccl final : public RankEngine, private NcclApi {
public:
  static constexpr int kManyRanksAGpu = 23000; ///< NCCL 2.30

  /// Thread blocks of all concurrent calls together, and the most of one: with the 32 of a
  /// collective they fit on 132 multiprocessors and leave room for kernels.
  static constexpr int kConcurrentBlocks = 64, kMostConcurrentBlocks = 8;

  Nccl(LaunchedRank rank, double seconds) : self(rank), seconds(seconds) {}
  ~Nccl() override;
  /// Opens the library. The error names the missing part.
  Status open();
  /// Joins the communicator of all ranks, with an id that `rendezvous` distributes.
  Status join(Rendezvous &rendezvous);
  int version() const { return found; }
  using NcclApi::versionText;

  Expected<std::vector<int64_t>> makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                                                   const std::vector<int64_t> &here,
                                                   Calls calls) override;
  void expectConcurrent(int64_t count) override { concurrent = count; }
  Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
              const std::byte *send, std::byte *receive) override;
  Status exchange(Issue issue, int64_t communicator, int64_t rank,
                  std::vector<RankMessage> messages) override;
  Status beginCalls() override;
  Status endCalls(int64_t communicator, const char *what) override;
  /// Registers a buffer: as a symmetric window if NCCL allocated its memory, else as a plain
  /// buffer; has no effect if the library has no such call, or the machine no such memory.
  Status registerBuffer(std::byte *data, int64_t bytes,
                        const std::vector<int64_t> &communicators) override;
  /// Memory that can become a window, valid for the lifetime of this object; null if there is none,
  /// and for few bytes, since NCCL rounds up to pages of 2 MiB.
  void *allocate(size_t bytes);
  /// Called while a call waits for other ranks; an error, for example of a rank that has ended,
  /// ends the wait.
  std::function<Status()> peersRun;
  /// Whether communicators are healthy; aborts them all if one is not, to end kernels that wait for
  /// a lost rank.
  Status progress() override;
  void abandon() override { abortAll(); }
  void abortAll();

private:
  void close();
  Status check(int result, NcclComm comm, const std::string &what);
  Expected<int> operationOf(const RankCall &call, int64_t communicator);

  std::vector<void *> own; ///< from memAllocFn
  LaunchedRank self;
  double seconds;
  int64_t concurrent = 1; ///< communicators whose calls may run concurrently
  bool grouping = false;  ///< between beginCalls and endCalls
  NcclComm world = nullptr;
  std::vector<NcclComm> communicators;                          ///< null: this process is not in it
  std::map<std::tuple<int64_t, DType, double>, int> scaledSums; ///< made once
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H
