//===- AttentionRing.h - Blocks of keys that arrive in turn -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ring attention (Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers", 2023): keys
// and values are cut like the queries, and a device attends to one block of them after the other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H
#define TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H

#include "tessera/Dialect/Ext/IR/AttentionDomain.h"
#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ShardingRule.h"

#include <optional>

namespace tessera::ext {

/// The loop over queries that a ring cuts along with the keys: one with as many positions as there
/// are keys, else the longest. None where no loop over queries has several positions, or where a
/// window of keys is exchanged instead.
std::optional<unsigned> ringCandidateOf(const AttentionParts &parts);
/// The same of an op that has the attribute `ring`.
std::optional<unsigned> ringQueryOf(const AttentionParts &parts);

/// One turn of a ring: block i of the queries meets the block of keys `distance` before its own,
/// or, where there is none, the one as far from the end (the ring closes).
struct RingTurn {
  int64_t distance; ///< from 1 to devices - 1
  bool behind;      ///< whether a device sees the block i - distance
  bool ahead;       ///< whether a device sees the block i - distance + devices
};
/// The turns in which a device sees a key. What a mask of indices leaves out for all devices is no
/// turn, nor is what lies beyond the last key.
llvm::SmallVector<RingTurn> ringTurnsOf(const AttentionParts &parts, unsigned query,
                                        int64_t devices);

/// How a block of keys, or of what has an element a key, goes `blocks` devices on: each device gets
/// the block of the device with the number of its own plus `blocks`, if there is one.
struct BlockMove {
  std::vector<int64_t> shape; ///< of all blocks, one behind the other
  sharding::TensorSharding source, target;

  /// `source` cuts dimension `dim` into parts of `block` positions.
  BlockMove(llvm::ArrayRef<int64_t> shape, const sharding::TensorSharding &source, unsigned dim,
            int64_t block, int64_t blocks);
};

/// Modelled seconds of what a ring moves; 0 where the queries are not cut.
double ringSeconds(mlir::Operation *op, const sharding::ShardingRule &rule,
                   const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                   sharding::ReshardPlanner &planner);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H
