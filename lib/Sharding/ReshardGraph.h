//===- ReshardGraph.h - Placements of a tensor, and moves -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one graph of reshards: its nodes are placements (closed shardings), its edges
// single collectives. The planner walks from one placement to another, ReshardTable
// from one to all; both ask here which moves there are and what they send.
//
// Parts have the ceiling of their share, so parts of parts are not always parts of the
// whole: 5 over 2x2 is 2, 2, 1, 0 and over 2 it is 3, 2. Where the parts of a move do
// not end at common boundaries, devices outside the group hold what is lacking. Such a
// move is an exchange to a walk without a target, and no edge to one with a target,
// which has the exchange that leads there.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_RESHARDGRAPH_H
#define TESSERA_LIB_SHARDING_RESHARDGRAPH_H

#include "Overlaps.h"

#include "tessera/Sharding/ReshardPlanner.h"

#include <functional>

namespace tessera::sharding {

/// Which moves a walk tries.
struct ReshardWalk {
  AxisList axes; ///< that moves may cut by or make partial
  /// The ends of a walk to one placement, which takes what leads there; null: to any.
  const TensorSharding *source = nullptr, *target = nullptr;
  /// With a target: chains do not lead there, since windows overlap, or axes have no common parts.
  bool isExchangeOnly = false;
  /// With a target: contributions may be scattered where it does not have their axis.
  bool scattersFreely = false;
  /// With a target: an exchange may add contributions up.
  bool exchangesReduce = false;
  /// Without a target: by dimension, how many axes at its front stay.
  std::vector<size_t> staying = {};
  /// Without a target: slices have a price, so that several at once are an edge of their own.
  bool joinsSlices = false;

  /// Whether `axis` may come to cut dimension `dim`.
  bool mayCut(const AxisRef &axis, size_t dim) const;
};

class ReshardGraph {
public:
  /// `mesh` outlives this.
  ReshardGraph(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement)
      : mesh(mesh), shape(std::move(shape)), bytesPerElement(bytesPerElement) {}

  using Visitor = std::function<void(Move)>;
  /// Calls `visit` with the moves from a placement, in a fixed order. Whether a move of kind
  /// `permute` is one is left to `isPermutation`, which takes long to find out.
  void forEachMove(const TensorSharding &from, const ReshardWalk &walk, const Visitor &visit) const;
  /// Whether each device sends its part to at most one other: otherwise it is an exchange.
  bool isPermutation(const Move &move) const;

  /// What a move sends.
  Traffic trafficOf(const Move &move) const;
  /// The same in closed form. Of an exchange at least that: what devices lack beside what they
  /// have, in a message of each part that has some of it.
  Traffic leastTrafficOf(const Move &move) const;

  /// Whether every device finds the elements that it needs within the group of a move between two
  /// cuts, of which one continues the other in each dimension: whether fine parts end where coarse
  /// ones do.
  bool endsMeet(const TensorSharding &a, const TensorSharding &b) const;

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
