//===- PathSearch.h - The shortest path over placements ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_PATHSEARCH_H
#define TESSERA_LIB_SHARDING_PATHSEARCH_H

#include "Boxes.h"

#include "tessera/Sharding/ReshardPlanner.h"

#include <map>
#include <optional>
#include <set>

namespace tessera::sharding {

/// Shortest path over placements (Dijkstra; every cost is >= 0).
///
/// Inside the search every axis is cut into the parts that source and target name, so that a part
/// is moved whole; states are compared in that form and merged only when a move leaves the planner.
class PathSearch {
public:
  PathSearch(const ReshardProblem &problem, Objective objective, const LinkModel &links);

  /// A step that the path must not use.
  const Move *forbidden = nullptr;

  /// The cheapest chain; nothing when what is forbidden leaves none.
  std::optional<ReshardPlan> run();

private:
  struct Node {
    Cost cost;
    bool done = false;
    Move move; ///< that led here
  };

  void expand();

  //===--- States --------------------------------------------------------===//

  /// Cuts every axis into the parts that source and target name.
  TensorSharding refine(const TensorSharding &sharding);
  void computeParts();
  /// Whether `axis` may come to cut dimension `dim` on the way.
  bool mayCut(const AxisRef &axis, size_t dim) const;

  //===--- Moves ---------------------------------------------------------===//

  /// Whether every device finds what it needs among those that differ from it in `axes` only.
  bool staysInGroup(const AxisList &axes, const TensorSharding &next) const;
  /// Whether every device's part lies within its part of the next: uneven parts of parts are not
  /// always parts of the whole, 5 over 2x2 is 2, 2, 1, 0 and over 2 it is 3, 2.
  bool keepsOwn(const TensorSharding &next) const;
  /// What is left of boxes without another.
  static std::vector<Box> without(std::vector<Box> boxes, const Box &hole);
  /// Enters a step from the current placement.
  void relax(Move move);
  /// Enters it later; `least` is no more than what it sends.
  void defer(Move move, const Traffic &least);
  void settle(Move move);
  /// Whether the target has these contributions, too.
  bool isKept(const PartialAxis &part) const;

  /// All-reduces every partial axis of one reduction that the target does not have, in one group;
  /// and each alone, since another may be better scattered.
  void reduceAll();
  void relaxAllReduce(const AxisList &axes, ReduceKind kind);
  /// Scatters one partial axis, or a run of several of one reduction, behind what cuts a dimension.
  void reduceScatter();
  void scatterFrom(size_t dim, const PartialAxis &part, AxisList &axes);
  /// A partial axis may also be scattered where nobody has it, when parts divide.
  bool mayScatter(const AxisRef &axis, size_t dim) const;
  void slice();
  void relaxSlice(size_t dim, const AxisList &axes);
  /// Moves the last axes of one dimension behind those of another.
  void allToAll();
  void gather();
  /// Everything that the target does not have, of several dimensions at once: one collective.
  void gatherSeveral();
  /// Where all that differs is which device has which part, each device gets one whole part: the
  /// target's axes in one dimension are a rearrangement, or others of the same sizes.
  void permute();
  void permuteTo(const TensorSharding &next);
  bool isPermutation(const TensorSharding &next) const;
  Traffic leastOfExchange(const TensorSharding &next) const;
  void exchangeToTarget();
  /// Local: a shard is its device's contribution to the whole; a replicated value stays at
  /// coordinate 0.
  void makePartials();

  //===--- The path ------------------------------------------------------===//

  ReshardPlan trace();
  /// A step as it leaves the planner: with whole axes again.
  static void finish(Move &move);

  const ReshardProblem &problem;
  Objective objective;
  const LinkModel &links;
  bool nested = true; ///< whether the cuts of every axis have common parts
  AxisList parts;     ///< of every mesh axis
  AxisList inPlay;    ///< parts that source or target use
  TensorSharding source, target;
  std::map<TensorSharding, Node> best;
  std::set<std::pair<Cost, TensorSharding>> queue;
  std::multimap<Cost, Move> deferred; ///< steps by what they cost at least
  TensorSharding current;
  Cost currentCost;
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_PATHSEARCH_H
