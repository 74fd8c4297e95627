//===- PackedGemm.cpp - Products of packed blocks -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goto's blocking (Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication", 2008): a panel of A (12 x 384 f32) stays in the first level
// cache while it meets a block of B (384 x 256), which stays in the second.
// Both are packed from either layout, so that a transposed operand costs what
// another costs.
//
//===----------------------------------------------------------------------===//

#include "PackedGemm.h"

#include "TransposeFour.h"
#include "WorkerMemory.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

static constexpr int64_t kDepth = 384, kColumns = 256, kRows = 96;

namespace {

/// Rows of A or columns of B: `count` lines of `depth` elements each.
struct Lines {
  const float *from;
  int64_t line, step; ///< elements between lines, between the elements of one; one of them is 1
  int64_t count, depth;
};

} // namespace

/// Copies fours; the last ones overlap where the width is no multiple.
static void copyRow(const float *from, int64_t width, float *to) {
  auto copy = [&](int64_t at) {
    *reinterpret_cast<Four *>(to + at) = *reinterpret_cast<const Four *>(from + at);
  };
  int64_t at = 0;
  for (; at + 4 <= width; at += 4)
    copy(at);
  if (at == width)
    return;
  if (width >= 4)
    return copy(width - 4);
  for (; at < width; ++at)
    to[at] = from[at];
}

/// Packs lines [begin, begin + count) behind each other, one element of each a row of `width`.
static void packPanel(const Lines &lines, int64_t begin, int64_t count, int64_t width, float *to) {
  const float *from = lines.from + begin * lines.line;
  int64_t done = 0;
  if (lines.step == 1) {
    // Sixteen elements, a cache line, of four lines; then of the next four.
    for (; done + 16 <= lines.depth; done += 16) {
      int64_t line = 0;
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

/// Packs all lines, panel behind panel: those of `width` lines, and one of the rest, whose width is
/// a multiple of `unit`.
static void pack(const Lines &lines, int64_t width, int64_t unit, float *to) {
  int64_t whole = lines.count / width * width, rest = lines.count - whole;
  if (lines.step == 1) {
    for (int64_t begin = 0; begin < whole; begin += width)
      packPanel(lines, begin, width, width, to + begin * lines.depth);
  } else {
    // Along the memory that holds an element of all lines. The next ones lie on other pages.
    constexpr int64_t kAhead = 8;
    for (int64_t i = 0; i < lines.depth; ++i) {
      const float *from = lines.from + i * lines.step;
      if (i + kAhead < lines.depth)
        for (int64_t begin = 0; begin < whole; begin += 16)
          __builtin_prefetch(from + kAhead * lines.step + begin);
      for (int64_t begin = 0; begin < whole; begin += width)
        copyRow(from + begin, width, to + begin * lines.depth + i * width);
    }
  }
  if (rest)
    packPanel(lines, whole, rest, (rest + unit - 1) / unit * unit, to + whole * lines.depth);
}

void multiplyPacked(const GemmKernels &kernels, const GemmProblem &p, const float *a,
                    const float *b, float *c) {
  thread_local WorkerMemory left, right;
  const int64_t lanes = kernels.lanes, width = kMostGemmVectors * lanes;
  // Panels of equal height: the last one is not much lower than the others.
  const int64_t panels = (p.m + kernels.rows - 1) / kernels.rows;
  const int64_t height = (p.m + panels - 1) / panels,
                rows = std::max(kRows / height, int64_t(1)) * height;
  const int64_t blocks = (p.k + kDepth - 1) / kDepth, depth = (p.k + blocks - 1) / blocks;
  float *packedA = left.get(rows * depth), *packedB = right.get((kColumns + width) * depth);
  alignas(64) float tile[kMostGemmRows * kMostGemmVectors * 16];
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k);
    const bool add = p.accumulate || k > 0;
    for (int64_t column = 0; column < p.n; column += kColumns) {
      const int64_t columns = std::min(kColumns, p.n - column);
      Lines linesB = p.transB ? Lines{b + column * p.ldb + k, p.ldb, 1, columns, count}
                              : Lines{b + k * p.ldb + column, 1, p.ldb, columns, count};
      pack(linesB, width, lanes, packedB);
      for (int64_t row = 0; row < p.m; row += rows) {
        const int64_t rowsHere = std::min(rows, p.m - row);
        Lines linesA = p.transA ? Lines{a + k * p.lda + row, 1, p.lda, rowsHere, count}
                                : Lines{a + row * p.lda + k, p.lda, 1, rowsHere, count};
        pack(linesA, height, 1, packedA);
        for (int64_t i = 0; i < rowsHere; i += height) {
          const int64_t tileRows = std::min(height, rowsHere - i);
          const GemmKernel *ofRows = kernels.kernels[tileRows - 1];
          float *out = c + (row + i) * p.ldc + column;
          for (int64_t j = 0; j < columns; j += width) {
            const int64_t tileColumns = std::min(width, columns - j);
            const int64_t vectors = (tileColumns + lanes - 1) / lanes, wide = vectors * lanes;
            const float *panelA = packedA + i * count, *panelB = packedB + j * count;
            if (tileColumns == wide) {
              ofRows[vectors - 1](count, panelA, panelB, out + j, p.ldc, add);
              continue;
            }
            ofRows[vectors - 1](count, panelA, panelB, tile, wide, false);
            for (int64_t r = 0; r < tileRows; ++r)
              for (int64_t x = 0; x < tileColumns; ++x) {
                float &to = out[r * p.ldc + j + x];
                to = add ? to + tile[r * wide + x] : tile[r * wide + x];
              }
          }
        }
      }
    }
  }
}

} // namespace tessera::runtime
