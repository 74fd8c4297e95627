//===- ContractPack.cpp - Packed panels of a contraction ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Columns are packed in strips of 16. Elements that are adjacent in memory are read
// together: contiguous columns for a few summands at a time, all strips, before the
// next summands; strided columns strip by strip, their summands four by four.
//
//===----------------------------------------------------------------------===//

#include "ContractBlock.h"
#include "ContractKernels.h"
#include "TransposeEight.h"
#include "TransposeFour.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

namespace tessera::runtime {

static constexpr int64_t kStrip = 16;   ///< columns that are packed together
static constexpr int64_t kTogether = 8; ///< summands of all strips, before the next
static constexpr int64_t kStream = 64;  ///< neighbors that the processor reads ahead by itself

namespace {
/// Columns of one strip, and the summands of each.
struct Strip {
  const int64_t *columns;
  int64_t count;
  const int64_t *sums;
  int64_t depth;
  int64_t following; ///< summands behind these, which are packed next
};
} // namespace

/// Columns in pieces of G that lie S elements apart, one place of the sum a row of `to`.
template <int G, int S, typename T>
static void packStrip(const T *from, const Strip &strip, int64_t width, float *to) {
  int64_t pieces = strip.count / G;
  int64_t starts[kStrip / G];
  for (int64_t i = 0; i < pieces; ++i)
    starts[i] = strip.columns[i * G];
  const int64_t fetched = std::min(strip.depth, strip.following);
  auto copy = [&](int64_t n) {
    for (int64_t k = 0; k < strip.depth; ++k) {
      const T *base = from + strip.sums[k];
      float *row = to + k * width;
      if (G == kStrip && k < fetched)
        __builtin_prefetch(from + strip.sums[k + strip.depth] + starts[0]);
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

/// As packStrip, as pairs of summands. Beyond the last of an odd number, zero.
template <int G, int S>
static void packPairs(const Bfloat *from, const Strip &strip, int64_t width, float *to) {
  const int64_t pieces = strip.count / G;
  int64_t starts[kStrip / G];
  for (int64_t i = 0; i < pieces; ++i)
    starts[i] = strip.columns[i * G];
  auto copy = [&](int64_t n) {
    for (int64_t k = 0; k < strip.depth; k += 2) {
      const bool isWhole = k + 1 < strip.depth;
      const Bfloat *even = from + strip.sums[k], *odd = isWhole ? from + strip.sums[k + 1] : even;
      const uint32_t mask = isWhole ? 0xffff0000u : 0;
      auto *row = reinterpret_cast<uint32_t *>(to + k / 2 * width);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t g = 0; g < G; ++g)
          row[i * G + g] = uint32_t(even[starts[i] + g * S].bits) |
                           ((uint32_t(odd[starts[i] + g * S].bits) << 16) & mask);
    }
  };
  if (pieces == kStrip / G)
    copy(kStrip / G); // unrolled
  else
    copy(pieces);
}

static void packPairsOf(int64_t piece, bool isApart, const Bfloat *from, const Strip &strip,
                        int64_t width, float *to) {
  auto call = [&](auto function) { function(from, strip, width, to); };
  if (piece == 16)
    call(isApart ? packPairs<16, 2> : packPairs<16, 1>);
  else if (piece == 8)
    call(isApart ? packPairs<8, 2> : packPairs<8, 1>);
  else if (piece == 4)
    call(isApart ? packPairs<4, 2> : packPairs<4, 1>);
  else if (piece == 2)
    call(packPairs<2, 1>);
  else
    call(packPairs<1, 1>);
}

/// Four elements that lie `step` (1 or 2) apart. The loads overlap, so that none is beyond the
/// last.
static Four loadApart(const float *from, int64_t step) {
  Four low = loadFour(from);
  return step == 1 ? low : __builtin_shufflevector(low, loadFour(from + 3), 0, 2, 5, 7);
}

/// Whether the first `count` summands lie `step` apart.
static bool areApart(const int64_t *sums, int64_t count, int64_t step) {
  for (int64_t i = 1; i < count; ++i)
    if (sums[i] != sums[0] + i * step)
      return false;
  return true;
}

/// Columns whose summands lie together or 2 apart, in either direction: transposes 8 x 8 or 4 x 4.
static void packTransposed(const float *from, const Strip &strip, int64_t width, float *to) {
  const int64_t *sums = strip.sums, *columns = strip.columns;
  const EightTransposer transposeEight = eightTransposer();
  if (strip.following > 0)
    for (int64_t i = 0; i < strip.count; ++i)
      __builtin_prefetch(from + sums[strip.depth] + columns[i]);
  for (int64_t k = 0; k < strip.depth;) {
    float *row = to + k * width;
    int64_t step = k + 3 < strip.depth ? sums[k + 1] - sums[k] : 0;
    const int64_t apart = std::abs(step);
    if ((apart != 1 && apart != 2) || !areApart(sums + k, 4, step)) {
      for (int64_t i = 0; i < strip.count; ++i)
        row[i] = from[sums[k] + columns[i]];
      ++k;
      continue;
    }
    const float *base = from + std::min(sums[k], sums[k + 3]);
    float *first = step > 0 ? row : row + 3 * width; // where the lowest summand goes
    constexpr int64_t kLine = 16, kAhead = 4 * kLine;
    if (k % kLine == 0 && k + kAhead < strip.depth)
      for (int64_t i = 0; i < strip.count; ++i)
        __builtin_prefetch(base + columns[i] + step * kAhead);
    if (transposeEight && strip.count % 8 == 0 && apart == 1 && k + 8 <= strip.depth &&
        areApart(sums + k, 8, step)) {
      const float *lowest = from + std::min(sums[k], sums[k + 7]);
      for (int64_t i = 0; i < strip.count; i += 8)
        transposeEight(lowest, columns + i, (step > 0 ? row : row + 7 * width) + i,
                       step > 0 ? width : -width);
      k += 8;
      continue;
    }
    int64_t i = 0;
    for (; i + 4 <= strip.count; i += 4)
      transposeFour(loadApart(base + columns[i], apart), loadApart(base + columns[i + 1], apart),
                    loadApart(base + columns[i + 2], apart),
                    loadApart(base + columns[i + 3], apart), first + i, step > 0 ? width : -width);
    for (; i < strip.count; ++i)
      for (int64_t j = 0; j < 4; ++j)
        row[j * width + i] = from[sums[k + j] + columns[i]];
    k += 4;
  }
}

template <typename T>
static void packStripOf(int64_t piece, bool isApart, const T *from, const Strip &strip,
                        int64_t width, float *to) {
  auto call = [&](auto function) { function(from, strip, width, to); };
  if (piece == 16)
    call(isApart ? packStrip<16, 2, T> : packStrip<16, 1, T>);
  else if (piece == 8)
    call(isApart ? packStrip<8, 2, T> : packStrip<8, 1, T>);
  else if (piece == 4)
    call(isApart ? packStrip<4, 2, T> : packStrip<4, 1, T>);
  else if (piece == 2)
    call(packStrip<2, 1, T>);
  else if constexpr (std::is_same_v<T, float>)
    call(packTransposed);
  else
    call(packStrip<1, 1, T>);
}

/// The largest power of two up to kStrip in pieces of which columns lie `step` elements apart.
static int64_t pieceOf(const int64_t *columns, int64_t count, int64_t step) {
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

void Contraction::classifyStrips() {
  const std::vector<int64_t> &places = sums.y;
  auto apart = [&](int64_t i) { return std::abs(places[i] - places[i - 1]); };
  while (sumRun < sums.size() && apart(sumRun) >= 1 && apart(sumRun) <= 2 &&
         places[sumRun] - places[sumRun - 1] == places[1] - places[0])
    ++sumRun;
  const int64_t width = vectors * tileKernels().lanes;
  for (int64_t begin = 0; begin < columns.size(); begin += width)
    for (int64_t strip = begin, end = std::min(begin + width, columns.size()); strip < end;
         strip += kStrip) {
      const int64_t *offsets = columns.x.data() + strip, count = std::min(kStrip, end - strip);
      int64_t dense = pieceOf(offsets, count, 1), apart = pieceOf(offsets, count, 2);
      bool isApart = apart > dense && apart > 2;
      strips.push_back({static_cast<int8_t>(isApart ? apart : dense), isApart});
    }
}

/// Packs rows [kBegin, kEnd) of B in panels of a tile's width, where the processor multiplies pairs
/// as pairs. Columns beyond the end keep their
/// content; the sums that contain them are unused.
void Contraction::pack(const Block &block, int64_t kBegin, int64_t kEnd, float *packed) const {
  const int64_t width = vectors * tileKernels().lanes, depth = kEnd - kBegin;
  const int64_t unit = pairKernels(dtype) ? 2 : 1, panelRows = (depth + unit - 1) / unit;
  const int64_t stripsOfPanel = (width + kStrip - 1) / kStrip;
  auto forStrips = [&](auto function) {
    for (int64_t begin = block.columnBegin; begin < block.columnEnd; begin += width) {
      float *panel = packed + (begin - block.columnBegin) * panelRows;
      int64_t end = std::min(begin + width, block.columnEnd);
      for (int64_t strip = begin; strip < end; strip += kStrip)
        function(strip, std::min(kStrip, end - strip), panel + (strip - begin),
                 strips[begin / width * stripsOfPanel + (strip - begin) / kStrip]);
    }
  };
  withElement(dtype, [&](auto *element) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
    auto *from = reinterpret_cast<const T *>(block.b);
    // In `isAlong` strips a summand of all columns is one piece of memory; in others a column is,
    // for as long as its summands lie together.
    auto packAll = [&](bool isAlong, int64_t together) {
      bool found = false;
      for (int64_t k = 0; k < depth; k += together) {
        int64_t count = std::min(together, depth - k);
        forStrips([&](int64_t strip, int64_t columnCount, float *to, StripKind kind) {
          Strip one{columns.x.data() + strip, columnCount, sums.y.data() + kBegin + k, count,
                    depth - k - count};
          if ((kind.piece > 2) != isAlong)
            return;
          found = true;
          float *rows = to + k / unit * width;
          if constexpr (std::is_same_v<T, Bfloat>)
            if (unit == 2)
              return packPairsOf(kind.piece, kind.isApart, from, one, width, rows);
          packStripOf(kind.piece, kind.isApart, from, one, width, rows);
        });
        if (!found)
          return;
      }
    };
    packAll(true, kTogether);
    int64_t together = sumRun < kStream ? sumRun * ((kTogether + sumRun - 1) / sumRun) : depth;
    packAll(false, together * (together % 2 ? unit : 1));
  });
}

} // namespace tessera::runtime
