//===- AttentionRing.h - Ring attention -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ring attention (Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers", 2023): keys
// and values are sharded like the queries, and a device attends to one block of them after the
// other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H
#define TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H

#include "tessera/Dialect/Ext/IR/AttentionDomain.h"
#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ShardingRule.h"

#include <optional>

namespace tessera::ext {

/// The loop over queries that a ring shards together with the keys: one with as many positions as
/// there are keys, else the longest. None if no loop over queries has several positions, or if a
/// window of keys is exchanged instead.
std::optional<unsigned> ringCandidateOf(const AttentionParts &parts);
/// The same for an op that has the attribute `ring`.
std::optional<unsigned> ringQueryOf(const AttentionParts &parts);

/// Groups attentions for the choice of rings: those of one kind have the same extents of loops,
/// forward and backward.
class AttentionKinds {
public:
  /// The number of the kind of an attention; kinds are numbered from 0 in the order of requests.
  int64_t numberOf(const AttentionParts &parts);

private:
  llvm::SmallVector<llvm::SmallVector<int64_t>> known;
};

/// One turn of a ring: block i of the queries meets the block of keys at `distance` before its own,
/// modulo the number of devices (the ring closes).
struct RingTurn {
  int64_t distance; ///< from 1 to devices - 1
  bool behind;      ///< whether a device sees the block i - distance
  bool ahead;       ///< whether a device sees the block i - distance + devices
};
/// The turns in which a device sees a key. Blocks that a mask of indices hides from all devices
/// have no turn, nor do blocks beyond the last key.
llvm::SmallVector<RingTurn> ringTurnsOf(const AttentionParts &parts, unsigned query,
                                        int64_t devices);

/// The move of a block of keys, or of a tensor with one element per key: each device gets the block
/// of the device whose number is its own plus `blocks`, if there is one.
struct BlockMove {
  std::vector<int64_t> shape; ///< of all blocks, concatenated
  sharding::TensorSharding source, target;

  /// `source` shards dimension `dim` into parts of `block` positions.
  BlockMove(llvm::ArrayRef<int64_t> shape, const sharding::TensorSharding &source, unsigned dim,
            int64_t block, int64_t blocks);
};

/// Whether a ring can be balanced: there are as many keys as queries, and a query sees the keys up
/// to its own position and no others.
bool mayBeBalanced(const AttentionParts &parts, unsigned query);

/// The move of chunks of a result back to its blocks.
struct ChunkMove {
  std::vector<int64_t> shape; ///< of the chunks, in the order of the sequence
  sharding::TensorSharding source, target;
};

/// The chunks of a balanced ring: of 2n chunks, device i of n has chunk i (its head) and chunk 2n -
/// 1 - i (its tail). With a causal mask, a block of queries on device i sees i + 1 blocks of keys,
/// but head and tail together see 2n + 1 chunks of keys for every i.
///
///   4 devices   0: 0, 7   1: 1, 6   2: 2, 5   3: 3, 4
struct RingChunks {
  int64_t devices, size; ///< `size`: positions of a chunk

  RingChunks(int64_t positions, int64_t devices)
      : devices(devices), size(sharding::ceilDiv(positions, 2 * devices)) {}

  int64_t positions() const { return 2 * devices * size; }
  bool isUneven(int64_t extent) const { return positions() != extent; }
  /// The sharding of a tensor by chunks instead of by `blocks` along `dim`.
  sharding::TensorSharding of(const sharding::TensorSharding &blocks, unsigned dim,
                              bool isTail) const;
  /// From chunks to blocks of `block` positions; heads are in the first half, tails in the second.
  ChunkMove home(llvm::ArrayRef<int64_t> shape, const sharding::TensorSharding &blocks,
                 unsigned dim, int64_t block, bool isTail) const;
};

/// Modelled seconds of the moves of a ring, and the scores that a device computes per query of its
/// block; 0 if the queries are not sharded.
struct RingCost {
  double seconds = 0;
  double scoresPerQuery = 0;
};
RingCost costOfRing(mlir::Operation *op, const sharding::ShardingRule &rule,
                    const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                    sharding::ReshardPlanner &planner, bool isBalanced);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H
