//===- Contract.cpp - Contractions of strided operands --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/Contract.h"

#include "ContractBlock.h"
#include "ContractKernels.h"
#include "TransposeFour.h"
#include "WorkerMemory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace tessera::runtime {

// The packed block of B stays in the second level cache while all rows of A meet it. It is deep
// rather than wide: each block of summands reads and writes C once more.
static constexpr int64_t kDepth = 1152, kBlockColumns = 96;

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
    for (auto [from, to, stride] : {std::tuple(&all.x, &next.x, loop.strides[x]),
                                    std::tuple(&all.y, &next.y, loop.strides[y])}) {
      to->resize(from->size() * loop.extent);
      int64_t *at = to->data();
      for (int64_t outer : *from)
        for (int64_t i = 0; i < loop.extent; ++i)
          *at++ = outer + i * stride;
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

/// The loops in the order of their strides in an operand, the least first.
static std::vector<ContractLoop> byStride(std::vector<ContractLoop> loops, int operand) {
  std::stable_sort(loops.begin(), loops.end(), [&](const auto &left, const auto &right) {
    return std::abs(left.strides[operand]) < std::abs(right.strides[operand]);
  });
  return loops;
}

/// Iterations whose elements of an operand lie together.
static double runOf(const std::vector<ContractLoop> &loops, int operand) {
  int64_t run = 1;
  for (const ContractLoop &loop : byStride(loops, operand))
    if (std::abs(loop.strides[operand]) == run)
      run *= loop.extent;
  return static_cast<double>(run);
}

/// Elements of an operand that lie together and that all iterations read; windows may overlap.
static double spanOf(const std::vector<ContractLoop> &loops, int operand) {
  int64_t span = 1;
  for (const ContractLoop &loop : byStride(loops, operand))
    if (int64_t stride = std::abs(loop.strides[operand]); stride <= span)
      span += (loop.extent - 1) * stride;
  return static_cast<double>(span);
}

/// Whether columns and summands are windows: two of each have the same element.
static bool haveWindows(const std::vector<ContractLoop> &n, const std::vector<ContractLoop> &k,
                        int operand) {
  return std::any_of(n.begin(), n.end(), [&](const ContractLoop &column) {
    int64_t stride = std::abs(column.strides[operand]);
    return stride && std::any_of(k.begin(), k.end(), [&](const ContractLoop &sum) {
             int64_t step = std::abs(sum.strides[operand]);
             return sum.extent > 1 && step % stride == 0 && step < stride * column.extent;
           });
  });
}

/// A tile of so many vectors, less one, takes so many times the cycles of its multiply-adds.
static constexpr double kOfVectors[kMostVectors] = {1.4, 1.03, 1};

/// Vectors of the tile that is fastest for so many columns, of which it pads the last ones.
static int64_t vectorsFor(double columns) {
  const auto lanes = static_cast<double>(tileKernels().lanes);
  int64_t best = kMostVectors;
  double least = 0;
  for (int64_t tried = kMostVectors; tried >= 1; --tried) {
    double width = static_cast<double>(tried) * lanes;
    double cost = std::ceil(columns / width) * width * kOfVectors[tried - 1];
    if (tried == kMostVectors || cost < least) {
      best = tried;
      least = cost;
    }
  }
  return best;
}

/// Tiles of equal height: the last one is not much lower than the others.
static int64_t heightFor(double rows) {
  const auto most = static_cast<double>(tileKernels().rows);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rows / std::ceil(rows / most))));
}

/// Cycles to bring the elements of all iterations, `run` of which are read together, from memory.
static double fetching(const std::vector<ContractLoop> &loops, int operand, double run) {
  constexpr double kInCache = 1 << 18, kStream = 256, kLine = 16;
  double span = 1; // windows overlap
  for (const ContractLoop &loop : loops)
    span += static_cast<double>((loop.extent - 1) * std::abs(loop.strides[operand]));
  double elements = std::min(countOf(loops), span);
  if (elements <= kInCache)
    return 0;
  return elements * (run >= kStream ? 1 : 56 / std::min(run, kLine));
}

/// Cycles of a product with rows m and columns n, whose packed operand is `right`: of the tiles, of
/// packing, of reading the other operand, and of writing tiles. As measured with AVX-512. `share`
/// of the products are not with padding.
double Contraction::estimate(const std::vector<ContractLoop> &m, const std::vector<ContractLoop> &n,
                             const std::vector<ContractLoop> &k, int right, double share) {
  const TileKernels &set = tileKernels();
  auto up = [](double x, int64_t to) {
    return std::ceil(x / static_cast<double>(to)) * static_cast<double>(to);
  };
  double rowCount = countOf(m), columnCount = countOf(n), depth = countOf(k);
  int64_t vectors = vectorsFor(columnCount), height = heightFor(rowCount);
  // With fewer sums than this, an addition waits for the one before it.
  constexpr double kFewestSums = 8;
  double waiting = std::max(1.0, kFewestSums / static_cast<double>(height * vectors));
  double tiles = up(rowCount, height) * up(columnCount, vectors * set.lanes) * depth / 16 *
                 kOfVectors[vectors - 1] * waiting * share;
  auto joined = [](std::vector<ContractLoop> x, const std::vector<ContractLoop> &y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  // Columns are copied in pieces of a power of two; those of windows meet the ends of lines.
  constexpr double kOfWindows = 3;
  auto run = static_cast<int64_t>(runOf(n, right));
  double each = haveWindows(n, k, right) ? kOfWindows
                : run >= 64              ? 0.2
                                         : 0.8 + 0.5 / static_cast<double>(run & -run);
  constexpr double kOfScatteredSums = 8;
  if (run == 1 && !k.empty() && std::abs(byStride(k, 1 - right).front().strides[right]) > 2)
    each = kOfScatteredSums;
  if (rowCount <= static_cast<double>(set.rows) && run % set.lanes == 0)
    each = 0; // see readsInPlace
  double packing =
      columnCount * depth * each + fetching(joined(n, k), right, runOf(joined(n, k), right));
  // The loops of the rows of a tile. Windows of the next tiles read the same lines, at most kDepth,
  // which stay in the first level cache.
  std::vector<ContractLoop> ofTile = m;
  for (ContractLoop &loop : ofTile)
    loop.extent = std::min(loop.extent, height);
  double together = haveWindows(m, k, 1 - right) ? spanOf(joined(k, m), 1 - right)
                                                 : runOf(joined(k, ofTile), 1 - right);
  double reading = fetching(joined(m, k), 1 - right, together);
  double ofWrite = runOf(n, 2) > 1 ? std::max(0.15, 1 / runOf(n, 2)) : runOf(m, 2) > 1 ? 2.5 : 3;
  // Skipped padding puts rows of C that lie together in different tiles.
  constexpr double kOfScattered = 8;
  if (share < 1 && runOf(n, 2) <= 1 && runOf(m, 2) > 1)
    ofWrite += kOfScattered;
  double writing = rowCount * columnCount * std::ceil(depth / kDepth) * ofWrite;
  return tiles + packing + reading + writing;
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
  double costs[2], shares[2];
  for (int rowOperand : {0, 1}) {
    const auto &rowLoops = rowOperand ? n : m, &columnLoops = rowOperand ? m : n;
    auto cost = [&](double share) {
      return estimate(rowLoops, columnLoops, k, 1 - rowOperand, share);
    };
    costs[rowOperand] = cost(1);
    double &share = shares[rowOperand] = dtype == DType::f32 ? keptShare(step, rowOperand) : 1;
    // Finding what a tile skips takes as long as some products: a convolution of 3 and 16 channels
    // of 32 x 32 took five times as long, one of 16 and 32 of 16 x 16 twice.
    constexpr double kManyColumns = 64, kManySums = 512, kMostOfMany = 0.93, kMostOfFew = 0.6;
    const bool isLarge = countOf(columnLoops) >= kManyColumns && countOf(k) >= kManySums;
    if (double skipping = cost(share);
        share <= (isLarge ? kMostOfMany : kMostOfFew) && skipping < costs[rowOperand])
      costs[rowOperand] = skipping;
    else
      share = 1;
  }
  swapped = costs[1] < costs[0];
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
  vectors = vectorsFor(static_cast<double>(columns.size()));
  height = heightFor(static_cast<double>(rows.size()));
  classifyStrips();
  isInPlace = readsInPlace();
  if (isInPlace)
    vectors = kMostVectors;
  else if (shares[left] < 1)
    skipPadding(step);
}

int64_t Contraction::tableSize() const {
  int64_t size = 2 * (rows.size() + columns.size() + sums.size());
  size += static_cast<int64_t>(keptOf.size());
  for (const std::vector<uint8_t> &flags : kept)
    size += static_cast<int64_t>(flags.size() / sizeof(int64_t));
  return size;
}

/// Packing is not worth it for the rows of one tile, if the columns lie in memory by vectors.
bool Contraction::readsInPlace() const {
  const int64_t lanes = tileKernels().lanes;
  return dtype == DType::f32 && rows.size() <= height && columns.size() % lanes == 0 &&
         std::all_of(strips.begin(), strips.end(),
                     [&](StripKind kind) { return !kind.isApart && kind.piece >= lanes; });
}

double Contraction::products() const {
  return static_cast<double>(batches.size()) * static_cast<double>(rows.size()) *
         static_cast<double>(columns.size()) * static_cast<double>(sums.size());
}

int64_t Contraction::split(int64_t most) {
  auto tilesOf = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  auto count = static_cast<int64_t>(batches.size());
  // Columns first: a piece packs its part of B, so pieces of the same columns pack it twice.
  // But few columns read all of A for little.
  constexpr int64_t kFewColumns = 192, kManyRows = 96;
  byBatch = std::clamp<int64_t>(most, 1, count);
  byColumns = std::clamp<int64_t>(most / byBatch, 1, tilesOf(columns.size(), kFewColumns));
  int64_t others = byBatch * byColumns;
  const int64_t mostRows = std::clamp<int64_t>(most / others, 1, tilesOf(rows.size(), 2 * height));
  // Fewer rows do not repay packing B once more: only as many as divide evenly among a quarter.
  auto isEven = [&](int64_t pieces) {
    int64_t share = tilesOf(most, 4), rounds = tilesOf(pieces, share);
    return 5 * pieces >= 4 * share * rounds;
  };
  byRows = std::min(mostRows, tilesOf(rows.size(), kManyRows));
  while (byRows < mostRows && !isEven(others * byRows))
    ++byRows;
  return byBatch * byColumns * byRows;
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// The loops of rows (`rowOperand` has a stride) or of summands, with their strides in a bound in
/// place of those in `at`; nothing if the bound depends on other loops, too.
static std::optional<std::array<std::vector<ContractLoop>, 2>>
loopsOfBound(const ContractStep &step, const ContractBounds &bound, int rowOperand, int atOfRow,
             int atOfSum) {
  constexpr double kMostPairs = 1 << 20; // positions of an edge of an image and of a window
  std::array<std::vector<ContractLoop>, 2> found;
  double pairs = 1;
  for (size_t i = 0; i < step.loops.size(); ++i) {
    ContractLoop loop = step.loops[i];
    const bool isSum = loop.strides[2] == 0;
    const bool isRow = !isSum && loop.strides[rowOperand] != 0 && loop.strides[1 - rowOperand] == 0;
    if (!isSum && !isRow) {
      if (bound.strides[i] != 0 && loop.extent > 1)
        return std::nullopt;
      continue;
    }
    loop.strides[isSum ? atOfSum : atOfRow] = bound.strides[i];
    found[isSum].push_back(loop);
    if (bound.strides[i] != 0)
      pairs *= static_cast<double>(loop.extent);
  }
  if (pairs > kMostPairs)
    return std::nullopt;
  return found;
}

/// The share of products that are left if rows are those of an operand.
double Contraction::keptShare(const ContractStep &step, int rowOperand) {
  double share = 1;
  for (const ContractBounds &bound : step.within)
    if (auto loops = loopsOfBound(step, bound, rowOperand, rowOperand, rowOperand)) {
      for (std::vector<ContractLoop> &group : *loops)
        std::erase_if(group, [&](const auto &loop) { return loop.strides[rowOperand] == 0; });
      double inside = 0;
      Offsets row = offsetsOf((*loops)[0], rowOperand, 2, 2),
              sum = offsetsOf((*loops)[1], rowOperand, 2, 2);
      for (int64_t x : row.x)
        for (int64_t y : sum.x)
          inside += x + y >= bound.begin && x + y < bound.end;
      share *= inside / static_cast<double>(row.size()) / static_cast<double>(sum.size());
    }
  return share;
}

/// Numbers the distinct positions of rows; those whose products are all inside have number 0.
/// Returns the flags of each number's summands.
static std::vector<std::vector<uint8_t>> numberRows(const std::vector<int64_t> &rows,
                                                    const std::vector<int64_t> &sums,
                                                    const ContractBounds &bound,
                                                    std::vector<int64_t> &numbers) {
  auto [least, most] = std::minmax_element(sums.begin(), sums.end());
  std::vector<std::vector<uint8_t>> flags = {std::vector<uint8_t>(sums.size(), 1)};
  std::map<int64_t, int64_t> known;
  numbers.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] + *least >= bound.begin && rows[i] + *most < bound.end) {
      numbers[i] = 0;
      continue;
    }
    auto [it, isNew] = known.emplace(rows[i], static_cast<int64_t>(flags.size()));
    numbers[i] = it->second;
    if (!isNew)
      continue;
    std::vector<uint8_t> &mine = flags.emplace_back(sums.size());
    for (size_t k = 0; k < sums.size(); ++k)
      mine[k] = rows[i] + sums[k] >= bound.begin && rows[i] + sums[k] < bound.end;
  }
  return flags;
}

/// Rows near an edge of an image read padding; products with it are left out. Rows with the same
/// summands come together. A tile of rows that differ adds the zeros of some.
void Contraction::skipPadding(const ContractStep &step) {
  if (step.within.empty() || dtype != DType::f32)
    return;
  const int left = swapped ? 1 : 0;
  std::vector<int64_t> classes(rows.size(), 0);
  kept = {std::vector<uint8_t>(sums.size(), 1)};
  for (const ContractBounds &bound : step.within) {
    // Positions in the order of `rows` and of `sums`, which are sorted by other strides.
    auto loops = loopsOfBound(step, bound, left, left, 2);
    if (!loops)
      continue;
    std::vector<int64_t> ofRow = offsetsOf((*loops)[0], left, 2, 2).x,
                         ofSum = offsetsOf((*loops)[1], 2, 2, left).x, numbers;
    std::vector<std::vector<uint8_t>> flags = numberRows(ofRow, ofSum, bound, numbers), both;
    std::map<std::pair<int64_t, int64_t>, int64_t> known;
    for (size_t i = 0; i < classes.size(); ++i) {
      auto [it, isNew] =
          known.emplace(std::pair(classes[i], numbers[i]), static_cast<int64_t>(both.size()));
      if (isNew) {
        both.push_back(kept[classes[i]]);
        for (size_t k = 0; k < both.back().size(); ++k)
          both.back()[k] &= flags[numbers[i]][k];
      }
      classes[i] = it->second;
    }
    kept = std::move(both);
  }
  if (kept.size() == 1)
    return kept.clear();
  std::vector<int64_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return classes[x] < classes[y]; });
  Offsets sorted = rows;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.x[i] = rows.x[order[i]];
    sorted.y[i] = rows.y[order[i]];
  }
  rows = std::move(sorted);
  for (int64_t row = 0; row < rows.size(); row += height) {
    const int64_t end = std::min(row + height, rows.size()), first = classes[order[row]];
    keptOf.push_back(first);
    if (classes[order[end - 1]] == first)
      continue;
    std::vector<uint8_t> all = kept[first];
    for (int64_t i = row; i < end; ++i)
      for (size_t k = 0; k < all.size(); ++k)
        all[k] |= kept[classes[order[i]]][k];
    keptOf.back() = static_cast<int64_t>(kept.size());
    kept.push_back(std::move(all));
  }
}

//===----------------------------------------------------------------------===//
// A piece of it
//===----------------------------------------------------------------------===//

/// Writes four rows of a tile that lie together in C, where columns do not: transposes 4 x 4.
static void writeFourRows(float *to, const int64_t *columnAt, int64_t count, const float *tile,
                          int64_t width, bool add) {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    float columns[16];
    transposeFour(loadFour(tile + j), loadFour(tile + width + j), loadFour(tile + 2 * width + j),
                  loadFour(tile + 3 * width + j), columns, 4);
    for (int64_t i = 0; i < 4; ++i) {
      auto *out = reinterpret_cast<Four *>(to + columnAt[j + i]);
      *out = add ? *out + loadFour(columns + 4 * i) : loadFour(columns + 4 * i);
    }
  }
  for (; j < count; ++j)
    for (int64_t i = 0; i < 4; ++i) {
      float &out = to[columnAt[j] + i];
      out = add ? out + tile[i * width + j] : tile[i * width + j];
    }
}

/// Writes two rows that lie together in C.
static void writeTwoRows(float *to, const int64_t *columnAt, int64_t count, const float *tile,
                         int64_t width) {
  constexpr size_t kPair = 2 * sizeof(float);
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    Four x = loadFour(tile + j), y = loadFour(tile + width + j);
    Four low = __builtin_shufflevector(x, y, 0, 4, 1, 5),
         high = __builtin_shufflevector(x, y, 2, 6, 3, 7);
    std::memcpy(to + columnAt[j], &low, kPair);
    std::memcpy(to + columnAt[j + 1], reinterpret_cast<const char *>(&low) + kPair, kPair);
    std::memcpy(to + columnAt[j + 2], &high, kPair);
    std::memcpy(to + columnAt[j + 3], reinterpret_cast<const char *>(&high) + kPair, kPair);
  }
  for (; j < count; ++j) {
    to[columnAt[j]] = tile[j];
    to[columnAt[j] + 1] = tile[width + j];
  }
}

/// Writes the part of a tile that is inside of the block.
void Contraction::write(const Block &block, const float *tile, int64_t row, int64_t column,
                        bool add) const {
  const TileKernels &set = tileKernels();
  int64_t width = vectors * set.lanes;
  int64_t rowCount = std::min(height, block.rowEnd - row);
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
  bool rowsTogether = rowCount > 1 && rowAt[1] == rowAt[0] + 1;
  if (!columnsTogether && rowsTogether) {
    for (int64_t begin = 0, end = 0; begin < rowCount; begin = end) {
      for (end = begin + 1; end < rowCount && rowAt[end] == rowAt[end - 1] + 1;)
        ++end;
      int64_t at = begin;
      if (set.writeEightRows)
        for (; at + 8 <= end; at += 8)
          set.writeEightRows(block.c + rowAt[at], columnAt, count, tile + at * width, width, add);
      for (; at + 4 <= end; at += 4)
        writeFourRows(block.c + rowAt[at], columnAt, count, tile + at * width, width, add);
      if (!add && end - at == 2) // of a transposed convolution with stride 2
        writeTwoRows(block.c + rowAt[at], columnAt, count, tile + at * width, width);
      else if (at < end)
        for (int64_t j = 0; j < count; ++j)
          store(block.c + rowAt[at] + columnAt[j], tile + at * width + j, end - at, width);
    }
    return;
  }
  if (!columnsTogether && !add) { // one phase of a convolution with strides
    for (int64_t i = 0; i < rowCount; ++i) {
      float *to = block.c + rowAt[i];
      const float *from = tile + i * width;
      for (int64_t j = 0; j < count; ++j)
        to[columnAt[j]] = from[j];
    }
    return;
  }
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && columnAt[end] == columnAt[end - 1] + 1;)
      ++end;
    if (!add && end - begin == 2) // of a transposed convolution with stride 2
      for (int64_t i = 0; i < rowCount; ++i)
        std::memcpy(block.c + rowAt[i] + columnAt[begin], tile + i * width + begin,
                    2 * sizeof(float));
    else
      for (int64_t i = 0; i < rowCount; ++i)
        store(block.c + rowAt[i] + columnAt[begin], tile + i * width + begin, end - begin, 1);
  }
}

namespace {
/// Summands of a row that lie together.
struct Run {
  int64_t begin, count;
  int64_t copied; ///< elements, at least `count`; what is behind the run is inside of the operand
};
} // namespace

static constexpr int64_t kFewSummands = 8;

static void findRuns(const int64_t *sums, int64_t count, std::vector<Run> &runs) {
  runs.clear();
  for (int64_t i = 0; i < count; ++i)
    if (i && sums[i] == sums[i - 1] + 1)
      ++runs.back().count;
    else
      runs.push_back({sums[i], 1, 0});
  const int64_t last = *std::max_element(sums, sums + count);
  for (Run &run : runs) {
    run.copied = run.count <= kFewSummands / 2 ? kFewSummands / 2 : kFewSummands;
    if (run.count > kFewSummands || run.begin + run.copied > last + 1)
      run.copied = run.count;
  }
}

/// Copies the summands of a row, and up to kFewSummands - 1 elements behind them. Beyond the last
/// of an odd number, zero.
static void gatherPairs(const uint16_t *from, const std::vector<Run> &runs, float *to) {
  auto *at = reinterpret_cast<uint16_t *>(to);
  int64_t total = 0;
  for (const Run &run : runs) {
    if (run.copied == kFewSummands / 2)
      std::memcpy(at + total, from + run.begin, kFewSummands);
    else if (run.copied == kFewSummands)
      std::memcpy(at + total, from + run.begin, 2 * kFewSummands);
    else
      std::memcpy(at + total, from + run.begin, static_cast<size_t>(run.copied) * sizeof(uint16_t));
    total += run.count;
  }
  if (total % 2)
    at[total] = 0;
}

/// The summands of [kBegin, kEnd) that each set keeps which a tile of the block has.
void Contraction::findSummands(int64_t kBegin, int64_t kEnd, int64_t width, const Block &block,
                               std::vector<Summands> &found) const {
  found.resize(std::max(found.size(), kept.size()));
  for (Summands &one : found)
    one.left.clear();
  for (int64_t row = block.rowBegin; row < block.rowEnd; row += height) {
    const int64_t set = keptOf[row / height];
    Summands &one = found[set];
    if (!one.left.empty())
      continue;
    one.left.resize(static_cast<size_t>(kEnd - kBegin));
    one.right.resize(one.left.size());
    size_t count = 0;
    for (int64_t k = kBegin; k < kEnd; ++k) {
      one.left[count] = sums.x[k];
      one.right[count] = (k - kBegin) * width;
      count += kept[set][k];
    }
    one.left.resize(count);
  }
}

void Contraction::multiply(const Block &block) const {
  thread_local WorkerMemory packing, widening;
  const TileKernels &set = tileKernels();
  const int64_t width = vectors * set.lanes;
  const PairKernels pairs = pairKernels(dtype);
  const int64_t most = pairs ? 2 * kDepth : kDepth, unit = pairs ? 2 : 1;
  const int64_t blocks = std::max<int64_t>(1, (sums.size() + most - 1) / most);
  int64_t depth = (sums.size() + blocks - 1) / blocks;
  if (sumRun < 64) // whole windows
    depth = (depth + sumRun - 1) / sumRun * sumRun;
  depth += depth % unit;
  TileKernel kernel = (pairs ? pairs : set.kernels)[height - 1][vectors - 1];
  alignas(64) float tile[kMostRows * 16 * kMostVectors];
  const float *rowAt[kMostRows];
  float *panel = nullptr; // of A, widened or as pairs
  thread_local std::vector<int64_t> places;
  if (isHalf(dtype)) {
    panel = widening.get(height * depth + kFewSummands);
    places.resize(static_cast<size_t>(depth));
    for (int64_t i = 0; i < depth; ++i)
      places[i] = i;
  }
  for (int64_t kBegin = 0; kBegin < sums.size(); kBegin += depth) {
    const int64_t kEnd = std::min(sums.size(), kBegin + depth);
    const int64_t count = (kEnd - kBegin + unit - 1) / unit; // elements of the kernel
    int64_t padded = (block.columnEnd - block.columnBegin + width - 1) / width * width;
    float *packed = nullptr;
    if (!isInPlace) {
      packed = packing.get(padded * depth);
      pack(block, kBegin, kEnd, packed);
    }
    const bool add = accumulate || kBegin > 0;
    thread_local std::vector<Run> runs;
    if (pairs)
      findRuns(sums.x.data() + kBegin, kEnd - kBegin, runs);
    thread_local std::vector<Summands> kinds;
    if (!kept.empty())
      findSummands(kBegin, kEnd, width, block, kinds);
    for (int64_t row = block.rowBegin; row < block.rowEnd; row += height) {
      const Summands *some = kept.empty() ? nullptr : &kinds[keptOf[row / height]];
      const int64_t *offsets = panel ? places.data() : sums.x.data() + kBegin;
      for (int64_t i = 0; i < height; ++i) {
        // Beyond the end, the last row once more.
        int64_t at = rows.x[std::min(row + i, block.rowEnd - 1)];
        if (!panel) {
          rowAt[i] = reinterpret_cast<const float *>(block.a) + at;
          continue;
        }
        rowAt[i] = panel + i * depth;
        if (pairs) {
          gatherPairs(reinterpret_cast<const uint16_t *>(block.a) + at, runs, panel + i * depth);
          continue;
        }
        withElement(dtype, [&](auto *element) {
          auto *from = reinterpret_cast<decltype(element)>(block.a) + at;
          for (int64_t k = 0; k < count; ++k)
            panel[i * depth + k] = widened(from + sums.x[kBegin + k]);
        });
      }
      for (int64_t column = block.columnBegin; column < block.columnEnd; column += width) {
        if (isInPlace) {
          // Beyond the end, the first vector once more.
          const float *columnAt[kMostVectors];
          for (int64_t v = 0; v < kMostVectors; ++v) {
            int64_t at = column + v * set.lanes;
            columnAt[v] = reinterpret_cast<const float *>(block.b) +
                          columns.x[at < block.columnEnd ? at : column];
          }
          set.inPlace[height - 1][vectors - 1](count, rowAt, offsets, columnAt,
                                               sums.y.data() + kBegin, tile);
        } else if (some) {
          const float *columnAt[kMostVectors];
          for (int64_t v = 0; v < vectors; ++v)
            columnAt[v] = packed + (column - block.columnBegin) * count + v * set.lanes;
          set.inPlace[height - 1][vectors - 1](static_cast<int64_t>(some->left.size()), rowAt,
                                               some->left.data(), columnAt, some->right.data(),
                                               tile);
        } else {
          kernel(count, rowAt, offsets, packed + (column - block.columnBegin) * count, tile);
        }
        write(block, tile, row, column, add);
      }
    }
  }
}

Contraction::Share Contraction::shareOf(int64_t index) const {
  auto part = [](int64_t total, int64_t tile, int64_t index, int64_t parts) {
    int64_t tiles = (total + tile - 1) / tile;
    return std::min(total, tiles * index / parts * tile);
  };
  const int64_t width = vectors * tileKernels().lanes;
  int64_t column = index % byColumns, row = index / byColumns % byRows,
          batch = index / (byColumns * byRows);
  auto count = static_cast<int64_t>(batches.size());
  return {count * batch / byBatch,
          count * (batch + 1) / byBatch,
          part(rows.size(), height, row, byRows),
          part(rows.size(), height, row + 1, byRows),
          part(columns.size(), width, column, byColumns),
          part(columns.size(), width, column + 1, byColumns)};
}

std::pair<int64_t, int64_t> Contraction::writtenBy(int64_t index) const {
  Share piece = shareOf(index);
  std::pair<int64_t, int64_t> range = {0, 0};
  auto add = [&](auto offsetOf, int64_t begin, int64_t end) {
    int64_t least = std::numeric_limits<int64_t>::max(), most = -1;
    for (int64_t i = begin; i < end; ++i) {
      least = std::min(least, offsetOf(i));
      most = std::max(most, offsetOf(i));
    }
    if (begin < end)
      range = {range.first + least, range.second + most};
  };
  add([&](int64_t i) { return batches[i][2]; }, piece.batchBegin, piece.batchEnd);
  add([&](int64_t i) { return rows.y[i]; }, piece.rowBegin, piece.rowEnd);
  add([&](int64_t i) { return columns.y[i]; }, piece.columnBegin, piece.columnEnd);
  return range;
}

void Contraction::run(int64_t index, const void *a, const void *b, float *c) const {
  const int64_t width = vectors * tileKernels().lanes, size = sizeOf(dtype);
  const Share piece = shareOf(index);
  // Blocks of equal width: each reads all of A.
  int64_t wide = piece.columnEnd - piece.columnBegin, most = kBlockColumns;
  int64_t blocks = std::max<int64_t>(1, (wide + most - 1) / most);
  most = std::max<int64_t>(1, ((wide + blocks - 1) / blocks + width - 1) / width) * width;
  for (int64_t i = piece.batchBegin; i < piece.batchEnd; ++i)
    for (int64_t begin = piece.columnBegin; begin < piece.columnEnd; begin += most) {
      Block block;
      block.a = static_cast<const char *>(swapped ? b : a) + batches[i][0] * size;
      block.b = static_cast<const char *>(swapped ? a : b) + batches[i][1] * size;
      block.c = c + batches[i][2];
      block.rowBegin = piece.rowBegin;
      block.rowEnd = piece.rowEnd;
      block.columnBegin = begin;
      block.columnEnd = std::min(piece.columnEnd, begin + most);
      multiply(block);
    }
}

} // namespace tessera::runtime
