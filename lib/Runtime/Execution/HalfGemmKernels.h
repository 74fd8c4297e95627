//===- HalfGemmKernels.h - Tiles of products of 16-bit floats ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loops of PackedGemm.cpp, one set per instruction set: AVX512-BF16
// (`vdpbf16ps`) and AMX (`tdpbf16ps`, `tdpfp16ps`).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_HALFGEMMKERNELS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_HALFGEMMKERNELS_H

#include "GemmKernels.h"
#include "tessera/Runtime/Artifact/DType.h"

#include <cstdint>
#include <span>
#include <string>

namespace tessera::runtime {

/// c[r][j] = (add ? c[r][j] : 0) + sum over i < k of a[r][i] b[i][j] in f32, in an order that
/// depends on k alone. `k` is a multiple of the set's unit; rows of `c` are `ldc` elements apart.
/// `a` is a panel of blocks of `unit` summands: in each, row by row, `unit` elements. `b` is a
/// panel of pairs of summands: in each, column by column, 2 elements.
using HalfGemmKernel = void (*)(int64_t k, const uint16_t *a, const uint16_t *b, float *c,
                                int64_t ldc, bool add);

struct HalfGemmKernels {
  using Element = uint16_t;
  static constexpr int64_t kMostRows = 32; ///< of a tile
  static constexpr int64_t kDepth = 768;   ///< the most summands of a block
  static constexpr int64_t kRightUnit = 2; ///< summands of a block of B
  static constexpr int64_t lanes = 16;     ///< f32 elements of a vector

  const char *name;
  DType dtype;
  int64_t rows;    ///< of the fastest tile
  int64_t rowUnit; ///< rows of a tile are a multiple
  int64_t unit;    ///< summands of a block of A
  /// Called by a thread before the kernels of a product, and after them. May be null.
  void (*begin)();
  void (*end)();
  HalfGemmKernel kernels[12][kMostGemmVectors]; ///< by rows / rowUnit - 1, vectors - 1

  void enter() const {
    if (begin)
      begin();
  }
  void leave() const {
    if (end)
      end();
  }
};

/// All sets that this machine runs, the fastest first.
std::span<const HalfGemmKernels *const> allHalfGemmKernels();

/// The fastest set for a type; null if this machine has none.
const HalfGemmKernels *halfGemmKernels(DType dtype);

/// The set of AMX for bf16 with its instructions executed by plain code, as the manual describes
/// them: tests the layout of its panels on machines without AMX.
const HalfGemmKernels &emulatedAmx();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_HALFGEMMKERNELS_H
