//===- PathSearch.h - The shortest path over placements ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_PATHSEARCH_H
#define TESSERA_LIB_SHARDING_PATHSEARCH_H

#include "ReshardGraph.h"

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
  //===--- Moves ---------------------------------------------------------===//

  /// Enters a move from the current placement.
  void relax(Move move);
  /// Enters it later, where that takes long to price; it costs no less than `leastTrafficOf` says.
  void defer(Move move);
  void settle(Move move);

  //===--- The path ------------------------------------------------------===//

  ReshardPlan trace();
  /// A step as it leaves the planner: with whole axes again.
  static void finish(Move &move);

  const ReshardProblem &problem;
  ReshardGraph graph;
  ReshardWalk walk;
  Objective objective;
  const LinkModel &links;
  bool nested = true; ///< whether the cuts of every axis have common parts
  AxisList parts;     ///< of every mesh axis
  TensorSharding source, target;
  std::map<TensorSharding, Node> best;
  std::set<std::pair<Cost, TensorSharding>> queue;
  std::multimap<Cost, Move> deferred; ///< steps by what they cost at least
  TensorSharding current;
  Cost currentCost;
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_PATHSEARCH_H
