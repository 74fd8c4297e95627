//===- ReshardPlanner.h - Chains of collectives for a reshard ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDPLANNER_H
#define TESSERA_SHARDING_RESHARDPLANNER_H

#include "tessera/Sharding/Collective.h"

namespace tessera::sharding {

/// One collective of a plan.
struct Move {
  CollectiveKind kind = CollectiveKind::slice;
  AxisList axes;             ///< whose devices take part together; empty for an exchange
  int64_t dim = 0;           ///< gathered, scattered, sliced or concatenated dimension
  int64_t splitDim = 0;      ///< of an all-to-all
  bool makesPartial = false; ///< a local step from replicate or shard to partial
  ReduceKind reduction = ReduceKind::sum;
  TensorSharding source; ///< before
  TensorSharding target; ///< after
};

/// A tensor to be moved within one mesh.
struct ReshardProblem {
  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  TensorSharding source; ///< closed, canonical
  TensorSharding target; ///< closed, canonical
};

/// A chain of collectives from source to target; empty when they are equal. It reduces first
/// (reduce-scatter where the target is cut by the partial axis), slices, moves axes between
/// dimensions by all-to-all, gathers; where parts do not end at common boundaries, or no single
/// move does it, an exchange sends exactly what is lacking.
std::vector<Move> planReshard(const ReshardProblem &problem);

/// What a chain sends.
Traffic trafficOf(const ReshardProblem &problem, const std::vector<Move> &moves);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDPLANNER_H
