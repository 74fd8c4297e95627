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

/// Tells attentions apart that may be rings or not: those of one kind have loops of the same extents,
/// forward and backward.
class AttentionKinds {
public:
  /// The number of the kind of an attention; kinds count from 0 in the order in which they are asked
  /// for.
  int64_t numberOf(const AttentionParts &parts);

private:
  llvm::SmallVector<llvm::SmallVector<int64_t>> known;
};

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

/// Whether a ring can be balanced: there are as many keys as queries, and a query sees those up to
/// its own and no other.
bool mayBeBalanced(const AttentionParts &parts, unsigned query);

/// How chunks of a tensor go home.
struct ChunkMove {
  std::vector<int64_t> shape; ///< of the chunks, in the order of the sequence
  sharding::TensorSharding source, target;
};

/// The chunks of a balanced ring: of 2n, device i of n has chunk i, its head, and 2n - 1 - i, its
/// tail. Of device i of a causal mask, a block of queries sees i + 1 blocks of keys, but head and
/// tail together 2n + 1 chunks of keys, whatever i is.
///
///   4 devices   0: 0, 7   1: 1, 6   2: 2, 5   3: 3, 4
struct RingChunks {
  int64_t devices, size; ///< positions of a chunk

  RingChunks(int64_t positions, int64_t devices)
      : devices(devices), size(sharding::ceilDiv(positions, 2 * devices)) {}

  int64_t positions() const { return 2 * devices * size; }
  bool isUneven(int64_t extent) const { return positions() != extent; }
  /// A tensor that `blocks` cuts along `dim`, in chunks of it.
  sharding::TensorSharding of(const sharding::TensorSharding &blocks, unsigned dim,
                              bool isTail) const;
  /// From chunks to blocks of `block` positions; heads are before the middle, tails behind it.
  ChunkMove home(llvm::ArrayRef<int64_t> shape, const sharding::TensorSharding &blocks,
                 unsigned dim, int64_t block, bool isTail) const;
};

/// Modelled seconds of what a ring moves, and the scores that a device computes in place of each
/// one of its queries; 0 where the queries are not cut.
struct RingCost {
  double seconds = 0;
  double scoresPerQuery = 0;
};
RingCost costOfRing(mlir::Operation *op, const sharding::ShardingRule &rule,
                    const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                    sharding::ReshardPlanner &planner, bool isBalanced);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONRING_H
