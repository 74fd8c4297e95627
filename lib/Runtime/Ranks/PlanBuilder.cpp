//===- PlanBuilder.cpp - Writing a rank's plan ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <algorithm>

namespace tessera::runtime {

std::vector<Block> blocksOf(const std::vector<int64_t> &counts) {
  std::vector<Block> blocks;
  int64_t begin = 0;
  for (int64_t count : counts) {
    blocks.push_back({begin, count});
    begin += count;
  }
  return blocks;
}

std::vector<Block> cutEvenly(int64_t begin, int64_t count, int64_t parts) {
  std::vector<Block> blocks;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t size = count / parts + (i < count % parts);
    blocks.push_back({begin, size});
    begin += size;
  }
  return blocks;
}

void PlanBuilder::copy(Slice from, Slice to) {
  if (from.count > 0)
    plan.rounds.back().copies.push_back({from, to});
}

void PlanBuilder::send(int64_t peer, Slice from) {
  if (from.count > 0)
    plan.rounds.back().messages.push_back({peer, true, from});
}

void PlanBuilder::receive(int64_t peer, Slice to) {
  if (to.count > 0)
    plan.rounds.back().messages.push_back({peer, false, to});
}

void PlanBuilder::combine(std::vector<Slice> sources, Slice target, bool isLast) {
  if (target.count > 0)
    plan.rounds.back().combinations.push_back({std::move(sources), target, isLast});
}

Slice PlanBuilder::scratch(int64_t count) {
  Slice made{Slice::Buffer::scratch, plan.scratch, count};
  plan.scratch += count;
  return made;
}

/// The place of `rank` among `members`.
static size_t placeOf(const std::vector<int64_t> &members, int64_t rank) {
  return static_cast<size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

void PlanBuilder::exchangeBlocks(const std::vector<int64_t> &members,
                                 const std::vector<Block> &blocks) {
  round();
  size_t size = members.size(), here = placeOf(members, rank);
  // Every member starts with its successor, so that not all send to the first at once.
  for (size_t step = 1; step < size; ++step) {
    send(members[(here + step) % size], output(blocks[here]));
    size_t from = (here + size - step) % size;
    receive(members[from], output(blocks[from]));
  }
}

void PlanBuilder::reduceBlocks(const std::vector<int64_t> &members,
                               const std::vector<Block> &blocks, Slice::Buffer from, Slice target,
                               bool isLast) {
  round();
  size_t size = members.size(), here = placeOf(members, rank);
  std::vector<Slice> sources(size);
  sources[here] = {from, blocks[here].begin, blocks[here].count};
  for (size_t step = 1; step < size; ++step) {
    size_t to = (here + step) % size, of = (here + size - step) % size;
    send(members[to], {from, blocks[to].begin, blocks[to].count});
    sources[of] = scratch(blocks[here].count);
    receive(members[of], sources[of]);
  }
  combine(std::move(sources), target, isLast);
}

} // namespace tessera::runtime
