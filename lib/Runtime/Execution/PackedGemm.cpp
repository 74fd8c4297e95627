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
// another costs. Few rows of A read B about as fast as memory delivers it: its blocks
// are smaller (128 x 256), and the next one is fetched while one is multiplied. Of
// 16-bit floats a block has twice the summands in as many bytes; panels interleave
// summands, because an instruction adds the products of several: B by pairs, A by as
// many as the instruction takes. Summands beyond the last are zeros in both.
//
//===----------------------------------------------------------------------===//

#include "PackedGemm.h"

#include "PackLines.h"
#include "WorkerMemory.h"

#include <algorithm>

namespace tessera::runtime {

static constexpr int64_t kColumns = GemmCut::kColumns;
static constexpr int64_t kFewRows = 96, kFewDepth = 128; ///< meet small blocks of B
static constexpr int64_t kLeftBytes = 2 << 20;           ///< of A, packed for all columns

static int64_t up(int64_t x, int64_t to) {
  return (x + to - 1) / to * to;
}

/// Summands of a block; those of the last are fewer.
template <typename Kernels> static int64_t depthOf(const Kernels &kernels, int64_t k) {
  const int64_t blocks = (k + Kernels::kDepth - 1) / Kernels::kDepth;
  return up((k + blocks - 1) / blocks, kernels.unit);
}

template <typename Kernels> static PanelForm rightForm(const Kernels &kernels) {
  return {kMostGemmVectors * kernels.lanes, kernels.lanes, Kernels::kRightUnit};
}

/// Columns [column, column + columns) of summands [k, k + count) of B.
template <typename Element>
static Lines<Element> linesOf(const GemmProblem &p, const Element *b, int64_t k, int64_t count,
                              int64_t column, int64_t columns) {
  if (p.transB)
    return {b + column * p.ldb + k, p.ldb, 1, columns, count};
  return {b + k * p.ldb + column, 1, p.ldb, columns, count};
}

template <typename Kernels>
static void packBlock(const Kernels &kernels, const GemmProblem &p,
                      const typename Kernels::Element *b, int64_t k, int64_t count, int64_t column,
                      int64_t columns, typename Kernels::Element *to) {
  packLines(linesOf(p, b, k, count, column, columns), rightForm(kernels), up(count, kernels.unit),
            to);
}

namespace {
/// Fetches lines into the second level cache in parts.
template <typename Element> class Fetching {
public:
  explicit Fetching(const Lines<Element> &lines)
      : from(reinterpret_cast<const char *>(lines.from)) {
    const bool isAlong = lines.step == 1; // each line is one piece of memory
    constexpr auto size = static_cast<int64_t>(sizeof(Element));
    pieces = isAlong ? lines.count : lines.depth;
    bytes = (isAlong ? lines.depth : lines.count) * size;
    distance = (isAlong ? lines.line : lines.step) * size;
  }
  Fetching() = default; // nothing

  void fetch(int64_t part, int64_t parts) const {
    constexpr int64_t kLine = 64;
    for (int64_t i = pieces * part / parts; i < pieces * (part + 1) / parts; ++i)
      for (int64_t at = 0; at < bytes; at += kLine)
        __builtin_prefetch(from + i * distance + at, 0, 2);
  }

private:
  const char *from = nullptr;
  int64_t pieces = 0, bytes = 0, distance = 0;
};

/// The rows of A, packed block by block, and their products with blocks of B.
template <typename Kernels> class LeftBlocks {
public:
  using Element = typename Kernels::Element;

  LeftBlocks(const Kernels &kernels, const GemmProblem &problem, const Element *a, float *c)
      : kernels(kernels), p(problem), a(a), c(c) {
    thread_local WorkerMemory memory;
    // Panels of equal height: the last one is not much lower than the others.
    const int64_t panels = (p.m + kernels.rows - 1) / kernels.rows;
    height = up((p.m + panels - 1) / panels, kernels.rowUnit);
    const int64_t depth = depthOf(kernels, p.k);
    const int64_t most = kLeftBytes / (depth * static_cast<int64_t>(sizeof(Element)));
    rows = std::max<int64_t>(std::min(most / height, panels), 1) * height;
    packed = memory.get<Element>(rows * depth);
  }

  /// Of a block.
  int64_t numRows() const { return rows; }

  /// Packs the block from `row` of summands [k, k + count).
  void pack(int64_t row, int64_t k, int64_t count) {
    const int64_t rowsHere = std::min(rows, p.m - row);
    Lines<Element> lines{a + row * p.lda + k, p.lda, 1, rowsHere, count};
    if (p.transA)
      lines = {a + k * p.lda + row, 1, p.lda, rowsHere, count};
    packLines(lines, {height, kernels.rowUnit, kernels.unit}, up(count, kernels.unit), packed);
  }

  /// Multiplies the packed block of summands [k, k + count) with one of B, and fetches what is read
  /// next.
  void multiply(int64_t row, int64_t k, int64_t count, int64_t column, int64_t columns,
                const Element *right, const Fetching<Element> &next = {}) const {
    const int64_t lanes = kernels.lanes, width = kMostGemmVectors * lanes;
    const int64_t rowsHere = std::min(rows, p.m - row), depth = up(count, kernels.unit);
    const bool add = p.accumulate || k > 0;
    alignas(64) float partial[Kernels::kMostRows * kMostGemmVectors * 16];
    constexpr int64_t kLine = 16; // elements of C
    const int64_t tiles = (rowsHere + height - 1) / height * ((columns + width - 1) / width);
    int64_t tile = 0;
    for (int64_t i = 0; i < rowsHere; i += height) {
      const int64_t tileRows = std::min(height, rowsHere - i);
      const int64_t high = up(tileRows, kernels.rowUnit);
      const auto *ofRows = kernels.kernels[high / kernels.rowUnit - 1];
      float *out = c + (row + i) * p.ldc + column;
      for (int64_t j = 0; j < columns; j += width) {
        const int64_t tileColumns = std::min(width, columns - j);
        const int64_t vectors = (tileColumns + lanes - 1) / lanes, wide = vectors * lanes;
        const Element *panelA = packed + i * depth, *panelB = right + j * depth;
        next.fetch(tile++, tiles);
        // What the next tile begins with, and writes.
        for (int64_t r = 0; r < tileRows && j + width < columns; ++r)
          for (int64_t at = 0; at < width; at += kLine)
            __builtin_prefetch(out + r * p.ldc + j + width + at, 1);
        if (tileColumns == wide && tileRows == high) {
          ofRows[vectors - 1](depth, panelA, panelB, out + j, p.ldc, add);
          continue;
        }
        // The tile starts from the same elements, so that their bits do not depend on the edge.
        for (int64_t r = 0; add && r < tileRows; ++r)
          std::copy_n(out + r * p.ldc + j, tileColumns, partial + r * wide);
        ofRows[vectors - 1](depth, panelA, panelB, partial, wide, add);
        for (int64_t r = 0; r < tileRows; ++r)
          std::copy_n(partial + r * wide, tileColumns, out + r * p.ldc + j);
      }
    }
  }

private:
  const Kernels &kernels;
  const GemmProblem &p;
  const Element *a;
  float *c;
  int64_t height, rows;
  Element *packed;
};

} // namespace

/// Few rows are multiplied by small blocks of B, of which the next one is fetched.
static void multiplyFewRows(const GemmKernels &kernels, const GemmProblem &p, const float *b,
                            LeftBlocks<GemmKernels> &left, float *right) {
  const int64_t blocks = (p.k + kFewDepth - 1) / kFewDepth, depth = (p.k + blocks - 1) / blocks;
  auto linesFrom = [&](int64_t k, int64_t column) {
    return linesOf(p, b, k, std::min(depth, p.k - k), column, std::min(kColumns, p.n - column));
  };
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k);
    left.pack(0, k, count);
    for (int64_t column = 0; column < p.n; column += kColumns) {
      const int64_t columns = std::min(kColumns, p.n - column);
      packBlock(kernels, p, b, k, count, column, columns, right);
      Fetching<float> next;
      if (column + kColumns < p.n)
        next = Fetching(linesFrom(k, column + kColumns));
      else if (k + depth < p.k)
        next = Fetching(linesFrom(k + depth, 0));
      left.multiply(0, k, count, column, columns, right, next);
    }
  }
}

template <typename Kernels>
void multiplyPacked(const Kernels &kernels, const GemmProblem &p,
                    const typename Kernels::Element *a, const typename Kernels::Element *b,
                    float *c) {
  thread_local WorkerMemory memory;
  const int64_t depth = depthOf(kernels, p.k);
  auto *right = memory.get<typename Kernels::Element>(kColumns * depth);
  LeftBlocks<Kernels> left(kernels, p, a, c);
  if constexpr (std::is_same_v<Kernels, GemmKernels>)
    if (p.m <= kFewRows)
      return multiplyFewRows(kernels, p, b, left, right);
  kernels.enter();
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k);
    for (int64_t row = 0; row < p.m; row += left.numRows()) {
      left.pack(row, k, count);
      for (int64_t column = 0; column < p.n; column += kColumns) {
        const int64_t columns = std::min(kColumns, p.n - column);
        packBlock(kernels, p, b, k, count, column, columns, right);
        left.multiply(row, k, count, column, columns, right);
      }
    }
  }
  kernels.leave();
}

template <typename Kernels> int64_t packedElements(const Kernels &kernels, int64_t k, int64_t n) {
  return up(k, kernels.unit) * up(n, kernels.lanes);
}

template <typename Kernels>
void packRight(const Kernels &kernels, const GemmProblem &p, const typename Kernels::Element *b,
               int64_t begin, int64_t end, typename Kernels::Element *packed) {
  const int64_t depth = depthOf(kernels, p.k), wide = up(p.n, kernels.lanes);
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k);
    for (int64_t column = begin; column < end; column += kColumns)
      packBlock(kernels, p, b, k, count, column, std::min(kColumns, end - column),
                packed + k * wide + column * up(count, kernels.unit));
  }
}

template <typename Kernels>
void multiplyByPacked(const Kernels &kernels, const GemmProblem &p,
                      const typename Kernels::Element *a, const typename Kernels::Element *packed,
                      int64_t first, int64_t all, float *c) {
  const int64_t depth = depthOf(kernels, p.k), wide = up(all, kernels.lanes);
  LeftBlocks<Kernels> left(kernels, p, a, c);
  kernels.enter();
  for (int64_t k = 0; k < p.k; k += depth) {
    const int64_t count = std::min(depth, p.k - k);
    for (int64_t row = 0; row < p.m; row += left.numRows()) {
      left.pack(row, k, count);
      for (int64_t column = 0; column < p.n; column += kColumns)
        left.multiply(row, k, count, column, std::min(kColumns, p.n - column),
                      packed + k * wide + (first + column) * up(count, kernels.unit));
    }
  }
  kernels.leave();
}

#define TESSERA_PACKED_GEMM(KERNELS)                                                               \
  template void multiplyPacked(const KERNELS &, const GemmProblem &, const KERNELS::Element *,     \
                               const KERNELS::Element *, float *);                                 \
  template int64_t packedElements(const KERNELS &, int64_t, int64_t);                              \
  template void packRight(const KERNELS &, const GemmProblem &, const KERNELS::Element *, int64_t, \
                          int64_t, KERNELS::Element *);                                            \
  template void multiplyByPacked(const KERNELS &, const GemmProblem &, const KERNELS::Element *,   \
                                 const KERNELS::Element *, int64_t, int64_t, float *);
TESSERA_PACKED_GEMM(GemmKernels)
TESSERA_PACKED_GEMM(HalfGemmKernels)

} // namespace tessera::runtime
