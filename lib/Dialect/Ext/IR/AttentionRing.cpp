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
  for (unsigned query : domain.query)
    if (domain.extents[query] == domain.extents[domain.key])
      return query;
  return std::nullopt;
}

std::optional<unsigned> ext::ringQueryOf(const AttentionParts &parts) {
  return parts.op->hasAttr("ring") ? ringCandidateOf(parts) : std::nullopt;
}

SmallVector<RingTurn> ext::ringTurnsOf(const AttentionParts &parts, unsigned query, int64_t block,
                                       int64_t devices) {
  std::optional<KeyBand> visible = visibleKeysOf(parts, query);
  auto sees = [&](int64_t blocks) { // a key of the block that is so many after the query's own
    return !visible || (blocks * block - (block - 1) <= visible->last &&
                        blocks * block + (block - 1) >= visible->first);
  };
  SmallVector<RingTurn> turns;
  for (int64_t distance = 1; distance < devices; ++distance)
    if (RingTurn turn{distance, sees(-distance), sees(devices - distance)};
        turn.behind || turn.ahead)
      turns.push_back(turn);
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
  for (const RingTurn &turn : ringTurnsOf(parts, *query, block, devices))
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
