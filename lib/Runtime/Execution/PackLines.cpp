//===- PackLines.cpp - Packing rows and columns of matrices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackLines.h"

#include "HalfPackers.h"
#include "TransposeEight.h"
#include "TransposeFour.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

// A macro, because a function template does not inherit the target of its caller.
#define TESSERA_COPY_PANELS(NAME, TARGET, BYTES)                                                   \
  TARGET static void NAME(const float *from, int64_t count, int64_t width, int64_t panel,          \
                          float *to) {                                                             \
    typedef float Vector __attribute__((vector_size(BYTES), aligned(4), may_alias));               \
    constexpr int64_t kLanes = (BYTES) / 4;                                                        \
    for (int64_t begin = 0; begin < count; begin += width, to += panel)                            \
      for (int64_t at = 0; at < width; at += kLanes)                                               \
        *reinterpret_cast<Vector *>(to + at) =                                                     \
            *reinterpret_cast<const Vector *>(from + begin + at);                                  \
  }

/// Copies `count` elements, a multiple of `width`, in rows of `width` that are `panel` elements
/// apart. `width` is a multiple of a vector.
using PanelCopier = void (*)(const float *from, int64_t count, int64_t width, int64_t panel,
                             float *to);
TESSERA_COPY_PANELS(copyOnes, , 4)
TESSERA_COPY_PANELS(copyFours, , 16)
#ifdef __x86_64__
TESSERA_COPY_PANELS(copyEights, __attribute__((target("avx2"))), 32)
TESSERA_COPY_PANELS(copySixteens, __attribute__((target("avx512f"))), 64)
#endif

static PanelCopier panelCopier(int64_t width) {
#ifdef __x86_64__
  static const bool hasSixteen = __builtin_cpu_supports("avx512f"),
                    hasEight = __builtin_cpu_supports("avx2");
  if (width % 16 == 0 && hasSixteen)
    return copySixteens;
  if (width % 8 == 0 && hasEight)
    return copyEights;
#endif
  return width % 4 == 0 ? copyFours : copyOnes;
}

/// Packs lines [begin, begin + count) behind each other, one element of each a row of `width`.
static void packPanel(const Lines<float> &lines, int64_t begin, int64_t count, int64_t width,
                      float *to) {
  const float *from = lines.from + begin * lines.line;
  int64_t done = 0;
  if (lines.step == 1) {
    const EightTransposer transposeEight = eightTransposer();
    int64_t starts[8];
    for (int64_t i = 0; i < 8; ++i)
      starts[i] = i * lines.line;
    // Sixteen elements, a cache line, of eight or four lines; then of the next ones.
    for (; done + 16 <= lines.depth; done += 16) {
      int64_t line = 0;
      if (transposeEight)
        for (; line + 8 <= count; line += 8)
          for (int64_t i = done; i < done + 16; i += 8)
            transposeEight(from + line * lines.line + i, starts, to + i * width + line, width);
      for (; line + 4 <= count; line += 4)
        for (int64_t i = done; i < done + 16; i += 4) {
          const float *first = from + line * lines.line + i;
          transposeFour(loadFour(first), loadFour(first + lines.line),
                        loadFour(first + 2 * lines.line), loadFour(first + 3 * lines.line),
                        to + i * width + line, width);
        }
      for (; line < count; ++line)
        for (int64_t i = done; i < done + 16; ++i)
          to[i * width + line] = from[line * lines.line + i];
    }
  }
  for (; done < lines.depth; ++done)
    for (int64_t line = 0; line < count; ++line)
      to[done * width + line] = from[line * lines.line + done * lines.step];
  if (count < width)
    for (int64_t i = 0; i < lines.depth; ++i)
      std::fill(to + i * width + count, to + (i + 1) * width, 0.0f);
}

void packLines(const Lines<float> &lines, const PanelForm &form, int64_t, float *to) {
  const int64_t width = form.width, unit = form.lineUnit;
  int64_t whole = lines.count / width * width, rest = lines.count - whole;
  if (lines.step == 1) {
    for (int64_t begin = 0; begin < whole; begin += width)
      packPanel(lines, begin, width, width, to + begin * lines.depth);
  } else {
    // Along the memory that holds an element of all lines. The next ones lie on other pages.
    constexpr int64_t kAhead = 8;
    const PanelCopier copy = panelCopier(width);
    for (int64_t i = 0; i < lines.depth; ++i) {
      const float *from = lines.from + i * lines.step;
      if (i + kAhead < lines.depth)
        for (int64_t begin = 0; begin < whole; begin += 16)
          __builtin_prefetch(from + kAhead * lines.step + begin);
      copy(from, whole, width, lines.depth * width, to + i * width);
    }
  }
  if (rest)
    packPanel(lines, whole, rest, (rest + unit - 1) / unit * unit, to + whole * lines.depth);
}

/// Packs lines [begin, begin + count) as a panel of `width` lines in blocks of `unit` summands. The
/// panel has `depth` summands, a multiple of `unit`.
static void packPanel(const Lines<uint16_t> &lines, int64_t begin, int64_t count, int64_t width,
                      int64_t unit, int64_t depth, uint16_t *to) {
  const HalfPackers &packers = halfPackers();
  const uint16_t *from = lines.from + begin * lines.line;
  // Element i of a line is at to + i / unit * (unit * width) + line * unit + i % unit.
  int64_t done = 0;
  if (count < width || depth > lines.depth)
    std::fill_n(to + (count < width ? 0 : (lines.depth / unit) * unit * width),
                (count < width ? depth : depth - lines.depth / unit * unit) * width, uint16_t(0));
  if (lines.step == 1 && unit == 2) {
    done = packers.pairs(from, lines.line, count, lines.depth, width, to);
  } else if (lines.step == 1) {
    for (; done + unit <= lines.depth; done += unit)
      for (int64_t line = 0; line < count; ++line)
        std::memcpy(to + done * width + line * unit, from + line * lines.line + done,
                    static_cast<size_t>(unit) * sizeof(uint16_t));
  } else if (unit == 2) {
    for (; done + 2 <= lines.depth; done += 2)
      packers.interleave(from + done * lines.step, from + (done + 1) * lines.step, count,
                         to + done * width);
  }
  for (; done < lines.depth; ++done) {
    uint16_t *block = to + done / unit * (unit * width) + done % unit;
    for (int64_t line = 0; line < count; ++line)
      block[line * unit] = from[line * lines.line + done * lines.step];
  }
}

void packLines(const Lines<uint16_t> &lines, const PanelForm &form, int64_t depth, uint16_t *to) {
  const auto [width, lineUnit, unit] = form;
  int64_t whole = 0;
  if (lines.step != 1 && unit == 2 && depth == lines.depth) {
    // Along the memory that holds two elements of all lines. The next ones lie on other pages.
    constexpr int64_t kAhead = 8, kLine = 32;
    const auto interleave = halfPackers().interleave;
    whole = lines.count / width * width;
    for (int64_t i = 0; i < depth; i += 2) {
      const uint16_t *from = lines.from + i * lines.step;
      if (i + kAhead + 1 < depth)
        for (int64_t begin = 0; begin < whole; begin += kLine) {
          __builtin_prefetch(from + kAhead * lines.step + begin);
          __builtin_prefetch(from + (kAhead + 1) * lines.step + begin);
        }
      for (int64_t begin = 0; begin < whole; begin += width)
        interleave(from + begin, from + lines.step + begin, width, to + begin * depth + i * width);
    }
  }
  for (int64_t begin = whole; begin < lines.count; begin += width) {
    int64_t count = std::min(width, lines.count - begin);
    int64_t wide = (count + lineUnit - 1) / lineUnit * lineUnit;
    packPanel(lines, begin, count, wide, unit, depth, to + begin * depth);
  }
}

} // namespace tessera::runtime
