//===- HalvingPlans.cpp - Recursive halving and doubling ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH" (2005). A core of 2^k ranks halves and doubles ranges of
// blocks. With n = 2^k + r ranks, the first 2r form pairs: the odd one sends its
// data to the even one, which is in the core, and receives its result from it.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <bit>

namespace tessera::runtime {

using sharding::CollectiveKind;

namespace {
class Halving {
public:
  /// `blocks`: of the ranks of the core.
  Halving(PlanBuilder &b)
      : b(b), core(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(b.ranks)))),
        surplus(b.ranks - core) {
    bool paired = b.rank < 2 * surplus;
    outside = paired && b.rank % 2 == 1;
    partner = !paired ? -1 : outside ? b.rank - 1 : b.rank + 1;
    self = paired ? b.rank / 2 : b.rank - surplus;
  }

  int64_t rankOf(int64_t place) const { return place < surplus ? 2 * place : place + surplus; }

  /// The blocks of ranks as blocks of the core: a pair has one.
  std::vector<Block> coreBlocks(const std::vector<Block> &blocks) const {
    std::vector<Block> result;
    for (int64_t place = 0; place < core; ++place) {
      Block block = blocks[rankOf(place)];
      if (place < surplus)
        block.count += blocks[rankOf(place) + 1].count;
      result.push_back(block);
    }
    return result;
  }

  static Block range(const std::vector<Block> &blocks, int64_t low, int64_t high) {
    int64_t end = blocks[high - 1].begin + blocks[high - 1].count;
    return {blocks[low].begin, end - blocks[low].begin};
  }

  /// The sum of this rank's block, in `sums` shifted by `base`: an element x of the input is at
  /// x - base + sums.begin.
  Slice reduceScatter(const std::vector<Block> &blocks, bool intoOutput) {
    Block all = range(blocks, 0, core);
    b.round();
    if (outside) {
      b.send(partner, input(all));
      for (int64_t width = core; width > 1; width /= 2)
        b.round();
      return {};
    }
    // In the output, or in scratch for the range that this rank adds: its half, or all for a pair.
    int64_t low = 0, high = core, middle = core / 2;
    Block held = partner >= 0    ? all
                 : self < middle ? range(blocks, 0, middle)
                                 : range(blocks, middle, core);
    Slice sums = intoOutput ? output(held) : b.scratch(held.count);
    auto sumOf = [&](Block part) {
      return Slice{sums.buffer, sums.begin + part.begin - held.begin, part.count};
    };
    bool started = false;
    Slice incoming = b.scratch(held.count);
    auto addTo = [&](Block part, bool isLast) {
      Slice mine = started ? sumOf(part) : input(part);
      b.combine({mine, {incoming.buffer, incoming.begin, part.count}}, sumOf(part), isLast);
    };
    if (partner >= 0) {
      b.receive(partner, {incoming.buffer, incoming.begin, all.count});
      addTo(all, false);
      started = true;
    }
    while (high - low > 1) {
      b.round();
      middle = (low + high) / 2;
      bool lower = self < middle;
      int64_t other = rankOf(self ^ ((high - low) / 2));
      Block gives = lower ? range(blocks, middle, high) : range(blocks, low, middle);
      (lower ? high : low) = middle;
      Block keeps = range(blocks, low, high);
      b.send(other, started ? sumOf(gives) : input(gives));
      b.receive(other, {incoming.buffer, incoming.begin, keeps.count});
      addTo(keeps, high - low == 1);
      started = true;
    }
    return sumOf(blocks[self]);
  }

  /// Gathers the blocks in the output of the core on all ranks.
  void allGather(const std::vector<Block> &blocks, Block surplusHas) {
    for (int64_t width = 1; width < core; width *= 2) {
      b.round();
      if (outside)
        continue;
      int64_t low = self / width * width, other = self ^ width, from = other / width * width;
      b.send(rankOf(other), output(range(blocks, low, low + width)));
      b.receive(rankOf(other), output(range(blocks, from, from + width)));
    }
    b.round();
    if (partner < 0)
      return;
    Block all = range(blocks, 0, core);
    int64_t behind = surplusHas.begin + surplusHas.count;
    for (Block part : {Block{all.begin, surplusHas.begin - all.begin},
                       Block{behind, all.begin + all.count - behind}}) {
      if (outside)
        b.receive(partner, output(part));
      else
        b.send(partner, output(part));
    }
  }

  PlanBuilder &b;
  const int64_t core, surplus;
  bool outside = false;
  int64_t partner = -1; ///< of a pair
  int64_t self = 0;     ///< place in the core; for a pair that of its core rank
};
} // namespace

bool planHalvingDoubling(PlanBuilder &b) {
  Halving halving(b);
  switch (b.request.kind) {
  case CollectiveKind::all_reduce: {
    std::vector<Block> blocks = cutEvenly(0, b.request.counts[0], halving.core);
    halving.reduceScatter(blocks, true);
    halving.allGather(blocks, {0, 0});
    return true;
  }
  case CollectiveKind::reduce_scatter: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    Slice result = halving.reduceScatter(halving.coreBlocks(blocks), false);
    b.round();
    Slice own = output({0, blocks[b.rank].count});
    if (halving.outside) {
      b.receive(halving.partner, own);
      return true;
    }
    b.copy({result.buffer, result.begin, own.count}, own);
    if (halving.partner >= 0)
      b.send(halving.partner,
             {result.buffer, result.begin + own.count, blocks[halving.partner].count});
    return true;
  }
  case CollectiveKind::all_gather: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    Block own = blocks[b.rank];
    b.round();
    b.copy(input({0, own.count}), output(own));
    if (halving.outside)
      b.send(halving.partner, output(own));
    else if (halving.partner >= 0)
      b.receive(halving.partner, output(blocks[halving.partner]));
    Block surplusHas = halving.outside        ? own
                       : halving.partner >= 0 ? blocks[halving.partner]
                                              : Block{0, 0};
    halving.allGather(halving.coreBlocks(blocks), surplusHas);
    return true;
  }
  default:
    return false;
  }
}

} // namespace tessera::runtime
