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

struct DecideOptions {
  /// By bytes, candidates are not left out because they take more messages.
  sharding::Objective objective = sharding::Objective::time;
  bool recuts =
      true; ///< cuts that no tensor of an op has are candidates, where the plan sends much
  bool latencies = false; ///< each reshard takes its latencies, as if none were joined with others
};

/// After propagation, decides the cut of each op and the shardings of its results. Where claims
/// contest an axis, the strategies of all these ops are chosen jointly, by the least modelled time
/// of their work and of the reshards between them.
Decision decide(const PropagationGraph &graph, const sharding::Topology &topology,
                const DecideOptions &options = {});

} // namespace tessera::dist

#endif // TESSERA_PLANNING_DECIDE_H
