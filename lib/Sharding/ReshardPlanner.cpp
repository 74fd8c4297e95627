//===- ReshardPlanner.cpp - Chains of collectives for a reshard ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include "PathSearch.h"

#include <algorithm>
#include <cassert>

namespace tessera::sharding {

Traffic trafficOf(const ReshardProblem &problem, const Move &move) {
  int64_t group = move.axes.empty() ? problem.mesh.numDevices() : sizeOf(move.axes);
  return trafficOf(move.kind, group, problem.bytesPerElement, problem.mesh,
                   makeLayout(move.source, problem.shape), problem.mesh,
                   makeLayout(move.target, problem.shape));
}

ReshardPlan planReshard(const ReshardProblem &problem, Objective objective,
                        const LinkModel &links) {
  if (problem.source == problem.target)
    return {};
  std::optional<ReshardPlan> plan = PathSearch(problem, objective, links).run();
  assert(plan && "an all-reduce and an exchange always lead to the target");
  return std::move(*plan);
}

std::optional<ReshardPlan> planRunnerUp(const ReshardProblem &problem, const ReshardPlan &plan,
                                        Objective objective, const LinkModel &links) {
  const Move *dearest = nullptr;
  double most = 0;
  for (const Move &move : plan.moves) {
    Traffic traffic = trafficOf(problem, move);
    double cost = objective == Objective::time
                      ? links.seconds(problem.mesh, move.axes, move.kind, traffic)
                      : static_cast<double>(traffic.wireBytes);
    if (cost > most) {
      dearest = &move;
      most = cost;
    }
  }
  if (!dearest)
    return std::nullopt;
  PathSearch search(problem, objective, links);
  search.forbidden = dearest;
  return search.run();
}

ReshardPlanner::Key ReshardPlanner::keyOf(const ReshardProblem &problem) {
  return {problem.mesh.name, problem.shape, problem.bytesPerElement, problem.source,
          problem.target};
}

const ReshardPlan &ReshardPlanner::plan(const ReshardProblem &problem) {
  Key key = keyOf(problem);
  auto it = known.find(key);
  if (it == known.end())
    it =
        known.emplace(std::move(key), planReshard(problem, objective, linksOf(problem.mesh))).first;
  return it->second;
}

const LinkModel &ReshardPlanner::linksOf(const Mesh &mesh) {
  auto it = links.find(mesh.name);
  if (it == links.end())
    it = links.emplace(mesh.name, topology.linksOf(mesh)).first;
  return it->second;
}

} // namespace tessera::sharding
