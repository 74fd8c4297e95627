//===- Nccl.h - Collectives through NCCL ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H

#include "../../Execution/SharedLibrary.h"
#include "../../Ranks/Engine.h"
#include "../../Ranks/Rendezvous.h"
#include "../Driver.h"

#include <functional>
#include <map>

namespace tessera::runtime::gpu {

using NcclComm = struct NcclCommObject *;
struct NcclUniqueId {
  char bytes[128];
};
/// As of NCCL 2.18: later versions take it by its size and version.
struct NcclConfig {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCtas, maxCtas;
  const char *netName;
  int splitShare;
};

/// NCCL's functions, from its documentation; `stream` is the driver's.
#define TESSERA_NCCL_FUNCTIONS(F)                                                                  \
  F(getVersion, "ncclGetVersion", (int *))                                                         \
  F(getUniqueId, "ncclGetUniqueId", (NcclUniqueId *))                                              \
  F(initRank, "ncclCommInitRankConfig", (NcclComm *, int, NcclUniqueId, int, NcclConfig *))        \
  F(split, "ncclCommSplit", (NcclComm, int color, int key, NcclComm *, NcclConfig *))              \
  F(asyncError, "ncclCommGetAsyncError", (NcclComm, int *))                                        \
  F(abort, "ncclCommAbort", (NcclComm))                                                            \
  F(groupStart, "ncclGroupStart", ())                                                              \
  F(groupEnd, "ncclGroupEnd", ())                                                                  \
  F(allReduce, "ncclAllReduce",                                                                    \
    (const void *, void *, size_t, int type, int op, NcclComm, Stream))                            \
  F(allGather, "ncclAllGather", (const void *, void *, size_t, int type, NcclComm, Stream))        \
  F(reduceScatter, "ncclReduceScatter",                                                            \
    (const void *, void *, size_t, int type, int op, NcclComm, Stream))                            \
  F(broadcast, "ncclBroadcast",                                                                    \
    (const void *, void *, size_t, int type, int root, NcclComm, Stream))                          \
  F(reduce, "ncclReduce",                                                                          \
    (const void *, void *, size_t, int type, int op, int root, NcclComm, Stream))                  \
  F(send, "ncclSend", (const void *, size_t, int type, int peer, NcclComm, Stream))                \
  F(receive, "ncclRecv", (void *, size_t, int type, int peer, NcclComm, Stream))                   \
  F(makePreMulSum, "ncclRedOpCreatePreMulSum", (int *, void *, int type, int where, NcclComm))

/// One process's ranks. Communicators are split off one of all processes; every call is
/// non-blocking, and whatever stays behind for `seconds` is aborted.
class Nccl final : public RankEngine {
public:
  static constexpr int kManyRanksAGpu = 23000; ///< NCCL 2.30

  /// Blocks of all calls that may run beside others, and the most of one: with a collective's 32
  /// they fit on 132 processors, and leave room for kernels.
  static constexpr int kConcurrentBlocks = 64, kMostConcurrentBlocks = 8;

  Nccl(LaunchedRank rank, double seconds) : self(rank), seconds(seconds) {}
  ~Nccl() override;
  /// Opens the library. The error names what is missing.
  Status open();
  /// Joins the communicator of all ranks, with an id that `rendezvous` spreads.
  Status join(Rendezvous &rendezvous);
  int version() const { return found; }
  std::string versionText() const;

  Expected<std::vector<int64_t>> makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                                                   const std::vector<int64_t> &here,
                                                   Calls calls) override;
  void expectConcurrent(int64_t count) override { concurrent = count; }
  Status call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
              const std::byte *send, std::byte *receive) override;
  Status exchange(Issue issue, int64_t communicator, int64_t rank,
                  std::vector<RankMessage> messages) override;
  /// As a symmetric window where the memory is NCCL's own, else as a buffer; neither where the
  /// library has no such call, or the machine no such memory.
  Status registerBuffer(std::byte *data, int64_t bytes,
                        const std::vector<int64_t> &communicators) override;
  /// Memory that can become a window, until this goes; null where there is none, and for few bytes:
  /// NCCL rounds up to pages of 2 MiB.
  void *allocate(size_t bytes);
  /// Asked while a call waits for other ranks; an error, as of one that has ended, ends the wait.
  std::function<Status()> peersRun;
  /// Whether communicators are well; aborts them all when one is not, so that kernels which wait
  /// for a rank that has gone end.
  Status progress() override;
  void abortAll();

private:
  Status check(int result, NcclComm comm, const std::string &what);
  Expected<int> operationOf(const RankCall &call, int64_t communicator);
  static NcclConfig config();

#define TESSERA_DECLARE(name, symbol, arguments) int(*name##Fn) arguments = nullptr;
  TESSERA_NCCL_FUNCTIONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE
  const char *(*errorText)(int) = nullptr;
  int (*registerFn)(NcclComm, void *, size_t, void **) = nullptr; ///< from 2.19
  int (*memAllocFn)(void **, size_t) = nullptr;                   ///< from 2.19
  int (*memFreeFn)(void *) = nullptr;
  int (*windowFn)(NcclComm, void *, size_t, void **, int) = nullptr; ///< from 2.27
  std::vector<void *> own;                                           ///< by memAllocFn

  SharedLibrary library;
  LaunchedRank self;
  double seconds;
  int64_t concurrent = 1; ///< communicators whose calls may run beside others
  int found = 0;
  NcclComm world = nullptr;
  std::vector<NcclComm> communicators;                          ///< null: this process is not in it
  std::map<std::tuple<int64_t, DType, double>, int> scaledSums; ///< made once
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_NCCL_H
