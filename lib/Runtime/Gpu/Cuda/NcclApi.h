//===- NcclApi.h - NCCL's functions, opened at run time ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declared here, from NCCL's documentation, so that neither the build nor the start
// needs NCCL.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLAPI_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLAPI_H

#include "../../Execution/SharedLibrary.h"
#include "../Driver.h"

namespace tessera::runtime::gpu {

using NcclComm = struct NcclCommObject *;
struct NcclUniqueId {
  char bytes[128];
};
/// The struct of NCCL 2.18, which later versions recognize by its size and version.
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

// NCCL's enumerators.
constexpr int kNcclSuccess = 0, kNcclInternalError = 3, kNcclInProgress = 7, kNcclNoColor = -1;
constexpr int kNcclInt8 = 0, kNcclUint8 = 1, kNcclInt32 = 2, kNcclUint32 = 3, kNcclInt64 = 4,
              kNcclUint64 = 5, kNcclFloat16 = 6, kNcclFloat32 = 7, kNcclFloat64 = 8,
              kNcclBfloat16 = 9;
/// NCCL's element type; nothing if it has none, as for i16.
std::optional<int> ncclTypeOf(DType dtype, bool isUnsigned = false);

constexpr int kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4;
constexpr int kNcclScalarOnHost = 1;
constexpr int kNcclSymmetric = 1; ///< of windows

/// The library.
struct NcclApi {
#define TESSERA_DECLARE(name, symbol, arguments) int(*name##Fn) arguments = nullptr;
  TESSERA_NCCL_FUNCTIONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE
  const char *(*errorText)(int) = nullptr;
  int (*finalizeFn)(NcclComm) = nullptr;
  int (*destroyFn)(NcclComm) = nullptr;
  int (*registerFn)(NcclComm, void *, size_t, void **) = nullptr; ///< from 2.19
  int (*memAllocFn)(void **, size_t) = nullptr;                   ///< from 2.19
  int (*memFreeFn)(void *) = nullptr;
  int (*windowFn)(NcclComm, void *, size_t, void **, int) = nullptr; ///< from 2.27
  int found = 0;                                                     ///< 22809 is 2.28.9

  /// Opens the library. The error names the missing part.
  Status openLibrary();
  /// "2.28.9".
  std::string versionText() const;
  /// "invalid argument (NCCL 2.28.9, error 4)".
  std::string describe(int result) const;
  /// For non-blocking communicators.
  static NcclConfig config();

private:
  Status begin();

  SharedLibrary library;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_NCCLAPI_H
