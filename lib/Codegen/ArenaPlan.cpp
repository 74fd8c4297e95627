//===- ArenaPlan.cpp - Intervals of memory for intervals of time -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace tessera::codegen;

using Life = std::pair<int64_t, int64_t>;

/// An arena that is above the least by no more than this part of it is good enough.
static constexpr int64_t kNearEnough = 64;

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

/// The least that any plan can take, and the time at which it does.
static std::pair<int64_t, int64_t> worstTime(const std::vector<Buffer *> &buffers) {
  std::map<int64_t, int64_t> change;
  for (const Buffer *buffer : buffers)
    for (const Life &life : buffer->lives) {
      change[life.first] += aligned(buffer->bytes);
      change[life.second + 1] -= aligned(buffer->bytes);
    }
  int64_t now = 0, most = 0, worst = 0;
  for (auto [time, bytes] : change)
    if ((now += bytes) > most) {
      most = now;
      worst = time;
    }
  return {most, worst};
}

/// Places buffers in their order, each into the smallest gap that holds it.
static int64_t place(const std::vector<Buffer *> &buffers, bool reuse) {
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

int64_t tessera::codegen::planArena(std::vector<Buffer *> buffers, bool reuse) {
  for (Buffer *buffer : buffers)
    normalize(buffer->lives);
  auto [least, worst] = worstTime(buffers);
  auto span = [](const Buffer *buffer) {
    return buffer->lives.empty() ? 0 : buffer->lives.back().second - buffer->lives.front().first;
  };
  auto isThere = [worst = worst](const Buffer *buffer) {
    return std::any_of(buffer->lives.begin(), buffer->lives.end(), [&](const Life &life) {
      return life.first <= worst && worst <= life.second;
    });
  };
  auto larger = [](const Buffer *a, const Buffer *b) { return a->bytes > b->bytes; };
  auto longer = [&](const Buffer *a, const Buffer *b) { return span(a) > span(b); };
  std::vector<int64_t> best(buffers.size());
  int64_t arena = std::numeric_limits<int64_t>::max();
  for (int order = 0; order < 3; ++order) {
    std::vector<Buffer *> sorted = buffers;
    std::stable_sort(sorted.begin(), sorted.end(), larger);
    if (order == 1)
      std::stable_partition(sorted.begin(), sorted.end(), isThere);
    else if (order == 2)
      std::stable_sort(sorted.begin(), sorted.end(), longer);
    if (int64_t found = place(sorted, reuse); found < arena) {
      arena = found;
      for (size_t b = 0; b < buffers.size(); ++b)
        best[b] = buffers[b]->offset;
    }
    if (!reuse || arena <= least + least / kNearEnough)
      break;
  }
  for (size_t b = 0; b < buffers.size(); ++b)
    buffers[b]->offset = best[b];
  return arena;
}
