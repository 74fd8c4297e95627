//===- ContractKernels.h - Tiles of a contraction ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loops of Contract.cpp, one set per instruction set.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTKERNELS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTKERNELS_H

#include "tessera/Runtime/Artifact/DType.h"

#include <cstdint>
#include <span>

namespace tessera::runtime {

constexpr int64_t kMostRows = 8;    ///< of a tile
constexpr int64_t kMostVectors = 3; ///< a tile's width in vectors

/// tile[r][c] = sum over i < k of rows[r][offsets[i]] * b[i][c], r over the rows of a tile, c over
/// the columns of its vectors. `b` and `tile` are dense, row-major, and aligned to 64 bytes.
using TileKernel = void (*)(int64_t k, const float *const *rows, const int64_t *offsets,
                            const float *b, float *tile);

/// The same of columns that lie in memory by vectors: those of vector v begin at columns[v], and i
/// is sumOffsets[i] elements further. Nothing is aligned but `tile`.
using InPlaceKernel = void (*)(int64_t k, const float *const *rows, const int64_t *offsets,
                               const float *const *columns, const int64_t *sumOffsets, float *tile);

/// Writes eight rows of a tile whose lines are `width` apart, of `count` columns, to a result whose
/// rows lie together and whose column j begins at columns[j]; adds them to it if `add`.
using RowsWriter = void (*)(float *to, const int64_t *columns, int64_t count, const float *tile,
                            int64_t width, bool add);

struct TileKernels {
  const char *name;
  int64_t rows;                                   ///< of the highest tile
  int64_t lanes;                                  ///< f32 elements of a vector
  TileKernel kernels[kMostRows][kMostVectors];    ///< by rows - 1 and vectors - 1
  InPlaceKernel inPlace[kMostRows][kMostVectors]; ///< by rows - 1, of kMostVectors vectors
  RowsWriter writeEightRows = nullptr;            ///< null where tiles are lower
};

/// The fastest set that this processor executes.
const TileKernels &tileKernels();

/// Kernels of as many rows and lanes whose elements are pairs of summands of a 16-bit type, an even
/// one in the lower half and the next: k and the offsets count pairs. Null where the processor has
/// no instruction for them.
using PairKernels = const TileKernel (*)[kMostVectors];
PairKernels pairKernels(DType dtype);

/// All sets that this processor executes, the fastest first.
std::span<const TileKernels *const> allTileKernels();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_CONTRACTKERNELS_H
