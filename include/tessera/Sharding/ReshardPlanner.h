//===- ReshardPlanner.h - Chains of collectives for a reshard ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDPLANNER_H
#define TESSERA_SHARDING_RESHARDPLANNER_H

#include "tessera/Sharding/Topology.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace tessera::sharding {

/// One collective of a plan.
struct Move {
  CollectiveKind kind = CollectiveKind::slice;
  AxisList axes;             ///< whose devices participate together; empty for an exchange
  int64_t dim = 0;           ///< gathered, scattered, sliced or concatenated dimension
  int64_t splitDim = 0;      ///< of an all-to-all
  bool makesPartial = false; ///< a local step from replicate or shard to partial
  ReduceKind reduction = ReduceKind::sum;
  TensorSharding source; ///< before
  TensorSharding target; ///< after
};

/// Whether the collective of a move leads from its source to its target. Both canonical.
///   all_gather over tp, dim 1     [{dp}, {tp}]          -> [{dp}, {}]
///   reduce_scatter over tp, dim 0 [{}, {}] partial {tp} -> [{tp}, {}]
///   exchange                      anything that adds no contributions
bool leadsToTarget(const Move &move);

/// A reshard of a tensor within one mesh.
struct ReshardProblem {
  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  TensorSharding source; ///< closed, canonical
  TensorSharding target; ///< closed, canonical
};

/// A chain of collectives and its cost.
struct ReshardPlan {
  std::vector<Move> moves; ///< empty if source and target hold the same elements
  Traffic traffic;
  double seconds = 0;
};

class ReshardTable;

/// Plans reshards for one objective on one machine, and caches its plans. Threads may share it;
/// returned references are valid as long as the planner.
///
/// A plan is a shortest path over placements. The steps from a placement are local slices,
/// reduce-scatters, all-reduces over merged axes, all-to-alls of the axes at the end of a
/// dimension, gathers, permutations of whole parts, and an exchange that sends exactly the missing
/// elements directly to the target. Steps whose parts do not end at common boundaries (uneven cuts)
/// are excluded.
class ReshardPlanner {
public:
  explicit ReshardPlanner(Objective objective = Objective::time, Topology topology = {});
  ReshardPlanner(const ReshardPlanner &) = delete; ///< its tables refer to it
  ReshardPlanner &operator=(const ReshardPlanner &) = delete;
  ~ReshardPlanner();

  const ReshardPlan &plan(const ReshardProblem &problem);
  /// The links along the axes of a mesh.
  const LinkModel &linksOf(const Mesh &mesh);
  /// The times of all reshards of tensors of one shape on a mesh.
  ReshardTable &table(const Mesh &mesh, const std::vector<int64_t> &shape, int64_t bytesPerElement);
  /// Whether this planner is for that objective and the same links.
  bool isFor(Objective wanted, const Topology &machine) const;

private:
  using Key = std::tuple<size_t, std::vector<int64_t>, int64_t, TensorSharding, TensorSharding>;
  size_t numberOf(const Mesh &mesh);
  Key keyOf(const ReshardProblem &problem);

  const Objective objective;
  const Topology topology;
  std::mutex mutex;
  /// Known meshes, by value: modules of a context may give different meshes one name.
  struct KnownMesh {
    Mesh mesh;
    LinkModel links;
  };
  std::deque<KnownMesh> meshes;
  std::map<Key, ReshardPlan> known;
  std::map<std::tuple<size_t, std::vector<int64_t>, int64_t>, std::unique_ptr<ReshardTable>> tables;
};

/// The planners of all users of an owner, by objective and machine, so that equal reshards are
/// planned once. Threads may share it.
class ReshardCache {
public:
  ReshardPlanner &planner(Objective objective, const Topology &topology);

private:
  std::mutex mutex;
  std::deque<ReshardPlanner> planners;
};

/// The plan for one problem, without a cache.
ReshardPlan planReshard(const ReshardProblem &problem, Objective objective = Objective::time,
                        const LinkModel &links = {});

/// The cheapest plan without the most expensive step of `plan`; empty if that plan sends nothing,
/// or no other chain leads to the target.
std::optional<ReshardPlan> planRunnerUp(const ReshardProblem &problem, const ReshardPlan &plan,
                                        Objective objective, const LinkModel &links);

/// The traffic of one step.
Traffic trafficOf(const ReshardProblem &problem, const Move &move);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDPLANNER_H
