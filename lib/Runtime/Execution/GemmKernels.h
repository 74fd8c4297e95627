//===- GemmKernels.h - Tiles of a matrix product ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loops of PackedGemm.cpp for f32, one set per instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_GEMMKERNELS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_GEMMKERNELS_H

#include <cstdint>
#include <span>

namespace tessera::runtime {

constexpr int64_t kMostGemmVectors = 2; ///< a tile's width in vectors

/// c[r][j] = (add ? c[r][j] : 0) + sum over i < k of a[i][r] * b[i][j], summed in the order of i.
/// `a` and `b` are panels, dense and as wide as the tile; rows of `c` are `ldc` elements apart.
using GemmKernel = void (*)(int64_t k, const float *a, const float *b, float *c, int64_t ldc,
                            bool add);

struct GemmKernels {
  using Element = float;
  static constexpr int64_t kMostRows = 12;        ///< of a tile
  static constexpr int64_t kDepth = 384;          ///< the most summands of a block
  static constexpr int64_t rowUnit = 1, unit = 1; ///< as HalfGemmKernels
  static constexpr int64_t kRightUnit = 1;        ///< summands of a block of B

  const char *name;
  int64_t rows;                                    ///< of the fastest tile
  int64_t lanes;                                   ///< f32 elements of a vector
  GemmKernel kernels[kMostRows][kMostGemmVectors]; ///< by rows - 1, vectors - 1

  void enter() const {}
  void leave() const {}
};

/// All sets that this processor executes, the fastest first; none where only scalars are known.
std::span<const GemmKernels *const> allGemmKernels();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_GEMMKERNELS_H
