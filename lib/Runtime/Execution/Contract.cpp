//===- Contract.cpp - Contractions of strided operands --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/Contract.h"

#include "ContractKernels.h"
#include "TransposeFour.h"
#include "WorkerMemory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace tessera::runtime {

// A row panel of A (8 x 384 f32) stays in the first level cache while it meets the packed block of
// B (384 x 240), which stays in the second.
static constexpr int64_t kDepth = 384;
static constexpr int64_t kPackedElements = 384 * 240;

//===----------------------------------------------------------------------===//
// The product that a step is
//===----------------------------------------------------------------------===//

/// Offsets of all iterations in operands x and y, those that lie near each other in `order`
/// together.
Contraction::Offsets Contraction::offsetsOf(const std::vector<ContractLoop> &loops, int x, int y,
                                            int order) {
  std::vector<ContractLoop> sorted = loops;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto &left, const auto &right) {
    return std::abs(left.strides[order]) > std::abs(right.strides[order]);
  });
  Offsets all{{0}, {0}};
  for (const ContractLoop &loop : sorted) {
    Offsets next;
    next.x.reserve(all.x.size() * loop.extent);
    next.y.reserve(all.y.size() * loop.extent);
    for (int64_t outer = 0; outer < all.size(); ++outer)
      for (int64_t i = 0; i < loop.extent; ++i) {
        next.x.push_back(all.x[outer] + i * loop.strides[x]);
        next.y.push_back(all.y[outer] + i * loop.strides[y]);
      }
    all = std::move(next);
  }
  return all;
}

static double countOf(const std::vector<ContractLoop> &loops) {
  double count = 1;
  for (const ContractLoop &loop : loops)
    count *= static_cast<double>(loop.extent);
  return count;
}

/// Neighbours along columns that lie together in an operand.
static double runOf(const std::vector<ContractLoop> &loops, int operand) {
  std::vector<ContractLoop> sorted = loops;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto &left, const auto &right) {
    return std::abs(left.strides[operand]) < std::abs(right.strides[operand]);
  });
  int64_t run = 1;
  for (const ContractLoop &loop : sorted)
    if (loop.strides[operand] == run)
      run *= loop.extent;
  return static_cast<double>(run);
}

/// Cycles of a product with rows m and columns n, whose packed operand is `right`: of the tiles, of
/// packing, and of writing tiles.
double Contraction::estimate(const std::vector<ContractLoop> &m, const std::vector<ContractLoop> &n,
                             double k, int right) const {
  const TileKernels &set = tileKernels();
  auto up = [](double x, int64_t to) {
    return std::ceil(x / static_cast<double>(to)) * static_cast<double>(to);
  };
  double rowCount = countOf(m), columnCount = countOf(n);
  double tiles = up(rowCount, set.rows) * up(columnCount, set.lanes) * k / 16;
  // Columns are copied in pieces of a power of two.
  auto run = static_cast<int64_t>(runOf(n, right));
  double packing = columnCount * k * std::max(0.15, 1.2 / static_cast<double>(run & -run));
  double each = runOf(n, 2) > 1 ? std::max(0.15, 1 / runOf(n, 2)) : runOf(m, 2) > 1 ? 1.0 : 1.5;
  double writing = rowCount * columnCount * std::ceil(k / kDepth) * each;
  return tiles + packing + writing;
}

Contraction::Contraction(const ContractStep &step)
    : dtype(step.dtype), accumulate(step.accumulate) {
  std::vector<ContractLoop> batch, m, n, k;
  for (const ContractLoop &loop : step.loops) {
    auto [a, b, c] = loop.strides;
    if (c == 0)
      k.push_back(loop);
    else if ((a == 0) == (b == 0))
      batch.push_back(loop);
    else
      (a ? m : n).push_back(loop);
  }
  double depth = countOf(k);
  swapped = estimate(n, m, depth, 0) < estimate(m, n, depth, 1);
  int left = 0, right = 1;
  if (swapped) {
    std::swap(m, n);
    std::swap(left, right);
  }
  rows = offsetsOf(m, left, 2, 2);
  columns = offsetsOf(n, right, 2, 2);
  sums = offsetsOf(k, left, right, left);
  Offsets begin = offsetsOf(batch, left, 2, 2), other = offsetsOf(batch, right, 2, 2);
  for (int64_t i = 0; i < begin.size(); ++i)
    batches.push_back({step.starts[left] + begin.x[i], step.starts[right] + other.x[i],
                       step.starts[2] + begin.y[i]});
  // The width that pads the columns least, the widest of equal ones.
  int64_t lanes = tileKernels().lanes, least = 0;
  for (int64_t tried = kMostVectors; tried >= 1; --tried) {
    int64_t width = tried * lanes, padded = (columns.size() + width - 1) / width * width;
    if (tried == kMostVectors || padded < least) {
      vectors = tried;
      least = padded;
    }
  }
}

double Contraction::products() const {
  return static_cast<double>(batches.size()) * static_cast<double>(rows.size()) *
         static_cast<double>(columns.size()) * static_cast<double>(sums.size());
}

int64_t Contraction::split(int64_t most) {
  auto tilesOf = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  auto count = static_cast<int64_t>(batches.size());
  // Columns first: a piece packs what it needs of B, so pieces of the same columns pack it twice.
  // But few columns read all of A for little.
  constexpr int64_t kFewColumns = 192;
  byBatch = std::clamp<int64_t>(most, 1, count);
  byColumns = std::clamp<int64_t>(most / byBatch, 1, tilesOf(columns.size(), kFewColumns));
  byRows = std::clamp<int64_t>(most / (byBatch * byColumns), 1,
                               tilesOf(rows.size(), 2 * tileKernels().rows));
  return byBatch * byColumns * byRows;
}

//===----------------------------------------------------------------------===//
// A piece of it
//===----------------------------------------------------------------------===//

/// Rows and columns of one batch.
struct Contraction::Block {
  const char *a, *b;
  float *c;
  int64_t rowBegin, rowEnd, columnBegin, columnEnd;
};

namespace {
float widened(const float *from) {
  return *from;
}
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
float widened(const Half *from) {
  return halfToFloat(from->bits);
}
float widened(const Bfloat *from) {
  return bfloatToFloat(from->bits);
}

/// Calls with a null pointer of the element type.
template <typename Function> void withElement(DType dtype, Function function) {
  if (dtype == DType::bf16)
    function(static_cast<const Bfloat *>(nullptr));
  else if (dtype == DType::f16)
    function(static_cast<const Half *>(nullptr));
  else
    function(static_cast<const float *>(nullptr));
}

constexpr int64_t kStrip = 16; ///< columns that are packed together

/// Columns in pieces of G that lie S elements apart, one place of the sum a row of `to`.
template <int G, int S, typename T>
void packStrip(const T *from, const int64_t *columns, int64_t count, const int64_t *sums,
               int64_t depth, int64_t width, float *to) {
  int64_t pieces = count / G;
  int64_t starts[kStrip / G];
  for (int64_t i = 0; i < pieces; ++i)
    starts[i] = columns[i * G];
  auto copy = [&](int64_t n) {
    for (int64_t k = 0; k < depth; ++k) {
      const T *base = from + sums[k];
      float *row = to + k * width;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t g = 0; g < G; ++g)
          row[i * G + g] = widened(base + starts[i] + g * S);
    }
  };
  if (pieces == kStrip / G)
    copy(kStrip / G); // unrolled
  else
    copy(pieces);
}

/// Four columns whose summands lie together, four summands after the other: transposes 4 x 4.
void packTransposed(const float *from, const int64_t *columns, int64_t count, const int64_t *sums,
                    int64_t depth, int64_t width, float *to) {
  for (int64_t k = 0; k < depth;) {
    const float *base = from + sums[k];
    float *row = to + k * width;
    if (k + 3 >= depth || sums[k + 3] != sums[k] + 3 || sums[k + 1] != sums[k] + 1) {
      for (int64_t i = 0; i < count; ++i)
        row[i] = base[columns[i]];
      ++k;
      continue;
    }
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      transposeFour(loadFour(base + columns[i]), loadFour(base + columns[i + 1]),
                    loadFour(base + columns[i + 2]), loadFour(base + columns[i + 3]), row + i,
                    width);
    }
    for (; i < count; ++i)
      for (int64_t j = 0; j < 4; ++j)
        row[j * width + i] = base[columns[i] + j];
    k += 4;
  }
}

/// The largest power of two up to kStrip in pieces of which columns lie `step` elements apart.
int64_t pieceOf(const int64_t *columns, int64_t count, int64_t step) {
  int64_t piece = kStrip;
  while (piece > 1) {
    bool whole = count % piece == 0;
    for (int64_t i = 0; i < count && whole; ++i)
      whole = i % piece == 0 || columns[i] == columns[i - 1] + step;
    if (whole)
      break;
    piece /= 2;
  }
  return piece;
}
} // namespace

/// Packs rows [kBegin, kEnd) of B, panel behind panel of a tile's width. Columns beyond the end
/// keep what was there; nothing reads the sums that they are in.
void Contraction::pack(const Block &block, int64_t kBegin, int64_t kEnd, float *packed) const {
  const int64_t width = vectors * tileKernels().lanes, depth = kEnd - kBegin;
  withElement(dtype, [&](auto *element) {
    auto *from = reinterpret_cast<decltype(element)>(block.b);
    for (int64_t begin = block.columnBegin; begin < block.columnEnd; begin += width) {
      float *panel = packed + (begin - block.columnBegin) * depth;
      int64_t end = std::min(begin + width, block.columnEnd);
      for (int64_t strip = begin; strip < end; strip += kStrip) {
        int64_t count = std::min(kStrip, end - strip);
        const int64_t *offsets = columns.x.data() + strip;
        auto call = [&](auto function) {
          function(from, offsets, count, sums.y.data() + kBegin, depth, width,
                   panel + (strip - begin));
        };
        using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        int64_t dense = pieceOf(offsets, count, 1), apart = pieceOf(offsets, count, 2);
        if (dense == 16)
          call(packStrip<16, 1, T>);
        else if (apart == 16)
          call(packStrip<16, 2, T>);
        else if (dense == 8)
          call(packStrip<8, 1, T>);
        else if (apart == 8)
          call(packStrip<8, 2, T>);
        else if (dense == 4)
          call(packStrip<4, 1, T>);
        else if (apart == 4)
          call(packStrip<4, 2, T>);
        else if (dense == 2)
          call(packStrip<2, 1, T>);
        else if constexpr (std::is_same_v<T, float>)
          call(packTransposed);
        else
          call(packStrip<1, 1, T>);
      }
    }
  });
}

/// Writes the part of a tile that is inside of the block.
void Contraction::write(const Block &block, const float *tile, int64_t row, int64_t column,
                        bool add) const {
  const TileKernels &set = tileKernels();
  int64_t width = vectors * set.lanes;
  int64_t height = std::min(set.rows, block.rowEnd - row);
  int64_t count = std::min(width, block.columnEnd - column);
  const int64_t *rowAt = rows.y.data() + row, *columnAt = columns.y.data() + column;
  auto store = [&](float *to, const float *from, int64_t n, int64_t step) {
    if (add)
      for (int64_t i = 0; i < n; ++i)
        to[i] += from[i * step];
    else
      for (int64_t i = 0; i < n; ++i)
        to[i] = from[i * step];
  };
  bool columnsTogether = count > 1 && columnAt[1] == columnAt[0] + 1;
  if (!columnsTogether && height > 1 && rowAt[height - 1] == rowAt[0] + height - 1) {
    for (int64_t j = 0; j < count; ++j)
      store(block.c + rowAt[0] + columnAt[j], tile + j, height, width);
    return;
  }
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && columnAt[end] == columnAt[end - 1] + 1;)
      ++end;
    for (int64_t i = 0; i < height; ++i)
      store(block.c + rowAt[i] + columnAt[begin], tile + i * width + begin, end - begin, 1);
  }
}

void Contraction::multiply(const Block &block) const {
  thread_local WorkerMemory packing, widening;
  const TileKernels &set = tileKernels();
  const int64_t width = vectors * set.lanes;
  const int64_t blocks = std::max<int64_t>(1, (sums.size() + kDepth - 1) / kDepth);
  const int64_t depth = (sums.size() + blocks - 1) / blocks;
  TileKernel kernel = set.kernels[vectors - 1];
  alignas(64) float tile[8 * 16 * kMostVectors];
  const float *rowAt[8];
  float *panel = nullptr; // of A, widened
  thread_local std::vector<int64_t> places;
  if (isHalf(dtype)) {
    panel = widening.get(set.rows * depth);
    places.resize(static_cast<size_t>(depth));
    for (int64_t i = 0; i < depth; ++i)
      places[i] = i;
  }
  for (int64_t kBegin = 0; kBegin < sums.size(); kBegin += depth) {
    const int64_t kEnd = std::min(sums.size(), kBegin + depth), count = kEnd - kBegin;
    int64_t padded = (block.columnEnd - block.columnBegin + width - 1) / width * width;
    float *packed = packing.get(padded * depth);
    pack(block, kBegin, kEnd, packed);
    const bool add = accumulate || kBegin > 0;
    for (int64_t row = block.rowBegin; row < block.rowEnd; row += set.rows) {
      const int64_t *offsets = panel ? places.data() : sums.x.data() + kBegin;
      for (int64_t i = 0; i < set.rows; ++i) {
        // Beyond the end, the last row once more.
        int64_t at = rows.x[std::min(row + i, block.rowEnd - 1)];
        if (!panel) {
          rowAt[i] = reinterpret_cast<const float *>(block.a) + at;
          continue;
        }
        rowAt[i] = panel + i * depth;
        withElement(dtype, [&](auto *element) {
          auto *from = reinterpret_cast<decltype(element)>(block.a) + at;
          for (int64_t k = 0; k < count; ++k)
            panel[i * depth + k] = widened(from + sums.x[kBegin + k]);
        });
      }
      for (int64_t column = block.columnBegin; column < block.columnEnd; column += width) {
        kernel(count, rowAt, offsets, packed + (column - block.columnBegin) * count, tile);
        write(block, tile, row, column, add);
      }
    }
  }
}

void Contraction::run(int64_t piece, const void *a, const void *b, float *c) const {
  const TileKernels &set = tileKernels();
  const int64_t width = vectors * set.lanes, size = sizeOf(dtype);
  auto part = [](int64_t total, int64_t tile, int64_t index, int64_t parts) {
    int64_t tiles = (total + tile - 1) / tile;
    return std::min(total, tiles * index / parts * tile);
  };
  int64_t column = piece % byColumns, row = piece / byColumns % byRows,
          batch = piece / (byColumns * byRows);
  auto count = static_cast<int64_t>(batches.size());
  int64_t columnBegin = part(columns.size(), width, column, byColumns);
  int64_t columnEnd = part(columns.size(), width, column + 1, byColumns);
  int64_t most = std::max<int64_t>(1, kPackedElements / kDepth / width) * width;
  for (int64_t i = count * batch / byBatch; i < count * (batch + 1) / byBatch; ++i)
    for (int64_t begin = columnBegin; begin < columnEnd; begin += most) {
      Block block;
      block.a = static_cast<const char *>(swapped ? b : a) + batches[i][0] * size;
      block.b = static_cast<const char *>(swapped ? a : b) + batches[i][1] * size;
      block.c = c + batches[i][2];
      block.rowBegin = part(rows.size(), set.rows, row, byRows);
      block.rowEnd = part(rows.size(), set.rows, row + 1, byRows);
      block.columnBegin = begin;
      block.columnEnd = std::min(columnEnd, begin + most);
      multiply(block);
    }
}

} // namespace tessera::runtime
