//===- InnerLoops.cpp - The inner loops of the search ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InnerLoops.h"

#include <algorithm>
#include <limits>

// Compiled for several vector widths; the loader picks the widest that the machine has. The results
// are bitwise equal: the operations are additions and minima in a fixed order.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer)
#define TESSERA_WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#else
#define TESSERA_WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#endif
#ifndef TESSERA_WIDE
#define TESSERA_WIDE
#endif

namespace tessera::solver {

TESSERA_WIDE void maxDifferences(double *result, const double *values, int32_t n) {
  for (int32_t a = 0; a < n; ++a) {
    double base = values[a];
    double *row = result + static_cast<int64_t>(a) * n;
    for (int32_t b = 0; b < n; ++b) {
      double difference = values[b] - base;
      row[b] = row[b] > difference ? row[b] : difference;
    }
  }
}

namespace {

/// Columns kept in registers while k runs.
constexpr int32_t tile = 32;

/// One tile of `width` columns.
template <int32_t width>
[[gnu::always_inline]] inline void sumTile(double *out, const double *left, int32_t leftStride,
                                           const double *right, const int64_t *offset,
                                           int32_t count) {
  double best[width];
  for (int32_t i = 0; i < width; ++i)
    best[i] = out[i];
  for (int32_t k = 0; k < count; ++k) {
    const double *a = left + static_cast<int64_t>(k) * leftStride, *b = right + offset[k];
    for (int32_t i = 0; i < width; ++i) {
      double sum = a[i] + b[i];
      best[i] = sum < best[i] ? sum : best[i];
    }
  }
  for (int32_t i = 0; i < width; ++i)
    out[i] = best[i];
}

template <int32_t width, typename Real>
[[gnu::always_inline]] inline void shiftTile(Real *out, const Real *left, int32_t leftStride,
                                             const Real *shift, int32_t count) {
  Real best[width];
  for (int32_t i = 0; i < width; ++i)
    best[i] = out[i];
  for (int32_t k = 0; k < count; ++k) {
    const Real *a = left + static_cast<int64_t>(k) * leftStride;
    for (int32_t i = 0; i < width; ++i) {
      Real sum = a[i] + shift[k];
      best[i] = sum < best[i] ? sum : best[i];
    }
  }
  for (int32_t i = 0; i < width; ++i)
    out[i] = best[i];
}

} // namespace

// The last tile of a row overlaps the one before: taking a minimum twice is harmless.
#define TESSERA_TILES(call)                                                                        \
  int32_t at = 0;                                                                                  \
  for (; at + tile <= n; at += tile)                                                               \
    call(tile, at);                                                                                \
  if (at == n)                                                                                     \
    return;                                                                                        \
  if (n - at > 16 && n >= tile) {                                                                  \
    call(tile, n - tile);                                                                          \
    return;                                                                                        \
  }                                                                                                \
  if (n - at >= 16) {                                                                              \
    call(16, at);                                                                                  \
    at += 16;                                                                                      \
  }                                                                                                \
  if (at < n && n - at > 8 && n >= 16) {                                                           \
    call(16, n - 16);                                                                              \
    return;                                                                                        \
  }                                                                                                \
  if (n - at >= 8) {                                                                               \
    call(8, at);                                                                                   \
    at += 8;                                                                                       \
  }                                                                                                \
  if (at < n && n >= 8) {                                                                          \
    call(8, n - 8);                                                                                \
    return;                                                                                        \
  }                                                                                                \
  if (n - at >= 4) {                                                                               \
    call(4, at);                                                                                   \
    at += 4;                                                                                       \
  }                                                                                                \
  for (; at < n; ++at)                                                                             \
  call(1, at)

TESSERA_WIDE void minOfSums(double *out, int32_t n, const double *left, int32_t leftStride,
                            const double *right, const int64_t *offset, int32_t count) {
#define TESSERA_CALL(width, i)                                                                     \
  sumTile<width>(out + (i), left + (i), leftStride, right + (i), offset, count)
  TESSERA_TILES(TESSERA_CALL);
#undef TESSERA_CALL
}

#define TESSERA_CALL(width, i) shiftTile<width>(out + (i), left + (i), leftStride, shift, count)
TESSERA_WIDE void minOfShifted(double *out, int32_t n, const double *left, int32_t leftStride,
                               const double *shift, int32_t count) {
  TESSERA_TILES(TESSERA_CALL);
}

TESSERA_WIDE void minOfShifted(float *out, int32_t n, const float *left, int32_t leftStride,
                               const float *shift, int32_t count) {
  TESSERA_TILES(TESSERA_CALL);
}
#undef TESSERA_CALL

TESSERA_WIDE double largestDifference(const double *left, const double *right, int64_t n) {
  // One maximum per lane, so that the loop vectorizes.
  constexpr int lanes = 16;
  double largest[lanes];
  for (double &lane : largest)
    lane = -std::numeric_limits<double>::infinity();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) {
      double difference = left[i + lane] - right[i + lane];
      largest[lane] = largest[lane] > difference ? largest[lane] : difference;
    }
  for (; i < n; ++i)
    largest[0] = std::max(largest[0], left[i] - right[i]);
  return *std::max_element(largest, largest + lanes);
}

TESSERA_WIDE void addRows(double *out, int32_t n, const double *left, const double *right) {
  for (int32_t i = 0; i < n; ++i)
    out[i] = left[i] + right[i];
}

TESSERA_WIDE void addShift(double *out, int32_t n, const double *left, double shift) {
  for (int32_t i = 0; i < n; ++i)
    out[i] = left[i] + shift;
}

} // namespace tessera::solver
