//===- GpuLimits.h - What a GPU has, and what keeps it busy -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers that several stages must agree about. What one stage alone decides by stands in it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPULIMITS_H
#define TESSERA_CODEGEN_CUDA_GPULIMITS_H

#include <cstdint>

namespace tessera::codegen {

/// The widest access of a GPU, in bytes.
inline constexpr int64_t kAccessBytes = 16;
/// Threads of a warp, of the largest block.
inline constexpr int64_t kWarp = 32, kMaxThreads = 1024;
/// Threads of a block that need nothing from each other.
inline constexpr int64_t kBlockThreads = 256;
/// Shared memory that a block may have at most, in bytes: on sm_90.
inline constexpr int64_t kMostShared = 227 << 10;
/// Shared memory left for reductions of a row, in bytes.
inline constexpr int64_t kReserved = 2 << 10;
/// Launches of fewer iterations divide indices in 32 bits, which is several times as fast.
inline constexpr int64_t kNarrowIterations = int64_t(1) << 31;
/// Blocks of a launch.
inline constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;
/// Iterations that one thread runs one after the other: more than these are a warning, and an
/// error. 10^8 iterations, each a load behind the last, take a minute.
inline constexpr int64_t kManySerialIterations = 1'000'000, kMaxSerialIterations = 100'000'000;

/// What launches of a kernel are made for.
struct GpuLaunchLimits {
  int64_t sharedBytes = kMostShared; ///< that a block may have
  int64_t narrowIterations = kNarrowIterations;
};

/// Fewer teams of threads (rows, or parts of sums), or fewer elements of all of them, leave most of
/// a GPU idle. Reductions are cut (GpuSplit.cpp) and launches share rows (GpuWalk.cpp) by the same
/// numbers, lest one makes parts that the other does not take.
inline constexpr int64_t kBusyTeams = 32, kBusyElements = 32 << 10;

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPULIMITS_H
