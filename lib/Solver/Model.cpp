//===- Model.cpp - The problem with equal parts stored once ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace tessera::solver {

/// The bytes of numbers: costs count as equal if they are bitwise equal.
static std::string_view bitsOf(const std::vector<double> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(double)};
}

static std::vector<Index> findKinds(const Problem &problem, std::vector<Index> &representative) {
  std::unordered_map<std::string_view, Index> contents;
  auto contentOf = [&](const std::vector<double> &values) {
    return contents.try_emplace(bitsOf(values), static_cast<Index>(contents.size())).first->second;
  };
  Interner kinds;
  std::vector<Index> kind;
  std::vector<int64_t> pins = problem.pinned();
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node &node = problem.nodes[i];
    auto [number, isNew] =
        kinds.intern({contentOf(node.cost), contentOf(node.memory), static_cast<Index>(pins[i])});
    if (isNew)
      representative.push_back(static_cast<Index>(i));
    kind.push_back(number);
  }
  return kind;
}

Source::Source(const Problem &problem) : problem(problem) {
  kind = findKinds(problem, representative);
  std::map<std::pair<int64_t, std::string_view>, Index> byContent;
  std::vector<Index> numberOf;
  for (const EdgeTable &table : problem.tables) {
    auto [it, isNew] =
        byContent.try_emplace({table.rows, bitsOf(table.cost)}, static_cast<Index>(tables.size()));
    if (isNew)
      tables.push_back(&table);
    numberOf.push_back(it->second);
  }
  // Edges between the same nodes; the first edge determines the direction of the pair.
  std::unordered_map<uint64_t, size_t> pairAt;
  std::vector<Key> parts; // by pair: table, turned, table, turned, …
  for (const Edge &edge : problem.edges) {
    auto u = static_cast<Index>(edge.from), v = static_cast<Index>(edge.to);
    uint64_t ends =
        static_cast<uint64_t>(std::min(u, v)) << 32 | static_cast<uint32_t>(std::max(u, v));
    auto [it, isNew] = pairAt.try_emplace(ends, pairs.size());
    if (isNew) {
      pairs.push_back({u, v, numberOf[edge.table]});
      parts.emplace_back();
    }
    parts[it->second].push_back(numberOf[edge.table]);
    parts[it->second].push_back(pairs[it->second].u != u);
  }
  Interner sums;
  std::vector<Index> sumTable;
  std::vector<std::pair<size_t, Key>> toAdd;
  for (size_t p = 0; p < pairs.size(); ++p) {
    if (parts[p].size() == 2)
      continue;
    auto [number, isNew] = sums.intern(parts[p]);
    if (isNew)
      toAdd.push_back({p, parts[p]});
    pairs[p].table = static_cast<Index>(tables.size()) + number;
  }
  merged.reserve(toAdd.size());
  for (auto &[p, list] : toAdd) {
    EdgeTable sum = *tables[list[0]];
    for (size_t k = 2; k < list.size(); k += 2) {
      const EdgeTable &other = *tables[list[k]];
      for (int64_t r = 0; r < sum.rows; ++r)
        for (int64_t c = 0; c < sum.columns; ++c)
          sum.cost[r * sum.columns + c] += list[k + 1] ? other.at(c, r) : other.at(r, c);
    }
    merged.push_back(std::move(sum));
  }
  for (const EdgeTable &table : merged)
    tables.push_back(&table);
  neighbours.resize(kind.size());
  for (const Pair &pair : pairs) {
    neighbours[pair.u].push_back({pair.v, pair.table, true});
    neighbours[pair.v].push_back({pair.u, pair.table, false});
  }
}

Index Domains::intern(const Domain &set) {
  auto [number, isNew] = numbers.intern(set);
  if (isNew)
    sets.push_back(set);
  return number;
}

Domains allStrategies(const Source &source) {
  Domains domains;
  std::vector<Index> ofKind;
  std::vector<int64_t> pins = source.problem.pinned();
  for (Index k = 0; k < source.numKinds(); ++k) {
    Domain all;
    if (int64_t pin = pins[source.representative[k]]; pin >= 0)
      all.push_back(static_cast<Index>(pin));
    else
      for (Index s = 0; s < source.nodeOfKind(k).numStrategies(); ++s)
        all.push_back(s);
    ofKind.push_back(domains.intern(all));
  }
  for (Index k : source.kind)
    domains.of.push_back(ofKind[k]);
  return domains;
}

std::vector<Index> fingerprintsOf(const Source &source, const std::vector<Index> &salt) {
  Interner numbers;
  std::vector<Index> fingerprints;
  std::vector<std::pair<Index, Index>> edges;
  Key key;
  for (Index i = 0; i < source.numNodes(); ++i) {
    edges.clear();
    for (const Neighbour &other : source.neighbours[i])
      edges.push_back({other.table, other.isRow});
    std::sort(edges.begin(), edges.end());
    key = {source.kind[i], salt[i]};
    for (auto [table, isRow] : edges)
      key.insert(key.end(), {table, isRow});
    fingerprints.push_back(numbers.intern(key).first);
  }
  return fingerprints;
}

KindCosts costsOf(const Source &source, double pricePerByte) {
  KindCosts costs;
  for (Index k = 0; k < source.numKinds(); ++k) {
    const Node &node = source.nodeOfKind(k);
    std::vector<double> &cost = costs.emplace_back(node.cost);
    if (pricePerByte != 0)
      for (size_t s = 0; s < cost.size(); ++s)
        cost[s] += pricePerByte * node.memoryOf(static_cast<int64_t>(s));
  }
  return costs;
}

Model::Model(const Source &source, const KindCosts &costs, Domains kept, bool contract)
    : domains(std::move(kept)), neighbours(source.numNodes()), isContracted(contract) {
  Interner vectorNumbers, matrixNumbers;
  std::vector<std::pair<Index, Index>> fixed; // table, side, and the only strategy of the other end
  Key key;
  for (Index i = 0; i < source.numNodes(); ++i) {
    fixed.clear();
    for (const Neighbour &other : source.neighbours[i])
      if (isOut(other.node))
        fixed.push_back({2 * other.table + other.isRow, domains.at(other.node).front()});
    std::sort(fixed.begin(), fixed.end());
    key = {source.kind[i], domains.of[i]};
    for (auto [table, strategy] : fixed)
      key.insert(key.end(), {table, strategy});
    auto [number, isNew] = vectorNumbers.intern(key);
    unary.push_back(number);
    if (!isNew)
      continue;
    std::vector<double> &vector = vectors.emplace_back();
    for (Index s : domains.at(i)) {
      vector.push_back(costs[source.kind[i]][s]);
      for (auto [table, strategy] : fixed)
        vector.back() += table % 2 ? source.tables[table / 2]->at(s, strategy)
                                   : source.tables[table / 2]->at(strategy, s);
    }
  }
  auto matrixOf = [&](Index table, Index u, Index v) {
    auto [number, isNew] = matrixNumbers.intern({table, domains.of[u], domains.of[v]});
    if (isNew) {
      Matrix &matrix = matrices.emplace_back();
      matrix.rows = size(u);
      matrix.columns = size(v);
      matrix.cost.reserve(static_cast<size_t>(matrix.rows) * matrix.columns);
      const EdgeTable &from = *source.tables[table];
      for (Index a : domains.at(u))
        for (Index b : domains.at(v))
          matrix.cost.push_back(from.at(a, b));
    }
    return number;
  };
  for (Index i = 0; i < numNodes(); ++i)
    if (isOut(i))
      constant += costs[source.kind[i]][domains.at(i).front()];
  for (const Source::Pair &pair : source.pairs) {
    if (isOut(pair.u) && isOut(pair.v))
      constant +=
          source.tables[pair.table]->at(domains.at(pair.u).front(), domains.at(pair.v).front());
    if (isOut(pair.u) || isOut(pair.v))
      continue;
    Index matrix = matrixOf(pair.table, pair.u, pair.v);
    pairs.push_back({pair.u, pair.v, matrix});
    neighbours[pair.u].push_back({pair.v, matrix, true});
    neighbours[pair.v].push_back({pair.u, matrix, false});
  }
}

} // namespace tessera::solver
