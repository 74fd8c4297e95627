//===- Folded.cpp - Classes of equal nodes --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Folded.h"

#include <algorithm>
#include <tuple>

namespace tessera::solver {

/// Partitions nodes so that no edge connects two nodes of a part.
static std::vector<Index> initialClasses(const Source &source, const Domains &domains) {
  std::vector<Index> fingerprints = fingerprintsOf(source, domains.of);
  std::vector<Index> part(fingerprints.size(), 0), taken, result;
  Interner numbers;
  for (Index i = 0; i < source.numNodes(); ++i) {
    taken.clear();
    for (const Neighbour &other : source.neighbours[i])
      if (other.node < i && fingerprints[other.node] == fingerprints[i])
        taken.push_back(part[other.node]);
    while (std::find(taken.begin(), taken.end(), part[i]) != taken.end())
      ++part[i];
    result.push_back(numbers.intern({fingerprints[i], part[i]}).first);
  }
  return result;
}

namespace {

/// Splits classes by the classes of their neighbors, one step further in each round (B.
/// Weisfeiler, A. Lehman, 1968). One part of a class keeps its number, so that a round visits only
/// neighbors of nodes whose class changed in the previous round.
class Refinement {
public:
  Refinement(const Source &source, std::vector<Index> classes)
      : source(source), classOf(std::move(classes)), before(classOf.size(), 0) {
    numClasses = 1 + *std::max_element(classOf.begin(), classOf.end());
    size.assign(numClasses, 0);
    for (Index i = 0; i < source.numNodes(); ++i) {
      ++size[classOf[i]];
      dirty.push_back(i);
    }
  }
  void round();

  const Source &source;
  std::vector<Index> classOf;
  std::vector<Index> before; ///< by node, its class before the last round
  Index numClasses;
  std::vector<Index> dirty; ///< neighbors of nodes that changed in the last round, ascending

private:
  Index signatureOf(Index node);

  Interner signatures;
  std::vector<Index> size; ///< by class
  Key key;
};

Index Refinement::signatureOf(Index node) {
  std::vector<std::pair<Index, Index>> around;
  for (const Neighbour &other : source.neighbours[node])
    around.push_back({classOf[other.node], 2 * other.table + other.isRow});
  std::sort(around.begin(), around.end());
  key = {classOf[node]};
  for (auto [other, edge] : around)
    key.insert(key.end(), {other, edge});
  return signatures.intern(key).first;
}

void Refinement::round() {
  before = classOf;
  // By class, its dirty nodes by signature, in the order of nodes.
  std::vector<std::tuple<Index, Index, Index>> parts;
  parts.reserve(dirty.size());
  for (Index node : dirty)
    parts.push_back({classOf[node], signatureOf(node), node});
  std::sort(parts.begin(), parts.end());
  std::vector<Index> changed;
  for (size_t from = 0; from < parts.size();) {
    Index whole = std::get<0>(parts[from]);
    size_t to = from;
    std::vector<std::pair<size_t, size_t>> runs; // first, end
    for (; to < parts.size() && std::get<0>(parts[to]) == whole; ++to)
      if (to == from || std::get<1>(parts[to]) != std::get<1>(parts[to - 1]))
        runs.push_back({to, to + 1});
      else
        runs.back().second = to + 1;
    // Nodes that are not dirty are one more part, different from all others.
    size_t keeps = runs.size(), largest = 0;
    for (size_t r = 0; r < runs.size() && to - from == static_cast<size_t>(size[whole]); ++r)
      if (runs[r].second - runs[r].first > largest) {
        largest = runs[r].second - runs[r].first;
        keeps = r;
      }
    for (size_t r = 0; r < runs.size(); ++r) {
      if (r == keeps)
        continue;
      auto members = static_cast<Index>(runs[r].second - runs[r].first);
      size[whole] -= members;
      size.push_back(members);
      for (size_t at = runs[r].first; at < runs[r].second; ++at) {
        classOf[std::get<2>(parts[at])] = numClasses;
        changed.push_back(std::get<2>(parts[at]));
      }
      ++numClasses;
    }
    from = to;
  }
  dirty.clear();
  for (Index node : changed)
    for (const Neighbour &other : source.neighbours[node])
      dirty.push_back(other.node);
  std::sort(dirty.begin(), dirty.end());
  dirty.erase(std::unique(dirty.begin(), dirty.end()), dirty.end());
}

} // namespace

Folded::Folded(const Source &source, const KindCosts &costs, const Domains &domains, Index enough)
    : source(source), domains(domains) {
  Refinement refinement(source, initialClasses(source, domains));
  do
    refinement.round();
  while (!refinement.dirty.empty() && refinement.numClasses < enough);
  isWhole = refinement.dirty.empty();
  // Numbers classes in the order of their first node.
  Interner numbers;
  for (Index i = 0; i < source.numNodes(); ++i) {
    auto [number, isNew] = numbers.intern({refinement.classOf[i]});
    classOf.push_back(number);
    if (isNew) {
      Class &added = classes.emplace_back();
      added.first = i;
      for (Index s : domains.at(i))
        added.cost.push_back(costs[source.kind[i]][s]);
    }
    classes[number].count += 1;
  }
  Interner slotNumbers, edgeNumbers, tableNumbers;
  auto slotOf = [&](Index own, Index other, Index table, bool isRow) {
    auto [number, isNew] =
        slotNumbers.intern({classOf[own], 2 * table + isRow, refinement.before[other]});
    if (isNew) {
      slots.push_back({classOf[own], isRow});
      classes[classOf[own]].slots.push_back({number, 0});
    }
    if (own == classes[classOf[own]].first)
      for (auto &[slot, copies] : classes[classOf[own]].slots)
        copies += slot == number;
    return number;
  };
  for (const Source::Pair &pair : source.pairs) {
    Index row = slotOf(pair.u, pair.v, pair.table, true);
    Index column = slotOf(pair.v, pair.u, pair.table, false);
    auto [number, isNew] = edgeNumbers.intern({row, column});
    if (isNew) {
      auto [table, isFirst] =
          tableNumbers.intern({pair.table, domains.of[pair.u], domains.of[pair.v]});
      if (isFirst)
        tables.emplace_back(*source.tables[pair.table], domains.at(pair.u), domains.at(pair.v));
      edges.push_back({row, column, &tables[table], pair.table});
    }
    edges[number].count += 1;
  }
  for (Index e = 0; e < std::ssize(edges); ++e)
    for (Index slot : {edges[e].row, edges[e].column})
      if (edges[e].count > slots[slot].edges) {
        slots[slot].edges = edges[e].count;
        slots[slot].edge = e;
      }
}

std::vector<int64_t> Folded::unfold(const std::vector<Index> &position) const {
  std::vector<int64_t> choice;
  for (Index number : classOf)
    choice.push_back(all(classes[number])[position[number]]);
  return choice;
}

} // namespace tessera::solver
