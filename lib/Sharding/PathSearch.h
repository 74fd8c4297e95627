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
#include <unordered_map>

namespace tessera::sharding {

/// Shortest path over placements (Dijkstra; every cost is >= 0).
///
/// The search splits every axis into the parts that source and target name, so that each part moves
/// as a whole. It compares states in that form and merges parts only in the resulting moves.
class PathSearch {
public:
  PathSearch(const ReshardProblem &problem, Objective objective, const LinkModel &links);

  /// A move that the path must not use.
  const Move *forbidden = nullptr;

  /// The cheapest chain; empty if `forbidden` leaves none.
  std::optional<ReshardPlan> run();

private:
  /// Of a placement, by the axes that it names.
  struct Hash {
    size_t operator()(const TensorSharding &state) const;
  };
  /// By cost, then by placement, so that a result does not depend on the order of visits.
  struct Entry {
    Cost cost;
    const TensorSharding *state;
    bool operator<(const Entry &other) const {
      return cost != other.cost ? cost < other.cost : *state < *other.state;
    }
  };
  struct Node {
    Cost cost;
    bool done = false;
    Move move;       ///< the last move of the chain
    Traffic traffic; ///< of that move
    double seconds = 0;
  };

  void expand();

  //===--- States --------------------------------------------------------===//

  /// Splits every axis into the parts that source and target name.
  TensorSharding refine(const TensorSharding &sharding);
  void computeParts();
  //===--- Moves ---------------------------------------------------------===//

  /// Adds a move from the current placement.
  void relax(Move move);
  /// Delays a move that takes long to price; it costs at least `leastTrafficOf`.
  void defer(Move move);
  void settle(Move move);

  //===--- The path ------------------------------------------------------===//

  ReshardPlan trace();
  /// Merges axis parts again in a move of the result.
  static void finish(Move &move);

  const ReshardProblem &problem;
  ReshardGraph graph;
  ReshardWalk walk;
  Objective objective;
  const LinkModel &links;
  bool nested = true; ///< whether the splits of every axis have common parts
  AxisList parts;     ///< of every mesh axis
  TensorSharding source, target;
  std::unordered_map<TensorSharding, Node, Hash> best;
  std::set<Entry> queue;              ///< refers to the keys of `best`
  std::multimap<Cost, Move> deferred; ///< moves by the lower bound of their cost
  TensorSharding current;
  Cost currentCost;
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_PATHSEARCH_H
