//===- TransposeEight.h - Transposes 8 x 8 floats in registers --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEEIGHT_H
#define TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEEIGHT_H

#include <cstdint>

namespace tessera::runtime {

/// Writes the first eight elements of eight lines, which begin at from + lines[j], as columns:
/// to[i * width + j] = from[lines[j] + i].
using EightTransposer = void (*)(const float *from, const int64_t *lines, float *to, int64_t width);

/// Null if this processor has no vectors of eight.
EightTransposer eightTransposer();

#ifdef __x86_64__
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));

/// columns[j] has the elements j of the lines.
__attribute__((target("avx2"), always_inline)) inline void transposeEight(const Eight *lines,
                                                                          Eight *columns) {
  Eight pairs[8], fours[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(lines[i], lines[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(lines[i], lines[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int high = 0; high < 2; ++high) {
      Eight x = pairs[i + high], y = pairs[i + 2 + high];
      fours[i + 2 * high] = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * high + 1] = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    columns[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    columns[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
#endif

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEEIGHT_H
