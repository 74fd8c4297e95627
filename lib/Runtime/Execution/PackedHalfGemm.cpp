//===- PackedHalfGemm.cpp - Products of packed 16-bit floats --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The blocking of PackedGemm.cpp, with twice the summands in as many bytes. Panels
// interleave summands, because an instruction adds the products of several: B by
// pairs, A by as many as the instruction takes. Summands beyond the last are zeros
// in both.
//
//===----------------------------------------------------------------------===//

#include "PackedHalfGemm.h"

#include "HalfPackers.h"
#include "WorkerMemory.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

static constexpr int64_t kDepth = 768, kColumns = 256, kRows = 96;

namespace {

/// Rows of A or columns of B: `count` lines of `depth` elements each.
struct Lines {
  const uint16_t *from;
  int64_t line, step; ///< elements between lines, between the elements of one; one of them is 1
  int64_t count, depth;
};

} // namespace

/// Packs lines [begin, begin + count) as a panel of `width` lines in blocks of `unit` summands. The
/// panel has `depth` summands, a multiple of `unit`.
static void packPanel(const Lines &lines, int64_t begin, int64_t count, int64_t width, int64_t unit,
                      int64_t depth, uint16_t *to) {
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

/// Packs all lines, panel behind panel: those of `width` lines, and one of the rest, whose width is
/// a multiple of `lineUnit`.
static void pack(const Lines &lines, int64_t width, int64_t lineUnit, int64_t unit, int64_t depth,
                 uint16_t *to) {
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

void multiplyPacked(const HalfGemmKernels &kernels, const GemmProblem &p, const uint16_t *a,
                    const uint16_t *b, float *c) {
  thread_local WorkerMemory left, right;
  auto up = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  constexpr int64_t width = kMostHalfVectors * kHalfLanes;
  const int64_t unit = kernels.unit;
  // Panels of equal height: the last one is not much lower than the others.
  const int64_t panels = (p.m + kernels.rows - 1) / kernels.rows;
  const int64_t height = up((p.m + panels - 1) / panels, kernels.rowUnit);
  const int64_t rows = std::max(kRows / height, int64_t(1)) * height;
  const int64_t blocks = (p.k + kDepth - 1) / kDepth;
  const int64_t depth = up((p.k + blocks - 1) / blocks, unit);
  // Two halves are as large as a float.
  auto *packedA = reinterpret_cast<uint16_t *>(left.get(rows * depth / 2 + 1));
  auto *packedB = reinterpret_cast<uint16_t *>(right.get((kColumns + width) * depth / 2));
  alignas(64) float tile[32 * width];
  if (kernels.begin)
    kernels.begin();
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k), padded = up(count, unit);
    const bool add = p.accumulate || k > 0;
    for (int64_t column = 0; column < p.n; column += kColumns) {
      const int64_t columns = std::min(kColumns, p.n - column);
      Lines linesB = p.transB ? Lines{b + column * p.ldb + k, p.ldb, 1, columns, count}
                              : Lines{b + k * p.ldb + column, 1, p.ldb, columns, count};
      pack(linesB, width, kHalfLanes, 2, padded, packedB);
      for (int64_t row = 0; row < p.m; row += rows) {
        const int64_t rowsHere = std::min(rows, p.m - row);
        Lines linesA = p.transA ? Lines{a + k * p.lda + row, 1, p.lda, rowsHere, count}
                                : Lines{a + row * p.lda + k, p.lda, 1, rowsHere, count};
        pack(linesA, height, kernels.rowUnit, unit, padded, packedA);
        for (int64_t i = 0; i < rowsHere; i += height) {
          const int64_t tileRows = std::min(height, rowsHere - i);
          const int64_t high = up(tileRows, kernels.rowUnit);
          const HalfGemmKernel *ofRows = kernels.kernels[high / kernels.rowUnit - 1];
          float *out = c + (row + i) * p.ldc + column;
          for (int64_t j = 0; j < columns; j += width) {
            const int64_t tileColumns = std::min(width, columns - j);
            const int64_t vectors = (tileColumns + kHalfLanes - 1) / kHalfLanes;
            const int64_t wide = vectors * kHalfLanes;
            const uint16_t *panelA = packedA + i * padded, *panelB = packedB + j * padded;
            if (tileColumns == wide && tileRows == high) {
              ofRows[vectors - 1](padded, panelA, panelB, out + j, p.ldc, add);
              continue;
            }
            // The tile starts from the same elements, so that their bits do not depend on the edge.
            for (int64_t r = 0; add && r < tileRows; ++r)
              std::copy_n(out + r * p.ldc + j, tileColumns, tile + r * wide);
            ofRows[vectors - 1](padded, panelA, panelB, tile, wide, add);
            for (int64_t r = 0; r < tileRows; ++r)
              std::copy_n(tile + r * wide, tileColumns, out + r * p.ldc + j);
          }
        }
      }
    }
  }
  if (kernels.end)
    kernels.end();
}

} // namespace tessera::runtime
