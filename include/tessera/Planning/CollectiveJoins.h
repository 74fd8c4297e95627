//===- CollectiveJoins.h - Which collectives become one ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives of one kind and group are joined into buckets. dist-fuse-collectives
// asks this of the ops of a block, the search's estimate of memory of the ops and
// reshards that a plan has.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_COLLECTIVEJOINS_H
#define TESSERA_PLANNING_COLLECTIVEJOINS_H

#include "tessera/Planning/MemoryProfile.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::dist {

/// Bytes of operands that a joined collective may have unless an option says otherwise.
inline constexpr int64_t kJoinedBytes = int64_t(64) << 20;

/// A collective of one operand that may be joined with others.
struct JoinCandidate {
  int64_t group; ///< small and dense; members of one group may become one op
  int64_t bytes; ///< of the operand
  int64_t limit; ///< bytes that a joined op may have
  /// Read under a budget alone: when it runs by itself, and the bytes that it would free then, or
  /// would take from then on.
  int64_t time = 0;
  double freed = 0, taken = 0;
};

/// What joining may add to the memory of a device.
struct JoinBudget {
  MemoryProfile profile; ///< with nothing joined; what joining adds is added
  double bytes;
};

/// An op of a block.
struct JoinItem {
  llvm::SmallVector<size_t, 4> producers; ///< places of the ops that it depends on, each once
  std::optional<JoinCandidate> candidate;
};

/// The new order of a block's ops, as units of one op or of several collectives that become one; no
/// units where nothing is joined. A collective joins the newest unit of its group unless it depends
/// on it or the limit is hit. A unit runs at the place of its last member, what uses the others
/// waits for it; all else keeps its order. Under a budget nothing is joined that would exceed it:
/// what a collective frees is freed when its unit runs, and what it makes is there from the unit's
/// first member on. Time: linear in producers, times groups, and a sort.
std::vector<llvm::SmallVector<size_t>> joinCollectives(std::vector<JoinItem> items,
                                                       JoinBudget *budget = nullptr);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_COLLECTIVEJOINS_H
