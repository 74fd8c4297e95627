//===- JoinedCoordinates.cpp - Strategies of fewer coordinates ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node with five choices along each of three coordinates has 125 strategies. Few of
// the best plans need all of them: if neighboring coordinates are equal everywhere,
// the problem has fewer coordinates and is small enough for elimination.
//
//===----------------------------------------------------------------------===//

#include "Dominance.h"
#include "Eliminate.h"
#include "Modes.h"

#include <algorithm>

namespace tessera::solver {

/// More coordinates are joined to two.
constexpr size_t mostAxes = 4;

static size_t numAxesOf(const Source &source) {
  size_t axes = 0;
  for (const Node &node : source.problem.nodes)
    if (!node.coordinates.empty())
      axes = std::max(axes, node.coordinates.front().size());
  return axes;
}

/// Keeps strategies in which every coordinate in `joined` equals the next one. A node without such
/// strategies keeps all.
static Domains joinAxes(const Source &source, const Domains &domains, uint32_t joined) {
  Domains result;
  for (Index i = 0; i < source.numNodes(); ++i) {
    const Coordinates &axes = source.problem.nodes[i].coordinates;
    const Domain &all = domains.at(i);
    Domain kept;
    for (Index s : all) {
      bool areEqual = true;
      for (size_t axis = 0; !axes.empty() && axis + 1 < axes[s].size(); ++axis)
        areEqual &= !(joined >> axis & 1U) || axes[s][axis] == axes[s][axis + 1];
      if (areEqual)
        kept.push_back(s);
    }
    result.of.push_back(result.intern(kept.empty() ? all : kept));
  }
  return result;
}

std::optional<std::vector<int64_t>>
minimiseOverJoinedCoordinates(const Source &source, const KindCosts &costs, const Domains &domains,
                              double mostWork, const Deadline &deadline) {
  size_t numAxes = numAxesOf(source);
  std::optional<std::vector<int64_t>> best;
  if (numAxes < 2 || numAxes > 16)
    return best;
  double bestCost = 0;
  uint32_t everything = (1U << (numAxes - 1)) - 1;
  for (uint32_t apart = 0; apart < everything && !deadline.isOver(); ++apart) {
    bool isOneCut = (apart & (apart - 1)) == 0;
    if (numAxes > mostAxes && !isOneCut)
      continue;
    Domains few = joinAxes(source, domains, everything & ~apart);
    Model model(source, costs, removeDominated(source, costs, std::move(few), false, deadline),
                true);
    Plan plan = makePlan(model, {});
    if (plan.work > mostWork || !plan.split.empty())
      continue;
    std::optional<Optimum> found = eliminate(model, plan, deadline);
    if (!found)
      continue;
    double cost = costOf(source, costs, found->choice);
    if (!best || cost < bestCost) {
      best = found->choice;
      bestCost = cost;
    }
  }
  return best;
}

} // namespace tessera::solver
