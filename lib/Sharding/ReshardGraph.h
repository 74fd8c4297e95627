//===- ReshardGraph.h - Placements of a tensor, and moves -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph of reshards: nodes are placements (closed shardings), edges are single
// collectives. The planner searches paths from one placement to another, ReshardTable
// from one to all; both get the moves and their traffic here.
//
// Parts have the ceiling of their share, so parts of parts are not always parts of the
// whole: 5 over 2x2 is 2, 2, 1, 0 and over 2 it is 3, 2. If the parts of a move do not
// end at common boundaries, devices outside the group hold missing elements. Without a
// target, such a move is an exchange. With a target it is not an edge, since there is
// always an exchange to the target.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_RESHARDGRAPH_H
#define TESSERA_LIB_SHARDING_RESHARDGRAPH_H

#include "Overlaps.h"

#include "tessera/Sharding/ReshardPlanner.h"

#include <functional>

namespace tessera::sharding {

/// The moves that a walk tries.
struct ReshardWalk {
  AxisList axes; ///< that moves may cut by or make partial
  /// The ends of a walk to one placement, which tries only moves towards it; null: to any.
  const TensorSharding *source = nullptr, *target = nullptr;
  /// With a target: only an exchange leads there, since windows overlap or axes have no common
  /// parts.
  bool isExchangeOnly = false;
  /// With a target: contributions may be scattered over axes that do not cut the target.
  bool scattersFreely = false;
  /// With a target: an exchange may add up contributions.
  bool exchangesReduce = false;
  /// Without a target: by dimension, the number of its first axes that stay.
  std::vector<size_t> staying = {};
  /// Without a target: slices have a cost, so that several at once are a separate edge.
  bool joinsSlices = false;

  /// Whether `axis` may cut dimension `dim`.
  bool mayCut(const AxisRef &axis, size_t dim) const;
};

class ReshardGraph {
public:
  /// `mesh` must outlive this.
  ReshardGraph(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement)
      : mesh(mesh), shape(std::move(shape)), bytesPerElement(bytesPerElement) {}

  /// On larger meshes prices do not depend on the boxes of pairs of devices, whose number grows with
  /// the square of the devices: an exchange costs its least traffic, and none is a permutation.
  static constexpr int64_t kMostDevicesByBoxes = 256;

  using Visitor = std::function<void(Move)>;
  /// Calls `visit` with the moves from a placement, in a fixed order. Moves of kind `permute` are
  /// unchecked, since `isPermutation` is slow.
  void forEachMove(const TensorSharding &from, const ReshardWalk &walk, const Visitor &visit) const;
  /// Whether each device sends its part to at most one other; otherwise the move is an exchange.
  /// False on large meshes.
  bool isPermutation(const Move &move) const;

  /// The traffic of a move.
  Traffic trafficOf(const Move &move) const;
  /// The same in closed form. For an exchange a lower bound: the elements that devices lack, in one
  /// message from each part that has some of them.
  Traffic leastTrafficOf(const Move &move) const;

  /// Whether, in a move between two cuts of which one continues the other in each dimension, the
  /// group of every device holds all elements that it needs: fine parts end where coarse parts do.
  bool areAligned(const TensorSharding &a, const TensorSharding &b) const;

private:
  friend class MovesFrom;
  std::vector<Overlap> overlaps(const TensorSharding &from, const TensorSharding &to) const;
  bool isEven(const TensorSharding &sharding) const;

  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_RESHARDGRAPH_H
