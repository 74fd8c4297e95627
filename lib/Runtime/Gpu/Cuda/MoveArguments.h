//===- MoveArguments.h - Parameter of the move kernel -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_MOVEARGUMENTS_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_MOVEARGUMENTS_H

namespace tessera::runtime::gpu {

constexpr int kMaxMoveLoops = 8;  ///< besides the contiguous one
constexpr int kMaxMoveEnds = 192; ///< of sources, of targets; all arguments together take < 4 KiB

constexpr int kMoveCopy = 0, kMoveFill = 1, kMoveReduce = 2;
constexpr int kReduceSum = 0, kReduceProd = 1, kReduceMax = 2, kReduceMin = 3;
constexpr int kTypeF64 = 0, kTypeF32 = 1, kTypeF16 = 2, kTypeBF16 = 3, kTypeI64 = 4, kTypeI32 = 5,
              kTypeI16 = 6, kTypeI8 = 7;

/// 16 bytes that are copied at once.
struct alignas(16) Sixteen {
  unsigned long long low, high;
};

/// The parameter of the kernel `tessera_move`. Lengths are in elements of `width` bytes.
struct MoveArguments {
  int mode, width, dtype, reduction;
  int loops, numSources, numTargets, scaled;
  long long extents[kMaxMoveLoops], source[kMaxMoveLoops], target[kMaxMoveLoops];
  long long run, elements;
  double scale;
  unsigned long long value; ///< of a fill, in its low bytes
  const void *sources[kMaxMoveEnds];
  void *targets[kMaxMoveEnds];
};
static_assert(sizeof(MoveArguments) <= 4096, "the limit of kernel parameters");

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_MOVEARGUMENTS_H
