//===- RingPlans.cpp - Messages between neighbors in a ring ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations" (2009). In step s of an all-reduce of n ranks, rank r sends
// block r-s to r+1, which adds its own; then n-1 steps of copies.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <algorithm>

namespace tessera::runtime {

using sharding::CollectiveKind;

namespace {
struct Ring {
  PlanBuilder &b;
  const std::vector<Block> &blocks;
  int64_t shift; ///< rank r ends the reduction with block r + shift

  const Block &at(int64_t index) const { return blocks[((index % b.ranks) + b.ranks) % b.ranks]; }
  int64_t next() const { return (b.rank + 1) % b.ranks; }
  int64_t previous() const { return (b.rank + b.ranks - 1) % b.ranks; }

  void reduceScatter(Slice result) const {
    int64_t largest = 0;
    for (const Block &block : blocks)
      largest = std::max(largest, block.count);
    Slice sums[2] = {b.scratch(largest), b.scratch(largest)};
    Slice sent = input(at(b.rank + shift - 1));
    for (int64_t step = 0; step < b.ranks - 1; ++step) {
      b.round();
      b.send(next(), sent);
      Block block = at(b.rank + shift - step - 2);
      Slice sum{Slice::Buffer::scratch, sums[step % 2].begin, block.count};
      b.receive(previous(), sum);
      bool isLast = step == b.ranks - 2;
      b.combine({sum, input(block)}, isLast ? result : sum, isLast);
      sent = sum;
    }
  }
  void allGather() const {
    for (int64_t step = 0; step < b.ranks - 1; ++step) {
      b.round();
      b.send(next(), output(at(b.rank + shift - step)));
      b.receive(previous(), output(at(b.rank + shift - step - 1)));
    }
  }
};
} // namespace

/// Blocks of `from` to their ranks, which keep them in the output.
static void scatterBlocks(PlanBuilder &b, const std::vector<Block> &blocks) {
  b.round();
  if (b.rank != b.request.root) {
    b.receive(b.request.root, output(blocks[b.rank]));
    return;
  }
  b.copy(input({0, b.request.counts[0]}), output({0, b.request.counts[0]}));
  for (int64_t peer = 0; peer < b.ranks; ++peer)
    if (peer != b.rank)
      b.send(peer, input(blocks[peer]));
}

/// One peer at a time, at the same distance for all ranks.
static void allToAll(PlanBuilder &b) {
  std::vector<Block> from = blocksOf(b.request.counts), to = blocksOf(b.request.receives);
  b.round();
  b.copy(input(from[b.rank]), output(to[b.rank]));
  for (int64_t step = 1; step < b.ranks; ++step) {
    int64_t next = (b.rank + step) % b.ranks, previous = (b.rank + b.ranks - step) % b.ranks;
    b.round();
    b.send(next, input(from[next]));
    b.receive(previous, output(to[previous]));
  }
}

bool planRing(PlanBuilder &b) {
  switch (b.request.kind) {
  case CollectiveKind::all_reduce: {
    std::vector<Block> blocks = cutEvenly(0, b.request.counts[0], b.ranks);
    Ring ring{b, blocks, 1};
    ring.reduceScatter(output(ring.at(b.rank + 1)));
    ring.allGather();
    return true;
  }
  case CollectiveKind::reduce: {
    std::vector<Block> blocks = cutEvenly(0, b.request.counts[0], b.ranks);
    Ring ring{b, blocks, 0};
    Slice result = output(blocks[b.rank]);
    if (b.rank != b.request.root)
      result = b.scratch(blocks[b.rank].count);
    ring.reduceScatter(result);
    b.round();
    if (b.rank != b.request.root)
      b.send(b.request.root, result);
    else
      for (int64_t peer = 0; peer < b.ranks; ++peer)
        if (peer != b.rank)
          b.receive(peer, output(blocks[peer]));
    return true;
  }
  case CollectiveKind::reduce_scatter: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    Ring{b, blocks, 0}.reduceScatter(output({0, blocks[b.rank].count}));
    return true;
  }
  case CollectiveKind::all_gather: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    b.round();
    b.copy(input({0, blocks[b.rank].count}), output(blocks[b.rank]));
    Ring{b, blocks, 0}.allGather();
    return true;
  }
  case CollectiveKind::broadcast: { // van de Geijn: scatter, then gather around the ring
    std::vector<Block> blocks = cutEvenly(0, b.request.counts[0], b.ranks);
    scatterBlocks(b, blocks);
    Ring{b, blocks, 0}.allGather();
    return true;
  }
  case CollectiveKind::all_to_all:
    allToAll(b);
    return true;
  default:
    return false;
  }
}

} // namespace tessera::runtime
