//===- Dominance.cpp - Removal of dominated strategies --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dominance.h"
#include "InnerLoops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_set>

namespace tessera::solver {
namespace {

/// More rounds remove almost nothing.
constexpr int maxRounds = 12;

/// Largest differences over the other end of an edge, n x n: [a][b] is the most that b costs more
/// than a.
struct Differences {
  std::vector<double> worst;
  double scale = 0; ///< largest magnitude of the table, for rounding
};

class Dominance {
public:
  Dominance(const Source &source, const KindCosts &costs, Domains domains, bool keepMemory,
            const Deadline &deadline)
      : source(source), costs(costs), domains(std::move(domains)), given(this->domains.of),
        keepMemory(keepMemory), deadline(deadline) {}

  Domains run() {
    std::vector<char> active(source.numNodes(), 1);
    for (int round = 0; round < maxRounds; ++round)
      if (!runRound(active))
        break;
    equalise();
    return std::move(domains);
  }

private:
  const Differences &differences(Index table, bool isRow, Index own, Index other);
  Index reduce(Index node);
  bool runRound(std::vector<char> &active);
  void equalise();

  const Source &source;
  const KindCosts &costs;
  Domains domains;
  std::vector<Index> given; ///< by node, its domain at the start
  bool keepMemory;
  const Deadline &deadline;
  Interner differenceNumbers, situationNumbers;
  std::vector<Differences> known;
  std::vector<Index> reduced; ///< by situation: the rest of the domain
};

const Differences &Dominance::differences(Index table, bool isRow, Index own, Index other) {
  auto [number, isNew] = differenceNumbers.intern({table, isRow, own, other});
  if (!isNew)
    return known[number];
  Differences &result = known.emplace_back();
  const EdgeTable &costs = *source.tables[table];
  Matrix matrix;
  matrix.rows = static_cast<Index>(domains.sets[own].size());
  matrix.columns = static_cast<Index>(domains.sets[other].size());
  for (Index a : domains.sets[own])
    for (Index s : domains.sets[other]) {
      matrix.cost.push_back(isRow ? costs.at(a, s) : costs.at(s, a));
      result.scale = std::max(result.scale, std::abs(matrix.cost.back()));
    }
  result.worst = worstDifferences(matrix, true);
  return result;
}

/// The undominated part of a node's domain, given the neighbors' domains. Nodes in the same
/// situation share it.
Index Dominance::reduce(Index node) {
  Index own = domains.of[node];
  Key situation{source.kind[node], own};
  for (const Neighbour &other : source.neighbours[node])
    situation.insert(situation.end(), {other.table, other.isRow, domains.of[other.node]});
  auto [number, isNew] = situationNumbers.intern(situation);
  if (!isNew)
    return reduced[number];
  reduced.push_back(own);
  Domain set = domains.sets[own];
  auto n = static_cast<Index>(set.size());
  if (n == 1 || deadline.isOver())
    return own;
  const std::vector<double> &cost = costs[source.kind[node]];
  std::vector<double> worst(static_cast<size_t>(n) * n);
  double scale = 0;
  for (Index a = 0; a < n; ++a) {
    scale = std::max(scale, std::abs(cost[set[a]]));
    for (Index b = 0; b < n; ++b)
      worst[static_cast<size_t>(a) * n + b] = cost[set[b]] - cost[set[a]];
  }
  for (const Neighbour &other : source.neighbours[node]) {
    const Differences &edge = differences(other.table, other.isRow, own, domains.of[other.node]);
    scale += edge.scale;
    addRows(worst.data(), n * n, worst.data(), edge.worst.data());
  }
  // Rounding may distinguish equal strategies: the sums have a handful of terms.
  double tolerance = 1e-15 * scale;
  const Node &subject = source.problem.nodes[node];
  std::vector<char> dropped(n, 0);
  Domain left;
  // Of equal strategies the first is kept.
  for (Index a = n - 1; a >= 0; --a) {
    for (Index b = 0; b < n && !dropped[a]; ++b)
      dropped[a] = b != a && !dropped[b] && worst[static_cast<size_t>(a) * n + b] <= tolerance &&
                   (!keepMemory || subject.memoryOf(set[b]) <= subject.memoryOf(set[a]));
    if (!dropped[a])
      left.push_back(set[a]);
  }
  std::reverse(left.begin(), left.end());
  return reduced[number] = domains.intern(left);
}

/// Updates all nodes from the same state: a dominated strategy stays dominated when neighbors lose
/// strategies, because the maximum is then taken over fewer.
bool Dominance::runRound(std::vector<char> &active) {
  std::vector<Index> next = domains.of;
  std::vector<char> touched(active.size(), 0);
  bool changed = false;
  for (Index i = 0; i < source.numNodes(); ++i) {
    if (!active[i])
      continue;
    next[i] = reduce(i);
    if (next[i] == domains.of[i])
      continue;
    changed = true;
    touched[i] = 1;
    for (const Neighbour &other : source.neighbours[i])
      touched[other.node] = 1;
  }
  domains.of = std::move(next);
  active = std::move(touched);
  return changed;
}

/// The first and the last layer lose a few strategies more than the others. They are restored, so
/// that all layers are equal; additional strategies do no harm.
void Dominance::equalise() {
  std::vector<Index> fingerprints = fingerprintsOf(source, given);
  std::vector<Domain> united;
  for (Index i = 0; i < source.numNodes(); ++i) {
    if (fingerprints[i] == std::ssize(united)) {
      united.push_back(domains.at(i));
      continue;
    }
    Domain &domain = united[fingerprints[i]];
    if (domain == domains.at(i))
      continue;
    Domain both;
    std::set_union(domain.begin(), domain.end(), domains.at(i).begin(), domains.at(i).end(),
                   std::back_inserter(both));
    domain = std::move(both);
  }
  for (Index i = 0; i < source.numNodes(); ++i)
    domains.of[i] = domains.intern(united[fingerprints[i]]);
}

} // namespace

std::vector<double> worstDifferences(const Matrix &matrix, bool isRow) {
  Index n = isRow ? matrix.rows : matrix.columns, others = isRow ? matrix.columns : matrix.rows;
  std::vector<double> worst(static_cast<size_t>(n) * n, -std::numeric_limits<double>::infinity());
  std::vector<double> column(n);
  // Strategies that require the same placement have the same column.
  std::unordered_set<std::string> seen;
  for (Index s = 0; s < others; ++s) {
    for (Index a = 0; a < n; ++a)
      column[a] =
          matrix.cost[isRow ? static_cast<size_t>(a) * others + s : static_cast<size_t>(s) * n + a];
    if (seen.emplace(reinterpret_cast<const char *>(column.data()), n * sizeof(double)).second)
      maxDifferences(worst.data(), column.data(), n);
  }
  return worst;
}

Domains removeDominated(const Source &source, const KindCosts &costs, Domains domains,
                        bool keepMemory, const Deadline &deadline) {
  return Dominance(source, costs, std::move(domains), keepMemory, deadline).run();
}

} // namespace tessera::solver
