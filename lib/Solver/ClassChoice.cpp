//===- ClassChoice.cpp - One strategy for all nodes of a class ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClassChoice.h"
#include "Dominance.h"
#include "Eliminate.h"

#include <algorithm>
#include <cmath>

namespace tessera::solver {

/// Growth of limits on excess.
constexpr double growth = 16;
/// Pairs of strategies compared per entry of work: more would take longer than they save.
constexpr double comparedPerWork = 0.05;

ClassChoice::ClassChoice(const Folded &folded) : folded(folded), chosen(folded.classes.size(), 0) {
  best = costOf(chosen);
}

double ClassChoice::costOf(const std::vector<Index> &position) const {
  double sum = 0;
  for (size_t c = 0; c < position.size(); ++c)
    sum += folded.classes[c].count * folded.classes[c].cost[position[c]];
  for (const Folded::Edge &edge : folded.edges)
    sum += edge.count * folded.edgeCost(edge, position[folded.rowClass(edge)],
                                        position[folded.columnClass(edge)]);
  return sum;
}

void ClassChoice::consider(std::vector<Index> position) {
  if (double cost = costOf(position); cost < best) {
    best = cost;
    chosen = std::move(position);
  }
}

bool ClassChoice::choose(const std::vector<Domain> &candidates, double mostWork) {
  // Classes with one candidate are added to the costs of their neighbors; the others form a
  // smaller problem.
  std::vector<Index> next(chosen.size()), number(chosen.size(), -1);
  Problem problem;
  for (size_t c = 0; c < candidates.size(); ++c) {
    next[c] = candidates[c].front();
    if (candidates[c].size() == 1)
      continue;
    number[c] = static_cast<Index>(problem.nodes.size());
    Node &node = problem.nodes.emplace_back();
    for (Index a : candidates[c])
      node.cost.push_back(folded.classes[c].count * folded.classes[c].cost[a]);
  }
  for (const Folded::Edge &edge : folded.edges) {
    Index u = folded.rowClass(edge), v = folded.columnClass(edge);
    if (number[u] < 0 && number[v] < 0)
      continue;
    EdgeTable table{std::ssize(candidates[u]), std::ssize(candidates[v]), {}};
    table.cost.reserve(static_cast<size_t>(table.rows * table.columns));
    const EdgeTable &whole = *folded.source.tables[edge.whole];
    const Domain &rows = folded.all(folded.classes[u]), &columns = folded.all(folded.classes[v]);
    for (Index a : candidates[u])
      for (Index b : candidates[v])
        table.cost.push_back(edge.count * whole.at(rows[a], columns[b]));
    if (number[u] >= 0 && number[v] >= 0) {
      problem.edges.push_back({number[u], number[v], std::ssize(problem.tables)});
      problem.tables.push_back(std::move(table));
      continue;
    }
    std::vector<double> &cost = problem.nodes[std::max(number[u], number[v])].cost;
    for (size_t a = 0; a < cost.size(); ++a)
      cost[a] += table.cost[a];
  }
  if (!problem.nodes.empty()) {
    Deadline deadline(1e9);
    Source source(problem);
    KindCosts costs = solver::costsOf(source);
    Domains all = allStrategies(source);
    PlanOptions planOptions;
    planOptions.prune = false;
    planOptions.workLimit = mostWork;
    Model model(source, costs, all);
    Plan plan = makePlan(model, planOptions);
    if (plan.work > mostWork) {
      double compared = 0;
      for (const Node &node : problem.nodes)
        compared += static_cast<double>(node.cost.size() * node.cost.size());
      if (compared > comparedPerWork * mostWork)
        return false;
      model = Model(source, costs, removeDominated(source, costs, all, false, deadline));
      plan = makePlan(model, planOptions);
      if (plan.work > mostWork)
        return false;
    }
    std::optional<Optimum> found = eliminate(model, plan, deadline);
    for (size_t c = 0; c < next.size(); ++c)
      if (number[c] >= 0)
        next[c] = candidates[c][found->choice[number[c]]];
  }
  consider(std::move(next));
  return true;
}

void ClassChoice::chooseWithin(const std::vector<std::vector<double>> &excess, double bound,
                               double firstLimit, double goodGap, double mostWork,
                               const Deadline &deadline) {
  // Limits are relative to the cost of one of the repeated layers.
  double layers = 1;
  for (const Folded::Class &each : folded.classes)
    layers = std::max(layers, each.count);
  size_t before = 0;
  for (double limit = firstLimit * std::abs(bound) / layers; !deadline.isOver(); limit *= growth) {
    std::vector<Domain> candidates(excess.size());
    size_t count = 0;
    for (size_t c = 0; c < excess.size(); ++c) {
      double least = *std::min_element(excess[c].begin(), excess[c].end());
      for (Index a = 0; a < std::ssize(excess[c]); ++a)
        if (excess[c][a] - least <= limit)
          candidates[c].push_back(a);
      count += candidates[c].size();
    }
    if (count == before && limit < best - bound)
      continue;
    before = count;
    if (!choose(candidates, mostWork) || limit >= best - bound ||
        best - bound <= goodGap * std::abs(best))
      return;
  }
}

void ClassChoice::sweepAxes(double mostWork) {
  size_t numAxes = 0;
  auto axesOf = [&](size_t c) -> const Coordinates & {
    return folded.source.problem.nodes[folded.classes[c].first].coordinates;
  };
  for (size_t c = 0; c < chosen.size(); ++c)
    if (!axesOf(c).empty())
      numAxes = std::max(numAxes, axesOf(c).front().size());
  for (size_t axis = 0; axis < numAxes; ++axis) {
    std::vector<Domain> candidates;
    for (size_t c = 0; c < chosen.size(); ++c) {
      const Coordinates &axes = axesOf(c);
      Domain &domain = candidates.emplace_back();
      if (axes.empty() || axis >= axes.front().size()) {
        domain.push_back(chosen[c]);
        continue;
      }
      const Domain &all = folded.all(folded.classes[c]);
      const std::vector<int64_t> &now = axes[all[chosen[c]]];
      for (Index a = 0; a < std::ssize(all); ++a) {
        std::vector<int64_t> other = axes[all[a]];
        other[axis] = now[axis];
        if (other == now)
          domain.push_back(a);
      }
    }
    choose(candidates, mostWork);
  }
}

} // namespace tessera::solver
