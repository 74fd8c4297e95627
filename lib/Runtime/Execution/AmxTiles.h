//===- AmxTiles.h - Products by tile registers ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AMX has 8 tiles of 16 rows of 64 bytes. Four are sums of 16 x 16 f32, two hold
// rows of A (16 x 32 summands), two hold columns of B (16 pairs of summands x 16
// columns): each loaded tile is used twice.
//
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18,
// volume 2, TDPBF16PS
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_AMXTILES_H
#define TESSERA_LIB_RUNTIME_EXECUTION_AMXTILES_H

#include "tessera/Runtime/Artifact/DType.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#if defined(__clang__) || __GNUC__ >= 13
#define TESSERA_HAS_AMX_FP16
#endif
#endif

namespace tessera::runtime {

constexpr int64_t kTileRows = 16, kTileBytes = 64;

/// The memory operand of LDTILECFG: 8 tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t bytesOfRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

/// The loop over summands of 16 R rows and 16 V columns. LOAD, ZERO, STORE and DOT are the
/// instructions; tile numbers are constants. A macro, because a function template does not inherit
/// the target of its caller.
#define TESSERA_AMX_PRODUCT(TARGET, LOAD, ZERO, STORE, DOT)                                        \
  template <int R, int V>                                                                          \
  TARGET static void multiply(int64_t k, const uint16_t *a, const uint16_t *b, float *c,           \
                              int64_t ldc, bool add) {                                             \
    const int64_t bytes = ldc * static_cast<int64_t>(sizeof(float));                               \
    float *below = c + kTileRows * ldc;                                                            \
    if (add) {                                                                                     \
      LOAD(0, c, bytes);                                                                           \
      if constexpr (V == 2)                                                                        \
        LOAD(1, c + 16, bytes);                                                                    \
      if constexpr (R == 2)                                                                        \
        LOAD(2, below, bytes);                                                                     \
      if constexpr (R == 2 && V == 2)                                                              \
        LOAD(3, below + 16, bytes);                                                                \
    } else {                                                                                       \
      ZERO(0);                                                                                     \
      ZERO(1);                                                                                     \
      ZERO(2);                                                                                     \
      ZERO(3);                                                                                     \
    }                                                                                              \
    for (int64_t i = 0; i < k; i += kSummands) {                                                   \
      LOAD(4, a, kTileBytes);                                                                      \
      LOAD(6, b, V * kTileBytes);                                                                  \
      DOT(0, 4, 6);                                                                                \
      if constexpr (V == 2) {                                                                      \
        LOAD(7, b + 32, V * kTileBytes);                                                           \
        DOT(1, 4, 7);                                                                              \
      }                                                                                            \
      if constexpr (R == 2) {                                                                      \
        LOAD(5, a + kTileRows * kSummands, kTileBytes);                                            \
        DOT(2, 5, 6);                                                                              \
        if constexpr (V == 2)                                                                      \
          DOT(3, 5, 7);                                                                            \
      }                                                                                            \
      a += R * kTileRows * kSummands;                                                              \
      b += V * kTileRows * kSummands;                                                              \
    }                                                                                              \
    STORE(0, c, bytes);                                                                            \
    if constexpr (V == 2)                                                                          \
      STORE(1, c + 16, bytes);                                                                     \
    if constexpr (R == 2)                                                                          \
      STORE(2, below, bytes);                                                                      \
    if constexpr (R == 2 && V == 2)                                                                \
      STORE(3, below + 16, bytes);                                                                 \
  }

#ifdef __x86_64__
#define TESSERA_AMX __attribute__((target("amx-tile,amx-bf16")))
struct AmxBf16 {
  static constexpr int64_t kSummands = 32; ///< of a row of a tile
  TESSERA_AMX static void begin() {
    static constexpr TileConfiguration kConfiguration;
    _tile_loadconfig(&kConfiguration);
  }
  TESSERA_AMX static void end() { _tile_release(); }
  TESSERA_AMX_PRODUCT(TESSERA_AMX, _tile_loadd, _tile_zero, _tile_stored, _tile_dpbf16ps)
};
#ifdef TESSERA_HAS_AMX_FP16
#define TESSERA_AMX_FP16 __attribute__((target("amx-tile,amx-fp16")))
struct AmxFp16 {
  static constexpr int64_t kSummands = 32;
  static void begin() { AmxBf16::begin(); }
  static void end() { AmxBf16::end(); }
  TESSERA_AMX_PRODUCT(TESSERA_AMX_FP16, _tile_loadd, _tile_zero, _tile_stored, _tile_dpfp16ps)
};
#endif
#endif

/// The instructions on tiles in memory.
struct EmulatedAmx {
  static constexpr int64_t kSummands = 32;
  struct Tile {
    uint8_t rows[kTileRows][kTileBytes];
  };
  static inline thread_local Tile tiles[8];

  /// TILELOADD: row i of the tile is the 64 bytes at base + i stride.
  static void load(int tile, const void *base, int64_t stride) {
    for (int64_t row = 0; row < kTileRows; ++row)
      std::memcpy(tiles[tile].rows[row], static_cast<const char *>(base) + row * stride,
                  kTileBytes);
  }
  static void zero(int tile) { tiles[tile] = {}; }
  /// TILESTORED
  static void store(int tile, void *base, int64_t stride) {
    for (int64_t row = 0; row < kTileRows; ++row)
      std::memcpy(static_cast<char *>(base) + row * stride, tiles[tile].rows[row], kTileBytes);
  }
  /// TDPBF16PS, without its treatment of subnormal numbers: pair k of row m of A meets the pair in
  /// row k, column n of B. Even summands are added apart from odd ones, and their sums to (m, n).
  static void dot(int sum, int a, int b) {
    auto half = [](const Tile &tile, int64_t row, int64_t column) {
      uint16_t bits;
      std::memcpy(&bits, tile.rows[row] + 2 * column, sizeof(bits));
      return bfloatToFloat(bits);
    };
    for (int64_t m = 0; m < kTileRows; ++m)
      for (int64_t n = 0; n < kTileRows; ++n) {
        float added[2] = {0, 0}, value;
        for (int64_t k = 0; k < kTileRows; ++k)
          for (int64_t odd = 0; odd < 2; ++odd)
            added[odd] = std::fma(half(tiles[a], m, 2 * k + odd), half(tiles[b], k, 2 * n + odd),
                                  added[odd]);
        std::memcpy(&value, tiles[sum].rows[m] + 4 * n, sizeof(value));
        value += added[0] + added[1];
        std::memcpy(tiles[sum].rows[m] + 4 * n, &value, sizeof(value));
      }
  }
  TESSERA_AMX_PRODUCT(, load, zero, store, dot)
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_AMXTILES_H
