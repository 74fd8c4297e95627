//===- ArenaPlan.cpp - Plan the arena from live ranges --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"

#include "tessera/Planning/MemoryProfile.h"

#include <algorithm>
#include <limits>

using namespace tessera::codegen;
using tessera::dist::MemoryProfile;

using LiveRange = std::pair<int64_t, int64_t>;

/// Limits on the number of comparisons with placed buffers, and on the changes of one order.
static constexpr int64_t kMostLooks = 4'000'000;
static constexpr int kRounds = 10;

/// Sorted, without overlaps.
static void normalize(std::vector<LiveRange> &lives) {
  std::sort(lives.begin(), lives.end());
  std::vector<LiveRange> merged;
  for (const LiveRange &life : lives) {
    if (!merged.empty() && life.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, life.second);
    else
      merged.push_back(life);
  }
  lives = std::move(merged);
}

static bool haveCommonLifetime(const Buffer &a, const Buffer &b) {
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

/// Live bytes over time: their maximum is a lower bound for the arena.
static MemoryProfile profileOf(const std::vector<Buffer *> &buffers) {
  int64_t end = 0;
  for (const Buffer *buffer : buffers)
    if (!buffer->lives.empty())
      end = std::max(end, buffer->lives.back().second);
  MemoryProfile profile(end);
  for (const Buffer *buffer : buffers)
    for (const LiveRange &life : buffer->lives)
      profile.add(life.first, life.second, static_cast<double>(aligned(buffer->bytes)));
  return profile;
}

namespace {

/// Searches orders of placing buffers for the smallest arena.
class Placer {
public:
  Placer(const std::vector<Buffer *> &buffers, bool reuse);
  /// Tries orders until the arena has `least` bytes or the limits are reached.
  void run(int64_t least, bool reuse);
  /// Writes the best offsets into the buffers. Returns the size of the arena.
  int64_t finish();

private:
  enum class FitPolicy { smallest, lowest };
  using Order = std::vector<size_t>;

  bool isAlways(const Buffer &buffer) const;
  std::vector<Order> orders() const;
  int64_t place(const Order &order, FitPolicy choice);
  Order promote(const Order &order, int64_t arena) const;

  const std::vector<Buffer *> &buffers;
  std::vector<size_t> always, others;        ///< buffers that are always live, and the others
  std::vector<std::vector<size_t>> together; ///< by buffer, others with overlapping live ranges
  std::vector<int64_t> ends;                 ///< by buffer: where it ends, aligned; -1: not placed
  std::vector<int64_t> bestOffsets;
  std::vector<std::pair<int64_t, int64_t>> taken; ///< intervals that a buffer must avoid
  int64_t base = 0;                               ///< bytes of always live buffers
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0; ///< of all times
  int64_t bestArena = std::numeric_limits<int64_t>::max(), looks = 0;
};

} // namespace

Placer::Placer(const std::vector<Buffer *> &buffers, bool reuse)
    : buffers(buffers), together(buffers.size()), ends(buffers.size()) {
  for (const Buffer *buffer : buffers)
    if (!buffer->lives.empty()) {
      first = std::min(first, buffer->lives.front().first);
      last = std::max(last, buffer->lives.back().second);
    }
  for (size_t b = 0; b < buffers.size(); ++b)
    (isAlways(*buffers[b]) ? always : others).push_back(b);
  auto begin = [&](size_t b) {
    return buffers[b]->lives.empty() ? first : buffers[b]->lives.front().first;
  };
  // Compares buffers whose live ranges have begun and not ended.
  std::vector<size_t> byBegin = others, open;
  std::stable_sort(byBegin.begin(), byBegin.end(),
                   [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t b : byBegin) {
    if (reuse)
      std::erase_if(open, [&](size_t other) {
        const std::vector<LiveRange> &lives = buffers[other]->lives;
        return lives.empty() || lives.back().second < begin(b);
      });
    for (size_t other : open)
      if (!reuse || haveCommonLifetime(*buffers[b], *buffers[other])) {
        together[b].push_back(other);
        together[other].push_back(b);
      }
    open.push_back(b);
  }
}

/// Some optimal plan has such a buffer at the bottom.
bool Placer::isAlways(const Buffer &buffer) const {
  return buffer.lives.size() == 1 && buffer.lives.front() == LiveRange{first, last};
}

std::vector<Placer::Order> Placer::orders() const {
  std::vector<Buffer *> rest;
  for (size_t b : others)
    rest.push_back(buffers[b]);
  MemoryProfile profile = profileOf(rest);
  // By buffer: the peak during its live range, the start and the length of the range.
  std::vector<double> most(buffers.size(), 0);
  std::vector<int64_t> begin(buffers.size(), 0), span = begin;
  for (size_t b : others)
    if (const std::vector<LiveRange> &lives = buffers[b]->lives; !lives.empty()) {
      begin[b] = lives.front().first;
      span[b] = lives.back().second - lives.front().first;
      for (const LiveRange &life : lives)
        most[b] = std::max(most[b], profile.peak(life.first, life.second));
    }
  Order bySize = others;
  std::stable_sort(bySize.begin(), bySize.end(),
                   [&](size_t a, size_t b) { return buffers[a]->bytes > buffers[b]->bytes; });
  auto sorted = [&](auto before) {
    Order order = bySize;
    std::stable_sort(order.begin(), order.end(), before);
    return order;
  };
  return {bySize, sorted([&](size_t a, size_t b) { return most[a] > most[b]; }),
          sorted([&](size_t a, size_t b) { return begin[a] < begin[b]; }),
          sorted([&](size_t a, size_t b) { return span[a] > span[b]; })};
}

int64_t Placer::place(const Order &order, FitPolicy choice) {
  std::fill(ends.begin(), ends.end(), -1);
  int64_t arena = 0;
  auto put = [&](size_t b, int64_t offset) {
    buffers[b]->offset = offset;
    ends[b] = aligned(offset + buffers[b]->bytes);
    arena = std::max(arena, ends[b]);
  };
  for (size_t b : always)
    put(b, arena);
  base = arena;
  for (size_t b : order) {
    taken.clear();
    for (size_t other : together[b])
      if (ends[other] >= 0)
        taken.push_back({buffers[other]->offset, ends[other]});
    looks += static_cast<int64_t>(together[b].size());
    std::sort(taken.begin(), taken.end());
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), top = base;
    for (auto [from, to] : taken) {
      int64_t gap = from - top;
      bool isBetter = choice == FitPolicy::smallest ? gap < bestGap : best < 0;
      if (gap >= buffers[b]->bytes && isBetter) {
        best = top;
        bestGap = gap;
      }
      top = std::max(top, to);
    }
    put(b, best >= 0 ? best : top);
  }
  if (arena < bestArena) {
    bestArena = arena;
    bestOffsets.clear();
    for (const Buffer *buffer : buffers)
      bestOffsets.push_back(buffer->offset);
  }
  return arena;
}

/// Moves the buffers at the top of the last plan to the front.
Placer::Order Placer::promote(const Order &order, int64_t arena) const {
  Order next = order;
  std::stable_partition(next.begin(), next.end(), [&](size_t b) { return ends[b] == arena; });
  return next;
}

void Placer::run(int64_t least, bool reuse) {
  std::vector<Order> tried = orders();
  for (int rounds : {0, kRounds})
    for (const Order &begin : tried)
      for (FitPolicy choice : {FitPolicy::smallest, FitPolicy::lowest}) {
        Order order = begin;
        int64_t arena = place(order, choice);
        for (int round = 0; round < rounds && bestArena > least && looks < kMostLooks; ++round) {
          order = promote(order, arena);
          arena = place(order, choice);
        }
        if (!reuse || bestArena <= least || looks >= kMostLooks)
          return;
      }
}

int64_t Placer::finish() {
  for (size_t b = 0; b < buffers.size(); ++b)
    buffers[b]->offset = bestOffsets[b];
  return bestArena;
}

int64_t tessera::codegen::planArena(std::vector<Buffer *> buffers, bool reuse) {
  for (Buffer *buffer : buffers)
    normalize(buffer->lives);
  Placer placer(buffers, reuse);
  placer.run(static_cast<int64_t>(profileOf(buffers).peak()), reuse);
  return placer.finish();
}
