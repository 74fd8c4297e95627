//===- Enumeration.cpp - All candidates of a function ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Enumeration.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

Enumeration::Enumeration(const PropagationGraph &graph, const PropagatedPlan &propagated,
                         ReshardPlanner &planner, Options options)
    : graph(graph), propagated(propagated), planner(planner), options(options) {}

const AxisGroups &Enumeration::groupsOf(const Mesh &mesh) {
  auto [it, isNew] = axisGroups.try_emplace(&mesh);
  if (isNew)
    it->second = groupAxes(graph, mesh, planner.linksOf(mesh));
  return it->second;
}

solver::Coordinates Enumeration::labelsOf(const ShardingRefs &shardings, const Mesh &mesh) {
  std::vector<AxisLabels> labels;
  for (const TensorSharding *sharding : shardings)
    labels.push_back(dist::labelsOf(*sharding, mesh.numAxes()));
  return labels;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether the annotations of an op's results allow a strategy.
bool Enumeration::allowsResults(const RuleNode &node, const Strategy &strategy) const {
  for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
    if (node.tensors[i] >= 0 &&
        !allows(graph.tensors[node.tensors[i]], shardingUnder(node, i, strategy)))
      return false;
  return true;
}

/// The key for caching the candidates of an op. Ops with the same rule have tensors of the same
/// types.
std::vector<int64_t> Enumeration::keyOf(const RuleNode &node, const Strategy &propagated) const {
  std::vector<int64_t> key;
  auto addAddress = [&](const void *address) {
    key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(address)));
  };
  auto addAxes = [&](const AxisList &axes) {
    key.push_back(static_cast<int64_t>(axes.size()));
    for (const AxisRef &axis : axes)
      key.insert(key.end(), {axis.axis, axis.pre, axis.size});
  };
  auto addOperands = [&](const auto &operands) {
    key.push_back(static_cast<int64_t>(operands.size()));
    key.insert(key.end(), operands.begin(), operands.end());
  };
  addAddress(&meshOf(graph, node));
  addAddress(&node.rule);
  key.push_back(options.fullyUseDevices && combinesTensors(node.op));
  for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
    if (node.tensors[i] >= 0)
      addAddress(graph.keep(graph.tensors[node.tensors[i]].given));
  for (const AxisList &axes : propagated.factors)
    addAxes(axes);
  for (const Forward &forward : propagated.forwards) {
    addAxes({forward.partial.axis});
    key.push_back(static_cast<int64_t>(forward.partial.kind));
    addOperands(forward.operands);
  }
  key.push_back(-1);
  for (const SmallVector<int64_t> &operands : forwardSetsOf(node))
    addOperands(operands);
  return key;
}

/// The number of devices among which a strategy divides the work.
static int64_t devicesUsed(const Strategy &strategy) {
  int64_t devices = 1;
  for (const AxisList &axes : strategy.factors)
    devices *= sizeOf(axes);
  return devices;
}

/// Keeps only the strategies of a contraction that use the most devices.
static void keepFullest(Candidates &candidates) {
  int64_t most = 1;
  for (const Strategy &strategy : candidates.strategies)
    most = std::max(most, devicesUsed(strategy));
  Candidates kept;
  for (size_t s = 0; s < candidates.strategies.size(); ++s)
    if (devicesUsed(candidates.strategies[s]) == most) {
      kept.strategies.push_back(candidates.strategies[s]);
      kept.labels.push_back(candidates.labels[s]);
    }
  candidates = std::move(kept);
}

StrategySource::OfOp Enumeration::enumerate(const RuleNode &node, const Strategy &propagated) {
  const Mesh &mesh = meshOf(graph, node);
  Candidates candidates = candidatesOf(node, mesh, groupsOf(mesh), options.mostStrategies);
  if (options.fullyUseDevices && combinesTensors(node.op))
    keepFullest(candidates);
  std::vector<Strategy> strategies;
  std::vector<AxisLabels> allLabels;
  for (size_t s = 0; s < candidates.strategies.size(); ++s)
    if (allowsResults(node, candidates.strategies[s])) {
      strategies.push_back(std::move(candidates.strategies[s]));
      allLabels.push_back(std::move(candidates.labels[s]));
    }
  if (!llvm::is_contained(strategies, propagated)) {
    strategies.push_back(propagated);
    AxisLabels labels(mesh.numAxes(), kWhole);
    for (size_t f = 0; f < propagated.factors.size(); ++f)
      for (const AxisRef &axis : propagated.factors[f])
        labels[axis.axis] = static_cast<int64_t>(f);
    for (const Forward &forward : propagated.forwards)
      labels[forward.partial.axis.axis] = static_cast<int64_t>(node.rule.factors.size());
    allLabels.push_back(std::move(labels));
  }
  return {std::make_shared<const std::vector<Strategy>>(std::move(strategies)),
          std::move(allLabels)};
}

StrategySource::OfOp Enumeration::ofOp(size_t index) {
  const RuleNode &node = graph.nodes[index];
  OfOp &candidates = known[keyOf(node, propagated.strategies[index])];
  if (!candidates.strategies)
    candidates = enumerate(node, propagated.strategies[index]);
  return candidates;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

StrategySource::OfTensor Enumeration::ofTensor(size_t tensor) {
  const TensorState &state = graph.tensors[tensor];
  Placements placements = placementsOf(state, groupsOf(*state.mesh), options.mostStrategies);
  OfTensor candidates;
  for (TensorSharding &sharding : placements.shardings)
    candidates.shardings.push_back(graph.keep(std::move(sharding)));
  const TensorSharding *own = graph.keep(canonical(propagated.shardings[tensor]));
  if (!llvm::is_contained(candidates.shardings, own)) {
    candidates.shardings.push_back(own);
    placements.labels.push_back(dist::labelsOf(*own, state.mesh->numAxes()));
  }
  candidates.labels = std::move(placements.labels);
  return candidates;
}
