//===- TreePlans.cpp - Binomial trees -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <algorithm>

namespace tessera::runtime {

using sharding::CollectiveKind;

namespace {
/// Places count from the root. The parent of a place lacks its lowest bit, and the place has a
/// child for each bit below that: its subtree is the places up to the next with that bit.
class Tree {
public:
  Tree(PlanBuilder &b, int64_t root) : b(b), root(root) {
    self = (b.rank - root + b.ranks) % b.ranks;
    while (top < b.ranks)
      top *= 2;
  }
  int64_t rankOf(int64_t place) const { return (place + root) % b.ranks; }

  void reduce(Block all) {
    Slice sum = self == 0 ? output(all) : Slice{};
    bool started = false;
    Slice incoming;
    for (int64_t bit = 1; bit < top; bit *= 2) {
      b.round();
      if (self & (bit - 1))
        continue; // it has sent its sum
      if (self & bit) {
        b.send(rankOf(self - bit), started ? sum : input(all));
      } else if (self + bit < b.ranks) {
        if (!started)
          incoming = b.scratch(all.count);
        if (!started && self != 0)
          sum = b.scratch(all.count);
        b.receive(rankOf(self + bit), incoming);
        b.combine({started ? sum : input(all), incoming}, sum, self == 0 && bit * 2 >= top);
        started = true;
      }
    }
  }

  /// `source`: the root's data.
  void broadcast(Block all, Slice source) {
    b.round();
    if (self == 0 && !(source == output(all)))
      b.copy(source, output(all));
    for (int64_t bit = top / 2; bit >= 1; bit /= 2) {
      b.round();
      if (self & (bit - 1))
        continue;
      if (self & bit)
        b.receive(rankOf(self - bit), output(all));
      else if (self + bit < b.ranks)
        b.send(rankOf(self + bit), output(all));
    }
  }

  /// Moves blocks of subtrees up to the root, or down from it. Inner ranks other than the root keep
  /// those of their subtree in scratch, by place.
  void moveBlocks(const std::vector<Block> &blocks, bool up) {
    int64_t subtree = self == 0 ? top : self & -self;
    std::vector<int64_t> at; // of the places of the subtree, in scratch
    int64_t size = 0;
    for (int64_t place = self; place < std::min(self + subtree, b.ranks); ++place) {
      at.push_back(size);
      size += blocks[rankOf(place)].count;
    }
    Slice store = self == 0 ? Slice{} : b.scratch(size);
    Block own = blocks[b.rank];
    auto slice = [&](int64_t place, int64_t count) {
      if (self == 0)
        return Slice{up ? Slice::Buffer::output : Slice::Buffer::input, blocks[rankOf(place)].begin,
                     count};
      return Slice{store.buffer, store.begin + at[static_cast<size_t>(place - self)], count};
    };
    // Ranks wrap around behind the last place that is not a rank beyond the root's buffer's end.
    auto move = [&](int64_t peer, int64_t first, int64_t last, bool send) {
      int64_t wrap = std::clamp(b.ranks - root, first, last);
      for (auto [from, to] : {std::pair(first, wrap), std::pair(wrap, last)}) {
        int64_t count = 0;
        for (int64_t place = from; place < to; ++place)
          count += blocks[rankOf(place)].count;
        if (from < to)
          send ? b.send(peer, slice(from, count)) : b.receive(peer, slice(from, count));
      }
    };
    b.round();
    if (up && self == 0)
      b.copy(input({0, own.count}), output(own));
    else if (up)
      b.copy(input({0, own.count}), slice(self, own.count));
    for (int64_t step = 1; step < top; step *= 2) {
      int64_t bit = up ? step : top / 2 / step;
      b.round();
      if (self & (bit - 1))
        continue;
      if (self & bit)
        move(rankOf(self - bit), self, std::min(self + bit, b.ranks), up);
      else if (self + bit < b.ranks)
        move(rankOf(self + bit), self + bit, std::min(self + 2 * bit, b.ranks), !up);
    }
    b.round();
    if (!up)
      b.copy(self == 0 ? input(own) : slice(self, own.count), output({0, own.count}));
  }

private:
  PlanBuilder &b;
  const int64_t root;
  int64_t self;    ///< place
  int64_t top = 1; ///< the least power of two above all places
};
} // namespace

bool planTree(PlanBuilder &b) {
  switch (b.request.kind) {
  case CollectiveKind::all_reduce: {
    Block all{0, b.request.counts[0]};
    Tree(b, 0).reduce(all);
    Tree(b, 0).broadcast(all, output(all));
    return true;
  }
  case CollectiveKind::reduce:
    Tree(b, b.request.root).reduce({0, b.request.counts[0]});
    return true;
  case CollectiveKind::broadcast: {
    Block all{0, b.request.counts[0]};
    Tree(b, b.request.root).broadcast(all, input(all));
    return true;
  }
  case CollectiveKind::gather:
    Tree(b, b.request.root).moveBlocks(blocksOf(b.request.counts), true);
    return true;
  case CollectiveKind::scatter:
    Tree(b, b.request.root).moveBlocks(blocksOf(b.request.counts), false);
    return true;
  default:
    return false;
  }
}

} // namespace tessera::runtime
