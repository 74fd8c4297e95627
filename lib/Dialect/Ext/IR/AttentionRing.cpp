//===- AttentionRing.cpp - Blocks of keys that arrive in turn --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of n devices, device i has block i of the queries and of the keys. In turn s it gets
// the block of device i - s, or i - s + n, straight from its owner: the same bytes as a
// block that every device hands on, but no turn waits for the one before, blocks that a
// mask hides are not sent at all, and what a device contributes to the gradient of a
// block goes home in one move.
//
//            turn 1   turn 2   turn 3         causal: turn 1   turn 2   turn 3
//   block 0  3        2        1                      -        -        -
//   block 1  0        3        2                      0        -        -
//   block 2  1        0        3                      1        0        -
//   block 3  2        1        0                      2        1        0
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Ext/IR/AttentionRing.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::TensorSharding;

std::optional<unsigned> ext::ringCandidateOf(const AttentionParts &parts) {
  const AttentionDomain &domain = parts.domain;
  if (keyBandOf(parts))
    return std::nullopt;
  std::optional<unsigned> longest;
  for (unsigned query : domain.query) {
    if (domain.extents[query] == domain.extents[domain.key])
      return query;
    if (domain.extents[query] > 1 && (!longest || domain.extents[query] > domain.extents[*longest]))
      longest = query;
  }
  return longest;
}

std::optional<unsigned> ext::ringQueryOf(const AttentionParts &parts) {
  return parts.op->hasAttr("ring") ? ringCandidateOf(parts) : std::nullopt;
}

namespace {

/// Devices from `first` to `last`.
struct DeviceRange {
  int64_t first, last;

  /// Leaves out those where slope * device + constant is positive.
  void keepNotPositive(int64_t slope, int64_t constant) {
    if (slope > 0)
      last = std::min(last, llvm::divideFloorSigned(-constant, slope));
    else if (slope < 0)
      first = std::max(first, llvm::divideCeilSigned(constant, -slope));
    else if (constant > 0)
      last = first - 1;
  }
  bool isEmpty() const { return first > last; }
};

} // namespace

SmallVector<RingTurn> ext::ringTurnsOf(const AttentionParts &parts, unsigned query,
                                       int64_t devices) {
  std::optional<KeyBand> visible = visibleKeysOf(parts, query);
  int64_t queries = parts.domain.extents[query], keys = parts.domain.extents[parts.domain.key];
  int64_t rows = sharding::ceilDiv(queries, devices), block = sharding::ceilDiv(keys, devices);
  // Whether one of the devices sees a key of the block that is `ahead` after its own.
  auto sees = [&](DeviceRange range, int64_t ahead) {
    range.keepNotPositive(rows, 1 - queries);               // it has a query
    range.keepNotPositive(block, ahead * block + 1 - keys); // the block has a key
    if (visible) { // its first key from its last query, its last key from its first query
      int64_t slope = block - rows, first = ahead * block;
      range.keepNotPositive(slope, first - (rows - 1) - visible->last);
      range.keepNotPositive(-slope, visible->first - first - (block - 1));
    }
    return !range.isEmpty();
  };
  SmallVector<RingTurn> turns;
  for (int64_t distance = 1; distance < devices; ++distance) {
    RingTurn turn{distance, sees({distance, devices - 1}, -distance),
                  sees({0, distance - 1}, devices - distance)};
    if (turn.behind || turn.ahead)
      turns.push_back(turn);
  }
  return turns;
}

BlockMove::BlockMove(ArrayRef<int64_t> shape, const TensorSharding &source, unsigned dim,
                     int64_t block, int64_t blocks)
    : shape(shape.vec()), source(source), target(source) {
  target.windows.push_back({dim, block, blocks * block, block});
}

double ext::ringSeconds(Operation *op, const sharding::ShardingRule &rule,
                        const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                        sharding::ReshardPlanner &planner) {
  AttentionParts parts = partsOf(op);
  std::optional<unsigned> query = ringQueryOf(parts);
  if (!query || axes[parts.factors()[*query]].empty())
    return 0;
  unsigned key = parts.domain.key;
  int64_t devices = sharding::sizeOf(axes[parts.factors()[*query]]);
  int64_t block = sharding::ceilDiv(parts.domain.extents[key], devices);
  double seconds = 0;
  auto add = [&](Type type, Type element, AffineMap map, const TensorSharding &sharding,
                 int64_t blocks) {
    unsigned dim = *map.getResultPosition(getAffineDimExpr(key, op->getContext()));
    BlockMove move(cast<RankedTensorType>(type).getShape(), sharding, dim, block, blocks);
    move.shape[dim] = devices * block;
    seconds += planner
                   .plan({mesh, move.shape, dist::bytesPerElement(element),
                          sharding::canonical(move.source), sharding::canonical(move.target)})
                   .seconds;
  };
  for (const RingTurn &turn : ringTurnsOf(parts, *query, devices))
    for (unsigned index : {1, 2}) {
      // The two of a turn go at once, to different devices; the nearer one stands for both.
      int64_t blocks = turn.behind ? -turn.distance : devices - turn.distance;
      Type type = op->getOperand(index).getType();
      add(type, getElementTypeOrSelf(type), parts.maps[index],
          sharding::operandSharding(rule, index, axes), blocks);
      if (isa<AttentionBackwardOp>(op))
        add(type, parts.scoreType(), parts.maps[index], sharding::resultSharding(rule, index, axes),
            -blocks);
    }
  return seconds;
}
