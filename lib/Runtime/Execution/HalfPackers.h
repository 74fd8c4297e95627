//===- HalfPackers.h - Moving and converting 16-bit floats ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_HALFPACKERS_H
#define TESSERA_LIB_RUNTIME_EXECUTION_HALFPACKERS_H

#include <cstdint>
#include <span>

namespace tessera::runtime {

struct HalfPackers {
  const char *name;
  /// to[2 i] = even[i], to[2 i + 1] = odd[i], i < count.
  void (*interleave)(const uint16_t *even, const uint16_t *odd, int64_t count, uint16_t *to);
  /// Pairs of `count` lines, `line` elements apart, whose elements lie together: the pair of
  /// elements i and i + 1 (i even) of line l goes to to[i * width + 2 l]. Does whole blocks of
  /// elements, and returns their number, at most `depth`.
  int64_t (*pairs)(const uint16_t *from, int64_t line, int64_t count, int64_t depth, int64_t width,
                   uint16_t *to);
  /// Rounds f32 to bf16.
  void (*narrow)(const float *from, int64_t count, uint16_t *to);
  /// f16 to f32, and f32 rounded to f16.
  void (*widenF16)(const uint16_t *from, int64_t count, float *to);
  void (*narrowF16)(const float *from, int64_t count, uint16_t *to);
};

/// The fastest of this machine.
const HalfPackers &halfPackers();

/// All that this machine runs, the fastest first.
std::span<const HalfPackers *const> allHalfPackers();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_HALFPACKERS_H
