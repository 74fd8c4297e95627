//===- TransposeEight.cpp - Transposes 8 x 8 floats in registers ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposeEight.h"

namespace tessera::runtime {

#ifdef __x86_64__
__attribute__((target("avx2"))) static void transposeLines(const float *from, const int64_t *lines,
                                                           float *to, int64_t width) {
  Eight rows[8], columns[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    rows[i] = *reinterpret_cast<const Eight *>(from + lines[i]);
  transposeEight(rows, columns);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    *reinterpret_cast<Eight *>(to + i * width) = columns[i];
}
#endif

EightTransposer eightTransposer() {
#ifdef __x86_64__
  static const bool hasVectors = __builtin_cpu_supports("avx2");
  return hasVectors ? transposeLines : nullptr;
#else
  return nullptr;
#endif
}

} // namespace tessera::runtime
