//===- CollectiveJoins.h - Join collectives into buckets --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives of one kind and group are joined into buckets. dist-fuse-collectives
// joins the ops of a block; the search's memory estimate joins the ops and reshards of
// a plan.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_COLLECTIVEJOINS_H
#define TESSERA_PLANNING_COLLECTIVEJOINS_H

#include "tessera/Planning/MemoryProfile.h"
#include "tessera/Sharding/ReshardPlanner.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace tessera::dist {

/// Default limit on the bytes of the operands of a joined collective.
inline constexpr int64_t kJoinedBytes = int64_t(64) << 20;

/// Whether a kind sends values between devices without reducing or repeating them.
bool isMove(sharding::CollectiveKind kind);
/// Whether collectives of a kind may be joined.
bool isJoined(sharding::CollectiveKind kind);

/// Which devices meet in a move: for an exchange each axis along which placements differ, for a
/// permutation the axes that take each other's place, else the axes of its groups.
using Meetings = std::set<std::pair<sharding::AxisList, sharding::AxisList>>;

/// Moves of one kind on one mesh may be joined if their meetings are equal: no device waits for
/// others than before, and in a permutation each has one partner.
///   exchange [{x}, {y}] -> [{}, {y}]   x           permute [{x}, {}] -> [{y}, {}]   x with y
///   exchange [{x}, {}] -> [{}, {y}]    x, y        all_to_all over x, y             x, y as one
///   group
Meetings meetingsOf(sharding::CollectiveKind kind, const sharding::AxisList &axes,
                    const sharding::TensorSharding &source, const sharding::TensorSharding &target);

/// A collective that may be joined with others.
struct JoinCandidate {
  int64_t group; ///< small and dense; members of one group may become one op
  int64_t bytes; ///< of the operands
  int64_t limit; ///< on the bytes of a joined op
  /// Used only with a budget: the time at which it runs alone, the bytes that it frees then, and
  /// the bytes that it takes from then on.
  int64_t time = 0;
  double freed = 0, taken = 0;
};

/// Limit on the memory per device with joined collectives.
struct JoinBudget {
  MemoryProfile profile; ///< without joins; the bytes that joins add are added to it
  double bytes;
};

/// An op of a block.
struct JoinItem {
  llvm::SmallVector<size_t, 4> producers; ///< positions of the ops that it depends on, each once
  std::optional<JoinCandidate> candidate;
};

/// Returns the new order of a block's ops in units: one op, or several collectives that become one.
/// Without any join there are no units. A collective joins the newest unit of its group unless it
/// depends on that unit or exceeds the limit; a small one that others of the group depend on joins
/// the oldest one. A unit runs at the position of its last member, and
/// users of the other members wait for it; all other ops keep their order. With a budget, joins
/// that would exceed it are skipped: the operands of a collective are freed when its unit runs, and
/// the results are live from the unit's first member on. Time: linear in producers times groups,
/// plus a sort.
std::vector<llvm::SmallVector<size_t>> joinCollectives(std::vector<JoinItem> items,
                                                       JoinBudget *budget = nullptr);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_COLLECTIVEJOINS_H
