//===- PlanBuilder.h - Writing a rank's plan --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_PLANBUILDER_H
#define TESSERA_LIB_RUNTIME_RANKS_PLANBUILDER_H

#include "Algorithm.h"

namespace tessera::runtime {

/// A range of a collective's whole buffer.
struct Block {
  int64_t begin, count;
};
/// Consecutive blocks of these counts.
std::vector<Block> blocksOf(const std::vector<int64_t> &counts);
/// `count` elements from `begin` in `parts` blocks that differ by at most one element.
std::vector<Block> cutEvenly(int64_t begin, int64_t count, int64_t parts);

inline Slice input(Block block) {
  return {Slice::Buffer::input, block.begin, block.count};
}
inline Slice output(Block block) {
  return {Slice::Buffer::output, block.begin, block.count};
}

/// Builds the plan of one rank, without empty actions. Every rank of a group opens the same rounds.
class PlanBuilder {
public:
  explicit PlanBuilder(const PlanRequest &request)
      : request(request), rank(request.rank), ranks(request.ranks) {}

  const PlanRequest &request;
  const int64_t rank, ranks;

  void round() { plan.rounds.emplace_back(); }
  void copy(Slice from, Slice to);
  void send(int64_t peer, Slice from);
  void receive(int64_t peer, Slice to);
  void combine(std::vector<Slice> sources, Slice target, bool isLast);
  Slice scratch(int64_t count);
  MessagePlan take() { return std::move(plan); }

  /// In one round, the block of this rank, one of the members, is sent to and received from all
  /// other members, whose blocks have the order of `members`. Blocks are of `output`.
  void exchangeBlocks(const std::vector<int64_t> &members, const std::vector<Block> &blocks);
  /// In one round, each member adds its block of all members' `from` in their order, and writes it
  /// to `target`.
  void reduceBlocks(const std::vector<int64_t> &members, const std::vector<Block> &blocks,
                    Slice::Buffer from, Slice target, bool isLast);

private:
  MessagePlan plan;
};

/// The algorithms. They are called for more than one rank, and return false if the algorithm does
/// not apply to the kind.
bool planDirect(PlanBuilder &builder);
bool planOneShot(PlanBuilder &builder);
bool planRing(PlanBuilder &builder);
bool planHalvingDoubling(PlanBuilder &builder);
bool planTree(PlanBuilder &builder);
bool planHierarchical(PlanBuilder &builder);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_PLANBUILDER_H
