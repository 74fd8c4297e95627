//===- DirectPlans.cpp - Direct messages between all ranks ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <numeric>

namespace tessera::runtime {

using sharding::CollectiveKind;

static std::vector<int64_t> everyone(int64_t ranks) {
  std::vector<int64_t> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// All blocks to the root, or all from it. Own blocks are copied.
static void gather(PlanBuilder &b, Slice own, const std::vector<Block> &blocks) {
  b.round();
  if (b.rank != b.request.root) {
    b.send(b.request.root, own);
    return;
  }
  if (!(own == output(blocks[b.rank])))
    b.copy(own, output(blocks[b.rank]));
  for (int64_t peer = 0; peer < b.ranks; ++peer)
    if (peer != b.rank)
      b.receive(peer, output(blocks[peer]));
}

static void scatter(PlanBuilder &b, const std::vector<Block> &blocks) {
  b.round();
  Slice own = output({0, blocks[b.rank].count});
  if (b.rank != b.request.root) {
    b.receive(b.request.root, own);
    return;
  }
  b.copy(input(blocks[b.rank]), own);
  for (int64_t peer = 0; peer < b.ranks; ++peer)
    if (peer != b.rank)
      b.send(peer, input(blocks[peer]));
}

static void allToAll(PlanBuilder &b) {
  std::vector<Block> from = blocksOf(b.request.counts), to = blocksOf(b.request.receives);
  b.round();
  b.copy(input(from[b.rank]), output(to[b.rank]));
  for (int64_t step = 1; step < b.ranks; ++step) {
    int64_t next = (b.rank + step) % b.ranks, previous = (b.rank + b.ranks - step) % b.ranks;
    b.send(next, input(from[next]));
    b.receive(previous, output(to[previous]));
  }
}

static void broadcast(PlanBuilder &b) {
  Block all{0, b.request.counts[0]};
  b.round();
  if (b.rank != b.request.root) {
    b.receive(b.request.root, output(all));
    return;
  }
  b.copy(input(all), output(all));
  for (int64_t step = 1; step < b.ranks; ++step)
    b.send((b.rank + step) % b.ranks, input(all));
}

bool planDirect(PlanBuilder &b) {
  std::vector<int64_t> all = everyone(b.ranks);
  switch (b.request.kind) {
  case CollectiveKind::all_reduce:
  case CollectiveKind::reduce: {
    std::vector<Block> blocks = cutEvenly(0, b.request.counts[0], b.ranks);
    Block own = blocks[b.rank];
    bool keeps = b.request.kind == CollectiveKind::all_reduce || b.rank == b.request.root;
    Slice result = keeps ? output(own) : b.scratch(own.count);
    b.reduceBlocks(all, blocks, Slice::Buffer::input, result, true);
    if (b.request.kind == CollectiveKind::all_reduce)
      b.exchangeBlocks(all, blocks);
    else
      gather(b, result, blocks);
    return true;
  }
  case CollectiveKind::reduce_scatter: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    b.reduceBlocks(all, blocks, Slice::Buffer::input, output({0, blocks[b.rank].count}), true);
    return true;
  }
  case CollectiveKind::all_gather: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    b.round();
    b.copy(input({0, blocks[b.rank].count}), output(blocks[b.rank]));
    b.exchangeBlocks(all, blocks);
    return true;
  }
  case CollectiveKind::gather: {
    std::vector<Block> blocks = blocksOf(b.request.counts);
    gather(b, input({0, blocks[b.rank].count}), blocks);
    return true;
  }
  case CollectiveKind::scatter:
    scatter(b, blocksOf(b.request.counts));
    return true;
  case CollectiveKind::all_to_all:
    allToAll(b);
    return true;
  case CollectiveKind::broadcast:
    broadcast(b);
    return true;
  default:
    return false;
  }
}

bool planOneShot(PlanBuilder &b) {
  bool isReduce = b.request.kind == CollectiveKind::reduce;
  if (b.request.kind != CollectiveKind::all_reduce && !isReduce)
    return false;
  Block all{0, b.request.counts[0]};
  std::vector<Slice> sources(static_cast<size_t>(b.ranks), input(all));
  bool adds = !isReduce || b.rank == b.request.root;
  b.round();
  for (int64_t step = 1; step < b.ranks; ++step) {
    int64_t next = (b.rank + step) % b.ranks, previous = (b.rank + b.ranks - step) % b.ranks;
    if (!isReduce || next == b.request.root)
      b.send(next, input(all));
    if (adds) {
      sources[previous] = b.scratch(all.count);
      b.receive(previous, sources[previous]);
    }
  }
  b.round(); // in place, the result overwrites the sent data
  if (adds)
    b.combine(std::move(sources), output(all), true);
  return true;
}

} // namespace tessera::runtime
