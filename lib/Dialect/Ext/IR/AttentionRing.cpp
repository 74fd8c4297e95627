//===- AttentionRing.cpp - Ring attention ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of n devices, device i has block i of the queries and of the keys. In turn s it gets the block of
// device i - s, or i - s + n, directly from its owner. This moves the same bytes as passing blocks
// from device to device, but no turn waits for the previous one, blocks that a mask hides are not
// sent, and the contributions of a device to the gradient of a block return in one move.
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

int64_t AttentionKinds::numberOf(const AttentionParts &parts) {
  // The maps of query, key and value give the loop of an extent.
  SmallVector<int64_t> kind(parts.domain.extents);
  for (AffineMap map : ArrayRef(parts.maps).take_front(3)) {
    kind.push_back(-1);
    for (AffineExpr expr : map.getResults())
      kind.push_back(cast<AffineDimExpr>(expr).getPosition());
  }
  const auto *found = llvm::find(known, kind);
  int64_t number = found - known.begin();
  if (found == known.end())
    known.push_back(kind);
  return number;
}

namespace {

/// Devices from `first` to `last`.
struct DeviceRange {
  int64_t first, last;

  /// Removes devices with slope * device + constant > 0.
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
  // Whether a device in the range sees a key of the block that is `ahead` blocks after its own.
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

bool ext::mayBeBalanced(const AttentionParts &parts, unsigned query) {
  int64_t keys = parts.domain.extents[parts.domain.key];
  if (parts.domain.extents[query] != keys)
    return false;
  std::optional<KeyBand> visible = visibleKeysOf(parts, query);
  return visible && visible->first <= 1 - keys && visible->last <= 0;
}

TensorSharding RingChunks::of(const TensorSharding &blocks, unsigned dim, bool isTail) const {
  TensorSharding result = blocks;
  result.windows.push_back(
      {dim, isTail ? -size : size, isTail ? (2 * devices - 1) * size : 0, size});
  return result;
}

ChunkMove RingChunks::home(ArrayRef<int64_t> shape, const TensorSharding &blocks, unsigned dim,
                           int64_t block, bool isTail) const {
  ChunkMove move{shape.vec(), blocks, blocks};
  move.shape[dim] = devices * size;
  if (isTail)
    move.source.windows.push_back({dim, -size, (devices - 1) * size, size});
  move.target.windows.push_back({dim, block, isTail ? -devices * size : 0, block});
  return move;
}

namespace {

/// Sums the costs of the moves of a ring.
class RingPrice {
public:
  RingPrice(Operation *op, const sharding::ShardingRule &rule, const sharding::FactorAxes &axes,
            const sharding::Mesh &mesh, sharding::ReshardPlanner &planner, unsigned query)
      : op(op), parts(partsOf(op)), rule(rule), axes(axes), mesh(mesh), planner(planner),
        query(query), key(parts.domain.key), keys(parts.domain.extents[key]),
        devices(sharding::sizeOf(axes[parts.factors()[query]])) {}

  RingCost plain() {
    int64_t block = sharding::ceilDiv(keys, devices);
    SmallVector<RingTurn> turns = ringTurnsOf(parts, query, devices);
    for (const RingTurn &turn : turns)
      // The two moves of a turn run concurrently, to different devices; the cost is that of the
      // nearer one.
      addTurn(turn.behind ? -turn.distance : devices - turn.distance, block);
    return {seconds, static_cast<double>(block * (1 + static_cast<int64_t>(turns.size())))};
  }

  RingCost balanced() {
    RingChunks chunks(keys, devices);
    for (int64_t distance = 1; distance < devices; ++distance) {
      addTurn(-distance, chunks.size);
      addTurn(devices - distance, chunks.size);
    }
    for (unsigned index = 0; index < op->getNumOperands(); ++index)
      if (index == 1 || index == 2 || hasLoop(parts.maps[index], query)) {
        auto type = cast<RankedTensorType>(op->getOperand(index).getType());
        TensorSharding source = sharding::operandSharding(rule, index, axes);
        unsigned dim = dimOf(index, index == 1 || index == 2 ? key : query);
        for (bool isTail : {false, true})
          add(type.getShape(), type.getElementType(), source, chunks.of(source, dim, isTail));
      }
    for (unsigned result = 0; result < op->getNumResults(); ++result) {
      auto type = cast<RankedTensorType>(op->getResult(result).getType());
      unsigned map = op->getNumOperands() + result;
      unsigned dim = dimOf(map, hasLoop(parts.maps[map], query) ? query : key);
      for (bool isTail : {false, true}) {
        ChunkMove move = chunks.home(type.getShape(), sharding::resultSharding(rule, result, axes),
                                     dim, sharding::ceilDiv(keys, devices), isTail);
        add(move.shape, type.getElementType(), move.source, move.target);
      }
    }
    // 2n + 1 pairs of chunks, for two chunks of queries.
    return {seconds, static_cast<double>(chunks.size * (2 * devices + 1)) / 2};
  }

private:
  unsigned dimOf(unsigned map, unsigned loop) const {
    return *parts.maps[map].getResultPosition(getAffineDimExpr(loop, op->getContext()));
  }

  void add(ArrayRef<int64_t> shape, Type element, const TensorSharding &source,
           const TensorSharding &target) {
    seconds += planner
                   .plan({mesh, shape.vec(), dist::bytesPerElement(element),
                          sharding::canonical(source), sharding::canonical(target)})
                   .seconds;
  }

  /// Keys and values move by `blocks` blocks; in the backward op their gradients move back by as
  /// many.
  void addTurn(int64_t blocks, int64_t size) {
    for (unsigned index : {1, 2}) {
      auto type = cast<RankedTensorType>(op->getOperand(index).getType());
      SmallVector<int64_t> shape(type.getShape());
      unsigned dim = dimOf(index, key);
      shape[dim] = devices * size;
      BlockMove move(shape, sharding::operandSharding(rule, index, axes), dim, size, blocks);
      add(shape, type.getElementType(), move.source, move.target);
      if (!isa<AttentionBackwardOp>(op))
        continue;
      BlockMove back(shape, sharding::resultSharding(rule, index, axes), dim, size, -blocks);
      add(shape, parts.scoreType(), back.source, back.target);
    }
  }

  Operation *op;
  AttentionParts parts;
  const sharding::ShardingRule &rule;
  const sharding::FactorAxes &axes;
  const sharding::Mesh &mesh;
  sharding::ReshardPlanner &planner;
  unsigned query, key;
  int64_t keys, devices;
  double seconds = 0;
};

} // namespace

RingCost ext::costOfRing(Operation *op, const sharding::ShardingRule &rule,
                         const sharding::FactorAxes &axes, const sharding::Mesh &mesh,
                         sharding::ReshardPlanner &planner, bool isBalanced) {
  AttentionParts parts = partsOf(op);
  std::optional<unsigned> query = ringQueryOf(parts);
  if (!query || axes[parts.factors()[*query]].empty())
    return {};
  RingPrice price(op, rule, axes, mesh, planner, *query);
  return isBalanced ? price.balanced() : price.plain();
}
