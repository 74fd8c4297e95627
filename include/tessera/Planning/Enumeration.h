//===- Enumeration.h - All candidates of a function -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_ENUMERATION_H
#define TESSERA_PLANNING_ENUMERATION_H

#include "tessera/Planning/Candidates.h"
#include "tessera/Planning/StrategyProblem.h"

#include <map>

namespace tessera::dist {

/// Propagation's plan: the baseline.
struct PropagatedPlan {
  std::vector<sharding::TensorSharding> shardings; ///< by tensor, closed: of arguments and carries
  std::vector<Strategy> strategies;                ///< by node of the graph
};

/// Enumerates the candidates of each op and each tensor that the annotations allow. Propagation's
/// plan is always among them.
class Enumeration : public StrategySource {
public:
  struct Options {
    bool fullyUseDevices = true; ///< contractions use every mesh axis if their sizes allow
    size_t mostStrategies = 256;
  };

  /// `graph` before propagation. All must outlive this.
  Enumeration(const PropagationGraph &graph, const PropagatedPlan &propagated,
              sharding::ReshardPlanner &planner, Options options);

  OfOp ofOp(size_t node) override;
  OfTensor ofTensor(size_t tensor) override;
  solver::Coordinates labelsOf(const ShardingRefs &shardings, const sharding::Mesh &mesh) override;

private:
  OfOp enumerate(const RuleNode &node, const Strategy &propagated);
  bool allowsResults(const RuleNode &node, const Strategy &strategy) const;
  std::vector<int64_t> keyOf(const RuleNode &node, const Strategy &propagated) const;
  const AxisGroups &groupsOf(const sharding::Mesh &mesh);

  const PropagationGraph &graph;
  const PropagatedPlan &propagated;
  sharding::ReshardPlanner &planner;
  const Options options;
  std::map<const sharding::Mesh *, AxisGroups> axisGroups; ///< looked up, never iterated
  std::map<std::vector<int64_t>, OfOp> known;              ///< by keyOf
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_ENUMERATION_H
