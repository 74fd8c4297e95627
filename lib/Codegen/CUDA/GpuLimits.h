//===- GpuLimits.h - Limits and occupancy of GPUs ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The constants that several stages share. Constants of a single stage are in its file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPULIMITS_H
#define TESSERA_CODEGEN_CUDA_GPULIMITS_H

#include <cstdint>

namespace tessera::codegen {

/// The widest access of a GPU, in bytes.
inline constexpr int64_t kAccessBytes = 16;
/// Threads of a warp, and of the largest block.
inline constexpr int64_t kWarp = 32, kMaxThreads = 1024;
/// Threads of a block whose threads are independent.
inline constexpr int64_t kBlockThreads = 256;
/// The most shared memory of a block, in bytes, on sm_90.
inline constexpr int64_t kMostShared = 227 << 10;
/// Shared memory reserved for reductions of a row, in bytes.
inline constexpr int64_t kReserved = 2 << 10;
/// Launches of fewer iterations divide indices in 32 bits, which is several times faster.
inline constexpr int64_t kNarrowIterations = int64_t(1) << 31;
/// The most blocks of a launch.
inline constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;
/// Limits on the sequential iterations of one thread: more are a warning, and an error. 10^8
/// iterations, each with a load that waits for the previous one, take a minute.
inline constexpr int64_t kManySerialIterations = 1'000'000, kMaxSerialIterations = 100'000'000;

/// The hardware limits of a kernel's launches.
struct GpuLaunchLimits {
  int64_t sharedBytes = kMostShared; ///< per block
  int64_t narrowIterations = kNarrowIterations;
  bool warpgroups = false; ///< products of warpgroups exist (sm_90a)
};

/// Fewer teams of threads (rows, or parts of sums), or fewer elements in total, leave most of a GPU
/// idle. The split of reductions (GpuSplit.cpp) and the sharing of rows by launches (GpuWalk.cpp)
/// must use the same limits, so that the latter accepts the parts of the former.
inline constexpr int64_t kBusyTeams = 32, kBusyElements = 32 << 10;

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPULIMITS_H
