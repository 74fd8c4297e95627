//===- HalfPackers.cpp - Moving and converting 16-bit floats --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HalfPackers.h"

#include "tessera/Runtime/Artifact/DType.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tessera::runtime {

// A macro, because functions do not inherit the target of their callers. BYTES: of a vector.
// `pairs` transposes 4 x 4 words in each 16 bytes of four lines, 128 bytes of each line before the
// next four.
#define TESSERA_HALF_PACKERS(NAME, TARGET, BYTES)                                                  \
  namespace NAME {                                                                                 \
  constexpr int64_t kWords = (BYTES) / 4;                                                          \
  typedef uint16_t Halves __attribute__((vector_size((BYTES) / 2), aligned(2), may_alias));        \
  typedef uint32_t Words __attribute__((vector_size(BYTES), aligned(2), may_alias));               \
  typedef uint32_t Four __attribute__((vector_size(16), aligned(2), may_alias));                   \
                                                                                                   \
  TARGET static void interleave(const uint16_t *even, const uint16_t *odd, int64_t count,          \
                                uint16_t *to) {                                                    \
    int64_t i = 0;                                                                                 \
    for (; i + kWords <= count; i += kWords) {                                                     \
      auto low = __builtin_convertvector(*reinterpret_cast<const Halves *>(even + i), Words);      \
      auto high = __builtin_convertvector(*reinterpret_cast<const Halves *>(odd + i), Words);      \
      *reinterpret_cast<Words *>(to + 2 * i) = low | (high << 16);                                 \
    }                                                                                              \
    for (; i < count; ++i) {                                                                       \
      to[2 * i] = even[i];                                                                         \
      to[2 * i + 1] = odd[i];                                                                      \
    }                                                                                              \
  }                                                                                                \
                                                                                                   \
  TARGET static int64_t pairs(const uint16_t *from, int64_t line, int64_t count, int64_t depth,    \
                              int64_t width, uint16_t *to) {                                       \
    constexpr int64_t kBlock = 64, kStep = 2 * kWords;                                             \
    int64_t done = 0;                                                                              \
    for (; done + kBlock <= depth; done += kBlock) {                                               \
      int64_t l = 0;                                                                               \
      for (; l + 4 <= count; l += 4)                                                               \
        for (int64_t i = done; i < done + kBlock; i += kStep) {                                    \
          const uint16_t *first = from + l * line + i;                                             \
          Words x = *reinterpret_cast<const Words *>(first);                                       \
          Words y = *reinterpret_cast<const Words *>(first + line);                                \
          Words z = *reinterpret_cast<const Words *>(first + 2 * line);                            \
          Words w = *reinterpret_cast<const Words *>(first + 3 * line);                            \
          Words lowXY = UNPACK_LOW_##BYTES(x, y), highXY = UNPACK_HIGH_##BYTES(x, y);              \
          Words lowZW = UNPACK_LOW_##BYTES(z, w), highZW = UNPACK_HIGH_##BYTES(z, w);              \
          const Words rows[] = {FIRST_##BYTES(lowXY, lowZW), SECOND_##BYTES(lowXY, lowZW),         \
                                FIRST_##BYTES(highXY, highZW), SECOND_##BYTES(highXY, highZW)};    \
          _Pragma("GCC unroll 4") for (int64_t row = 0; row < 4; ++row) {                          \
            _Pragma("GCC unroll 4") for (int64_t part = 0; part < kWords / 4; ++part) {            \
              Four four;                                                                           \
              __builtin_memcpy(&four, reinterpret_cast<const char *>(&rows[row]) + 16 * part, 16); \
              *reinterpret_cast<Four *>(to + (i + 8 * part + 2 * row) * width + 2 * l) = four;     \
            }                                                                                      \
          }                                                                                        \
        }                                                                                          \
      for (; l < count; ++l)                                                                       \
        for (int64_t i = done; i < done + kBlock; i += 2)                                          \
          std::memcpy(to + i * width + 2 * l, from + l * line + i, 4);                             \
    }                                                                                              \
    return done;                                                                                   \
  }                                                                                                \
                                                                                                   \
  TARGET static void narrow(const float *from, int64_t count, uint16_t *to) {                      \
    for (int64_t i = 0; i < count; ++i)                                                            \
      to[i] = floatToBfloat(from[i]);                                                              \
  }                                                                                                \
                                                                                                   \
  static const HalfPackers kPackers = {#NAME, interleave, pairs, narrow, widenF16, narrowF16};     \
  }

namespace plain {
static void widenF16(const uint16_t *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = halfToFloat(from[i]);
}
static void narrowF16(const float *from, int64_t count, uint16_t *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = floatToHalf(from[i]);
}
} // namespace plain

#define UNPACK_LOW_16(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define UNPACK_HIGH_16(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define FIRST_16(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5)
#define SECOND_16(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7)
TESSERA_HALF_PACKERS(plain, , 16)

#ifdef __x86_64__
namespace avx512 {
// The conversions are exact or round to nearest even, subnormal numbers included.
__attribute__((target("avx512f"))) static void widenF16(const uint16_t *from, int64_t count,
                                                        float *to) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(
        to + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i))));
  plain::widenF16(from + i, count - i, to + i);
}
__attribute__((target("avx512f"))) static void narrowF16(const float *from, int64_t count,
                                                         uint16_t *to) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i *>(to + i),
        _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  plain::narrowF16(from + i, count - i, to + i);
}
} // namespace avx512

// In each 16 bytes the same.
#define IN_EACH_64(x, y, a, b, c, d)                                                               \
  __builtin_shufflevector(x, y, a, b, c, d, (a) + 4, (b) + 4, (c) + 4, (d) + 4, (a) + 8, (b) + 8,  \
                          (c) + 8, (d) + 8, (a) + 12, (b) + 12, (c) + 12, (d) + 12)
#define UNPACK_LOW_64(x, y) IN_EACH_64(x, y, 0, 16, 1, 17)
#define UNPACK_HIGH_64(x, y) IN_EACH_64(x, y, 2, 18, 3, 19)
#define FIRST_64(x, y) IN_EACH_64(x, y, 0, 1, 16, 17)
#define SECOND_64(x, y) IN_EACH_64(x, y, 2, 3, 18, 19)
TESSERA_HALF_PACKERS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))), 64)
#endif

std::span<const HalfPackers *const> allHalfPackers() {
#ifdef __x86_64__
  static const HalfPackers *const all[] = {&avx512::kPackers, &plain::kPackers};
  bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl");
  return std::span(all).subspan(has512 ? 0 : 1);
#else
  static const HalfPackers *const all[] = {&plain::kPackers};
  return all;
#endif
}

const HalfPackers &halfPackers() {
  static const HalfPackers &best = *allHalfPackers().front();
  return best;
}

} // namespace tessera::runtime
