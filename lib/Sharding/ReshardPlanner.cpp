//===- ReshardPlanner.cpp - Chains of collectives for a reshard -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include "PathSearch.h"

#include "tessera/Sharding/ReshardTable.h"

#include <algorithm>
#include <cassert>

namespace tessera::sharding {

Traffic trafficOf(const ReshardProblem &problem, const Move &move) {
  return ReshardGraph(problem.mesh, problem.shape, problem.bytesPerElement).trafficOf(move);
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
  const Move *mostExpensive = nullptr;
  double most = 0;
  for (const Move &move : plan.moves) {
    Traffic traffic = trafficOf(problem, move);
    double cost = objective == Objective::time
                      ? links.seconds(problem.mesh, move.axes, move.kind, traffic)
                      : static_cast<double>(traffic.wireBytes);
    if (cost > most) {
      mostExpensive = &move;
      most = cost;
    }
  }
  if (!mostExpensive)
    return std::nullopt;
  PathSearch search(problem, objective, links);
  search.forbidden = mostExpensive;
  return search.run();
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

ReshardPlanner::ReshardPlanner(Objective objective, Topology topology)
    : objective(objective), topology(std::move(topology)) {}
ReshardPlanner::~ReshardPlanner() = default;

bool ReshardPlanner::isFor(Objective wanted, const Topology &machine) const {
  auto isSame = [](const LinkClass &a, const LinkClass &b) {
    return a.name == b.name && a.devices == b.devices && a.link == b.link;
  };
  return objective == wanted && topology.axisLinks == machine.axisLinks &&
         topology.algorithms == machine.algorithms &&
         std::equal(topology.links.begin(), topology.links.end(), machine.links.begin(),
                    machine.links.end(), isSame);
}

size_t ReshardPlanner::numberOf(const Mesh &mesh) {
  auto it = std::find_if(meshes.begin(), meshes.end(),
                         [&](const KnownMesh &known) { return known.mesh == mesh; });
  if (it == meshes.end())
    it = meshes.insert(it, {mesh, topology.linksOf(mesh)});
  return it - meshes.begin();
}

ReshardPlanner::Key ReshardPlanner::keyOf(const ReshardProblem &problem) {
  return {numberOf(problem.mesh), problem.shape, problem.bytesPerElement, problem.source,
          problem.target};
}

const ReshardPlan &ReshardPlanner::plan(const ReshardProblem &problem) {
  std::lock_guard lock(mutex);
  Key key = keyOf(problem);
  auto it = known.find(key);
  if (it == known.end()) {
    const LinkModel &links = meshes[std::get<0>(key)].links;
    it = known.emplace(std::move(key), planReshard(problem, objective, links)).first;
  }
  return it->second;
}

const LinkModel &ReshardPlanner::linksOf(const Mesh &mesh) {
  std::lock_guard lock(mutex);
  return meshes[numberOf(mesh)].links;
}

ReshardTable &ReshardPlanner::table(const Mesh &mesh, const std::vector<int64_t> &shape,
                                    int64_t bytesPerElement) {
  std::lock_guard lock(mutex);
  const KnownMesh &known = meshes[numberOf(mesh)];
  std::unique_ptr<ReshardTable> &own = tables[{numberOf(mesh), shape, bytesPerElement}];
  if (!own)
    own = std::make_unique<ReshardTable>(known.mesh, shape, bytesPerElement, *this, known.links);
  return *own;
}

ReshardPlanner &ReshardCache::planner(Objective objective, const Topology &topology) {
  std::lock_guard lock(mutex);
  for (ReshardPlanner &known : planners)
    if (known.isFor(objective, topology))
      return known;
  return planners.emplace_back(objective, topology);
}

} // namespace tessera::sharding
