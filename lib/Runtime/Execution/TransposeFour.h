//===- TransposeFour.h - Transposes 4 x 4 floats in registers ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEFOUR_H
#define TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEFOUR_H

#include <cstdint>

namespace tessera::runtime {

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

inline Four loadFour(const float *from) {
  return *reinterpret_cast<const Four *>(from);
}

/// Writes the lines x, y, z, w as columns: row i of `to`, `width` floats apart, has their elements
/// i.
inline void transposeFour(Four x, Four y, Four z, Four w, float *to, int64_t width) {
  Four lowXY = __builtin_shufflevector(x, y, 0, 4, 1, 5),
       highXY = __builtin_shufflevector(x, y, 2, 6, 3, 7),
       lowZW = __builtin_shufflevector(z, w, 0, 4, 1, 5),
       highZW = __builtin_shufflevector(z, w, 2, 6, 3, 7);
  Four rows[] = {__builtin_shufflevector(lowXY, lowZW, 0, 1, 4, 5),
                 __builtin_shufflevector(lowXY, lowZW, 2, 3, 6, 7),
                 __builtin_shufflevector(highXY, highZW, 0, 1, 4, 5),
                 __builtin_shufflevector(highXY, highZW, 2, 3, 6, 7)};
  for (int64_t i = 0; i < 4; ++i)
    *reinterpret_cast<Four *>(to + i * width) = rows[i];
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_TRANSPOSEFOUR_H
