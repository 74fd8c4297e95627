//===- GemmKernels.cpp - Tiles of a matrix product ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile's sums stay in registers: of AVX-512's 32, 12 x 2 are sums, of AVX2's
// 16, 6 x 2. Each step reads two vectors of b and a broadcast element a row.
//
//===----------------------------------------------------------------------===//

#include "GemmKernels.h"

namespace tessera::runtime {

// A macro, because a function template does not inherit the target of its caller.
#define TESSERA_GEMM_KERNEL(NAME, TARGET, BYTES)                                                   \
  template <int R, int V>                                                                          \
  TARGET static void NAME(int64_t k, const float *a, const float *b, float *c, int64_t ldc,        \
                          bool add) {                                                              \
    typedef float Vector __attribute__((vector_size(BYTES), aligned(4), may_alias));               \
    constexpr int kLanes = (BYTES) / 4;                                                            \
    Vector sums[R][V];                                                                             \
    _Pragma("GCC unroll 12") for (int r = 0; r < R; ++r) {                                         \
      _Pragma("GCC unroll 2") for (int v = 0; v < V; ++v) {                                        \
        const auto *from = reinterpret_cast<const Vector *>(c + r * ldc + v * kLanes);             \
        sums[r][v] = add ? *from : Vector{};                                                       \
      }                                                                                            \
    }                                                                                              \
    for (int64_t i = 0; i < k; ++i, a += R, b += V * kLanes) {                                     \
      Vector right[V];                                                                             \
      _Pragma("GCC unroll 2") for (int v = 0; v < V; ++v) right[v] =                               \
          *reinterpret_cast<const Vector *>(b + v * kLanes);                                       \
      _Pragma("GCC unroll 12") for (int r = 0; r < R; ++r) {                                       \
        const float left = a[r];                                                                   \
        _Pragma("GCC unroll 2") for (int v = 0; v < V; ++v) sums[r][v] += left * right[v];         \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 12") for (int r = 0; r < R; ++r) {                                         \
      _Pragma("GCC unroll 2") for (int v = 0; v < V; ++v) {                                        \
        auto *to = reinterpret_cast<Vector *>(c + r * ldc + v * kLanes);                           \
        *to = sums[r][v];                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

#define TESSERA_GEMM_ROW(NAME, R) {NAME<R, 1>, NAME<R, 2>}
#define TESSERA_GEMM_ROWS(NAME)                                                                    \
  TESSERA_GEMM_ROW(NAME, 1), TESSERA_GEMM_ROW(NAME, 2), TESSERA_GEMM_ROW(NAME, 3),                 \
      TESSERA_GEMM_ROW(NAME, 4), TESSERA_GEMM_ROW(NAME, 5), TESSERA_GEMM_ROW(NAME, 6)

#ifdef __x86_64__
TESSERA_GEMM_KERNEL(avx2Gemm, __attribute__((target("avx2,fma"))), 32)
TESSERA_GEMM_KERNEL(avx512Gemm, __attribute__((target("avx512f"))), 64)
static const GemmKernels kAvx2 = {"avx2", 6, 8, {TESSERA_GEMM_ROWS(avx2Gemm)}};
static const GemmKernels kAvx512 = {
    "avx512",
    12,
    16,
    {TESSERA_GEMM_ROWS(avx512Gemm), TESSERA_GEMM_ROW(avx512Gemm, 7),
     TESSERA_GEMM_ROW(avx512Gemm, 8), TESSERA_GEMM_ROW(avx512Gemm, 9),
     TESSERA_GEMM_ROW(avx512Gemm, 10), TESSERA_GEMM_ROW(avx512Gemm, 11),
     TESSERA_GEMM_ROW(avx512Gemm, 12)}};
#endif

std::span<const GemmKernels *const> allGemmKernels() {
#ifdef __x86_64__
  static const GemmKernels *const all[] = {&kAvx512, &kAvx2};
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return std::span(all).subspan(__builtin_cpu_supports("avx512f") ? 0 : avx2 ? 1 : 2);
#else
  return {};
#endif
}

} // namespace tessera::runtime
