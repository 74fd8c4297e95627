//===- Algorithm.h - Algorithms of collectives ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_ALGORITHM_H
#define TESSERA_LIB_RUNTIME_RANKS_ALGORITHM_H

#include "MessagePlan.h"
#include "tessera/Runtime/Artifact/Status.h"
#include "tessera/Sharding/Collective.h"

#include <optional>
#include <string_view>

namespace tessera::runtime {

/// With n ranks and a buffer of B bytes (for all_gather and reduce_scatter the whole one), a rank
/// of an all-reduce sends
///
///   direct            2(n-1) messages in 2 rounds     2B(n-1)/n   added in the order of ranks
///   one_shot          n-1 in 1                        B(n-1)      added in the order of ranks
///   ring              2(n-1) in 2(n-1), to one peer   2B(n-1)/n
///   halving_doubling  2 log n in 2 log n              2B(n-1)/n   other n than powers of two: the
///                     surplus ranks give all they have to a neighbor first, and get the result
///   tree              1 (the root log n) in 2 log n   B (the root B log n)
///   hierarchical      within hosts, between hosts (2B(h-1)/h a host), within hosts
enum class Algorithm { direct, one_shot, ring, halving_doubling, tree, hierarchical };
inline constexpr Algorithm kAlgorithms[] = {Algorithm::direct, Algorithm::one_shot,
                                            Algorithm::ring,   Algorithm::halving_doubling,
                                            Algorithm::tree,   Algorithm::hierarchical};

/// "direct", …
std::string_view toString(Algorithm algorithm);
std::optional<Algorithm> parseAlgorithm(std::string_view text);
/// Whether contributions are combined in rank order, all at once (Reduce.h): all such algorithms
/// give the same bits. True for collectives that only move elements.
bool keepsOrder(Algorithm algorithm, sharding::CollectiveKind kind);

/// A collective of a group from the view of one rank. Counts are in elements.
struct PlanRequest {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  int64_t rank = 0, ranks = 1; ///< places in the group
  int64_t root = 0;            ///< of broadcast, reduce, gather, scatter
  /// all_reduce, broadcast, reduce: one, of the whole buffer. all_gather, gather: sent by each
  /// rank; reduce_scatter, scatter: received by each. all_to_all: sent by this rank to each.
  std::vector<int64_t> counts;
  std::vector<int64_t> receives; ///< all_to_all: received by this rank from each
  /// A number for each rank's host, for `hierarchical`; empty if all share one.
  std::vector<int64_t> hosts;
};

/// The part of the request's rank. In place, as of RankCall: all_reduce, broadcast, reduce use one
/// buffer; all_gather and gather send from their place in the output; reduce_scatter and scatter
/// receive at theirs in the input. all_to_all is never in place. Fails if the algorithm does not
/// apply, with a list of those that do.
Expected<MessagePlan> makePlan(const PlanRequest &request, Algorithm algorithm);
/// The algorithms that apply to the request, in the order of the enumeration.
std::vector<Algorithm> algorithmsFor(const PlanRequest &request);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_ALGORITHM_H
