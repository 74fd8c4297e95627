//===- ArenaPlan.cpp - Intervals of memory for intervals of time -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"

#include <algorithm>
#include <limits>

using namespace tessera::codegen;

using Life = std::pair<int64_t, int64_t>;

/// Sorted, without overlaps.
static void normalize(std::vector<Life> &lives) {
  std::sort(lives.begin(), lives.end());
  std::vector<Life> merged;
  for (const Life &life : lives) {
    if (!merged.empty() && life.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, life.second);
    else
      merged.push_back(life);
  }
  lives = std::move(merged);
}

static bool meet(const Buffer &a, const Buffer &b) {
  auto x = a.lives.begin(), y = b.lives.begin();
  while (x != a.lives.end() && y != b.lives.end()) {
    if (x->first <= y->second && y->first <= x->second)
      return true;
    if (x->second < y->second)
      ++x;
    else
      ++y;
  }
  return false;
}

static int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

int64_t tessera::codegen::planArena(std::vector<Buffer *> buffers, bool reuse) {
  for (Buffer *buffer : buffers)
    normalize(buffer->lives);
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Buffer *a, const Buffer *b) { return a->bytes > b->bytes; });
  std::vector<Buffer *> placed; // by offset
  int64_t arena = 0;
  for (Buffer *buffer : buffers) {
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), top = 0;
    for (const Buffer *other : placed) {
      if (reuse && !meet(*buffer, *other))
        continue;
      int64_t gap = other->offset - top;
      if (gap >= buffer->bytes && gap < bestGap) {
        best = top;
        bestGap = gap;
      }
      top = std::max(top, aligned(other->offset + other->bytes));
    }
    buffer->offset = best >= 0 ? best : top;
    arena = std::max(arena, aligned(buffer->offset + buffer->bytes));
    auto after = [](int64_t offset, const Buffer *other) { return offset < other->offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer->offset, after), buffer);
  }
  return arena;
}
