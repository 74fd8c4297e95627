//===- ContractKernels.cpp - Tiles of a contraction -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is kept in registers: R rows of V vectors, to which each i adds the
// product of R broadcast elements and V vectors. AVX-512 has 32 registers for
// 8 x 3 sums, the others 16 for 4 x 3. Products of few rows have lower tiles.
//
//===----------------------------------------------------------------------===//

#include "ContractKernels.h"
#include "TransposeEight.h"

#include "tessera/Support/CpuFeatures.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tessera::runtime {

// A macro, because a function template does not inherit the target of its caller.
#define TESSERA_TILE_KERNEL(NAME, TARGET, BYTES)                                                   \
  template <int R, int V>                                                                          \
  TARGET static void NAME(int64_t k, const float *const *rows, const int64_t *offsets,             \
                          const float *b, float *tile) {                                           \
    typedef float Vector __attribute__((vector_size(BYTES), may_alias));                           \
    Vector sums[R][V];                                                                             \
    const float *row[R];                                                                           \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r) {                                          \
      row[r] = rows[r];                                                                            \
      _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) sums[r][v] = Vector{};                   \
    }                                                                                              \
    const auto *right = reinterpret_cast<const Vector *>(b);                                       \
    for (int64_t i = 0; i < k; ++i, right += V) {                                                  \
      const int64_t at = offsets[i];                                                               \
      Vector x[V];                                                                                 \
      _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) x[v] = right[v];                         \
      _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r) {                                        \
        const float left = row[r][at];                                                             \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) sums[r][v] += left * x[v];             \
      }                                                                                            \
    }                                                                                              \
    auto *out = reinterpret_cast<Vector *>(tile);                                                  \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r)                                            \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) out[r * V + v] = sums[r][v];           \
  }

#define TESSERA_IN_PLACE_KERNEL(NAME, TARGET, BYTES)                                               \
  template <int R, int V>                                                                          \
  TARGET static void NAME(int64_t k, const float *const *rows, const int64_t *offsets,             \
                          const float *const *columns, const int64_t *sumOffsets, float *tile) {   \
    typedef float Vector __attribute__((vector_size(BYTES), aligned(4), may_alias));               \
    Vector sums[R][V];                                                                             \
    const float *row[R], *column[V];                                                               \
    _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) column[v] = columns[v];                    \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r) {                                          \
      row[r] = rows[r];                                                                            \
      _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) sums[r][v] = Vector{};                   \
    }                                                                                              \
    for (int64_t i = 0; i < k; ++i) {                                                              \
      const int64_t at = offsets[i], from = sumOffsets[i];                                         \
      Vector x[V];                                                                                 \
      _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) x[v] =                                   \
          *reinterpret_cast<const Vector *>(column[v] + from);                                     \
      _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r) {                                        \
        const float left = row[r][at];                                                             \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) sums[r][v] += left * x[v];             \
      }                                                                                            \
    }                                                                                              \
    auto *out = reinterpret_cast<Vector *>(tile);                                                  \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r)                                            \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; ++v) out[r * V + v] = sums[r][v];           \
  }

#define TESSERA_TILE_ROW(NAME, R) {NAME<R, 1>, NAME<R, 2>, NAME<R, 3>}
#define TESSERA_TILE_ROWS(NAME)                                                                    \
  TESSERA_TILE_ROW(NAME, 1), TESSERA_TILE_ROW(NAME, 2), TESSERA_TILE_ROW(NAME, 3),                 \
      TESSERA_TILE_ROW(NAME, 4)

TESSERA_TILE_KERNEL(plainTile, , 16)
TESSERA_IN_PLACE_KERNEL(plainInPlace, , 16)
static const TileKernels kPlain = {
    "plain", 4, 4, {TESSERA_TILE_ROWS(plainTile)}, {TESSERA_TILE_ROWS(plainInPlace)}};

#ifdef __x86_64__
TESSERA_TILE_KERNEL(avx2Tile, __attribute__((target("avx2,fma"))), 32)
TESSERA_IN_PLACE_KERNEL(avx2InPlace, __attribute__((target("avx2,fma"))), 32)
TESSERA_TILE_KERNEL(avx512Tile, __attribute__((target("avx512f"))), 64)
TESSERA_IN_PLACE_KERNEL(avx512InPlace, __attribute__((target("avx512f"))), 64)

__attribute__((target("avx512f"))) static void writeEightRows(float *to, const int64_t *columns,
                                                              int64_t count, const float *tile,
                                                              int64_t width, bool add) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    Eight lines[8], elements[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      lines[i] = *reinterpret_cast<const Eight *>(tile + i * width + j);
    transposeEight(lines, elements);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      auto *out = reinterpret_cast<Eight *>(to + columns[j + i]);
      *out = add ? *out + elements[i] : elements[i];
    }
  }
  for (; j < count; ++j)
    for (int64_t i = 0; i < 8; ++i) {
      float &out = to[columns[j] + i];
      out = add ? out + tile[i * width + j] : tile[i * width + j];
    }
}

static const TileKernels kAvx2 = {
    "avx2", 4, 8, {TESSERA_TILE_ROWS(avx2Tile)}, {TESSERA_TILE_ROWS(avx2InPlace)}};
static const TileKernels kAvx512 = {
    "avx512",
    8,
    16,
    {TESSERA_TILE_ROWS(avx512Tile), TESSERA_TILE_ROW(avx512Tile, 5),
     TESSERA_TILE_ROW(avx512Tile, 6), TESSERA_TILE_ROW(avx512Tile, 7),
     TESSERA_TILE_ROW(avx512Tile, 8)},
    {TESSERA_TILE_ROWS(avx512InPlace), TESSERA_TILE_ROW(avx512InPlace, 5),
     TESSERA_TILE_ROW(avx512InPlace, 6), TESSERA_TILE_ROW(avx512InPlace, 7),
     TESSERA_TILE_ROW(avx512InPlace, 8)},
    writeEightRows};
#endif

#ifdef __x86_64__
/// As avx512Tile, by vdpbf16ps.
template <int R, int V>
__attribute__((target("avx512f,avx512bf16"))) static void
bf16Tile(int64_t k, const float *const *rows, const int64_t *offsets, const float *b, float *tile) {
  __m512 sums[R][V];
  const float *row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    row[r] = rows[r];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < k; ++i, b += 16 * V) {
    const int64_t at = offsets[i];
    __m512i right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      right[v] = _mm512_load_si512(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      std::memcpy(&pair, row[r] + at, sizeof(pair));
      const __m512i left = _mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)left, (__m512bh)right[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      _mm512_store_ps(tile + (r * V + v) * 16, sums[r][v]);
}

static const TileKernel kBf16[kMostRows][kMostVectors] = {
    TESSERA_TILE_ROWS(bf16Tile), TESSERA_TILE_ROW(bf16Tile, 5), TESSERA_TILE_ROW(bf16Tile, 6),
    TESSERA_TILE_ROW(bf16Tile, 7), TESSERA_TILE_ROW(bf16Tile, 8)};
#endif

PairKernels pairKernels(DType dtype) {
#ifdef __x86_64__
  if (dtype == DType::bf16 && productFeatures().avx512Bf16)
    return kBf16;
#endif
  return nullptr;
}

const TileKernels &tileKernels() {
  static const TileKernels &best = *allTileKernels().front();
  return best;
}

std::span<const TileKernels *const> allTileKernels() {
#ifdef __x86_64__
  static const TileKernels *const all[] = {&kAvx512, &kAvx2, &kPlain};
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return std::span(all).subspan(__builtin_cpu_supports("avx512f") ? 0 : avx2 ? 1 : 2);
#else
  static const TileKernels *const all[] = {&kPlain};
  return all;
#endif
}

} // namespace tessera::runtime
