//===- HalfGemmKernels.cpp - Tiles of products of 16-bit floats -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AVX512-BF16: of 32 registers, 12 x 2 are sums; each step multiplies a broadcast
// pair of a row with two vectors of pairs, as GemmKernels.cpp does with elements.
// AMX: AmxTiles.h.
//
//===----------------------------------------------------------------------===//

#include "HalfGemmKernels.h"

#include "AmxTiles.h"
#include "tessera/Support/CpuFeatures.h"

#include <algorithm>
#include <cstring>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tessera::runtime {

#ifdef __x86_64__
template <int R, int V>
__attribute__((target("avx512f,avx512bf16"))) static void
avx512Bf16(int64_t k, const uint16_t *a, const uint16_t *b, float *c, int64_t ldc, bool add) {
  __m512 sums[R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    __builtin_prefetch(c + r * ldc, 1);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < k; i += 2, a += 2 * R, b += 2 * V * HalfGemmKernels::lanes) {
    __m512i right[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v)
      right[v] = _mm512_loadu_si512(b + 2 * v * HalfGemmKernels::lanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + 2 * r, sizeof(pair));
      const __m512i left = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)left, (__m512bh)right[v]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      float *to = c + r * ldc + v * HalfGemmKernels::lanes;
      __m512 sum = sums[r][v];
      _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
    }
  }
}

#define TESSERA_HALF_ROW(R) {avx512Bf16<R, 1>, avx512Bf16<R, 2>}
static const HalfGemmKernels kAvx512Bf16 = {
    "avx512_bf16",
    DType::bf16,
    12,
    1,
    2,
    nullptr,
    nullptr,
    {TESSERA_HALF_ROW(1), TESSERA_HALF_ROW(2), TESSERA_HALF_ROW(3), TESSERA_HALF_ROW(4),
     TESSERA_HALF_ROW(5), TESSERA_HALF_ROW(6), TESSERA_HALF_ROW(7), TESSERA_HALF_ROW(8),
     TESSERA_HALF_ROW(9), TESSERA_HALF_ROW(10), TESSERA_HALF_ROW(11), TESSERA_HALF_ROW(12)}};

#define TESSERA_AMX_SET(NAME, DTYPE, TILES)                                                        \
  {                                                                                                \
    NAME, DTYPE, 32, 16, TILES::kSummands, TILES::begin, TILES::end, {                             \
      {TILES::multiply<1, 1>, TILES::multiply<1, 2>}, {                                            \
        TILES::multiply<2, 1>, TILES::multiply<2, 2>                                               \
      }                                                                                            \
    }                                                                                              \
  }
static const HalfGemmKernels kAmxBf16 = TESSERA_AMX_SET("amx_bf16", DType::bf16, AmxBf16);
#ifdef TESSERA_HAS_AMX_FP16
static const HalfGemmKernels kAmxFp16 = TESSERA_AMX_SET("amx_fp16", DType::f16, AmxFp16);
#endif
#endif

#define TESSERA_EMULATED_SET(TILES)                                                                \
  {                                                                                                \
    "amx_bf16 emulated", DType::bf16, 32, 16, TILES::kSummands, nullptr, nullptr, {                \
      {TILES::multiply<1, 1>, TILES::multiply<1, 2>}, {                                            \
        TILES::multiply<2, 1>, TILES::multiply<2, 2>                                               \
      }                                                                                            \
    }                                                                                              \
  }
const HalfGemmKernels &emulatedAmx() {
  static const HalfGemmKernels set = TESSERA_EMULATED_SET(EmulatedAmx);
  return set;
}

static std::vector<const HalfGemmKernels *> detect() {
  std::vector<const HalfGemmKernels *> found;
#ifdef __x86_64__
  const ProductFeatures &features = productFeatures();
  if (features.amxBf16)
    found.push_back(&kAmxBf16);
  if (features.avx512Bf16)
    found.push_back(&kAvx512Bf16);
#ifdef TESSERA_HAS_AMX_FP16
  if (features.amxFp16)
    found.push_back(&kAmxFp16);
#endif
#endif
  return found;
}

std::span<const HalfGemmKernels *const> allHalfGemmKernels() {
  static const std::vector<const HalfGemmKernels *> found = detect();
  return found;
}

const HalfGemmKernels *halfGemmKernels(DType dtype) {
  for (const HalfGemmKernels *set : allHalfGemmKernels())
    if (set->dtype == dtype)
      return set;
  return nullptr;
}

} // namespace tessera::runtime
