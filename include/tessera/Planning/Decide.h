//===- Decide.h - Choose the cut of each op's loops -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_DECIDE_H
#define TESSERA_PLANNING_DECIDE_H

#include "tessera/Planning/PropagationGraph.h"
#include "tessera/Planning/Strategies.h"

#include "tessera/Sharding/Topology.h"

namespace tessera::dist {

/// The shardings of all tensors, and the strategies of all ops.
struct Decision {
  /// By tensor, from the graph's pool; partial if a reduction is cut.
  std::vector<const sharding::TensorSharding *> tensors;
  std::vector<std::shared_ptr<const Strategy>> strategies; ///< by node; null without a result
  /// By tensor: the sharding shared by several users, from the graph's pool; null, or an empty
  /// list, if each user reshards from the producer's sharding.
  std::vector<const sharding::TensorSharding *> places;
  bool isRecut = false; ///< whether an op has a cut that no tensor of it had
};

/// After propagation, decides the cut of each op and the shardings of its results. Where claims
/// contest an axis, the strategies of all these ops are chosen jointly, by the least modelled time
/// of their work and of the reshards between them. By bytes, latencies do not count. With `recuts`,
/// cuts that no tensor of an op has are candidates, too, where the plan sends much.
Decision decide(const PropagationGraph &graph, const sharding::Topology &topology,
                sharding::Objective objective = sharding::Objective::time, bool recuts = true);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_DECIDE_H
