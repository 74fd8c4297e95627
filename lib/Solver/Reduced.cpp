//===- Reduced.cpp - A problem without its thin parts ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduced.h"

#include "DistinctRows.h"
#include "InnerLoops.h"

#include <algorithm>
#include <limits>

namespace tessera::solver {

/// The first element of a table's key.
enum TableKind : Index { leaf, bridged, added };

Index Reduced::leafOf(const Source::Pair &pair) {
  auto [number, isNew] =
      tableNumbers.intern({leaf, pair.table, domains.of[pair.u], domains.of[pair.v]});
  if (!isNew)
    return number;
  const EdgeTable &from = *source.tables[pair.table];
  Matrix &table = tables.emplace_back();
  table.rows = static_cast<Index>(domains.at(pair.u).size());
  table.columns = static_cast<Index>(domains.at(pair.v).size());
  table.cost.reserve(static_cast<size_t>(table.rows) * table.columns);
  for (Index a : domains.at(pair.u))
    for (Index b : domains.at(pair.v))
      table.cost.push_back(from.at(a, b));
  return number;
}

std::vector<double> Reduced::oriented(Index table, bool isRow) const {
  const Matrix &from = tables[table];
  return isRow ? from.cost : transposed(from.cost, from.columns);
}

/// The number of a node's present costs.
Index Reduced::costsOf(Index node) {
  std::sort(incoming[node].begin(), incoming[node].end());
  Key key{source.kind[node], domains.of[node]};
  key.insert(key.end(), incoming[node].begin(), incoming[node].end());
  auto [number, isNew] = vectorNumbers.intern(key);
  if (!isNew)
    return number;
  std::vector<double> &vector = vectors.emplace_back();
  for (Index s : domains.at(node))
    vector.push_back(kindCosts[source.kind[node]][s]);
  for (Index message : incoming[node])
    addRows(vector.data(), static_cast<int32_t>(vector.size()), vector.data(),
            messages[message].data());
  return number;
}

/// Adds the minimum over a node's strategies to a neighbor's costs: with these costs, or without
/// any (-1) if the node has one strategy.
void Reduced::sendTo(const Neighbour &user, Index node, Index costs) {
  auto [number, isNew] = messageNumbers.intern({costs, user.table, user.isRow});
  if (isNew) {
    std::vector<double> table = oriented(user.table, user.isRow);
    std::vector<double> own = costs < 0 ? std::vector<double>(1, 0.0) : vectors[costs];
    size_t columns = table.size() / own.size();
    std::vector<double> &least =
        messages.emplace_back(columns, std::numeric_limits<double>::infinity());
    minOfShifted(least.data(), static_cast<int32_t>(columns), table.data(),
                 static_cast<int32_t>(columns), own.data(), static_cast<int32_t>(own.size()));
    workLeft -= static_cast<double>(table.size());
  }
  incoming[user.node].push_back(number);
  std::erase_if(around[user.node], [&](const Neighbour &other) { return other.node == node; });
}

/// Replaces a node with two neighbors by a table between them.
bool Reduced::bridge(Index node) {
  Neighbour from = around[node][0], to = around[node][1];
  if (from.node > to.node)
    std::swap(from, to);
  Index costs = costsOf(node);
  double work = 1;
  for (Index each : {node, from.node, to.node})
    work *= static_cast<double>(domains.at(each).size());
  Key key{bridged, costs, from.table, from.isRow, to.table, to.isRow};
  if (work > workLeft && !tableNumbers.contains(key))
    return false;
  auto [number, isNew] = tableNumbers.intern(key);
  if (isNew) {
    size_t inner = vectors[costs].size();
    Matrix table;
    table.rows = static_cast<Index>(domains.at(from.node).size());
    table.columns = static_cast<Index>(domains.at(to.node).size());
    // Strategies with the same layout of a tensor have the same sums.
    std::vector<double> rows = oriented(from.table, !from.isRow),
                        columns = oriented(to.table, !to.isRow);
    std::vector<Index> rowOf = keepDistinct(rows, inner), columnOf = keepDistinct(columns, inner);
    size_t numRows = rows.size() / inner, numColumns = columns.size() / inner;
    columns = transposed(columns, inner);
    std::vector<double> sums(numRows * numColumns, std::numeric_limits<double>::infinity());
    for (size_t r = 0; r < numRows; ++r) {
      double *row = rows.data() + r * inner;
      addRows(row, static_cast<int32_t>(inner), row, vectors[costs].data());
      minOfShifted(sums.data() + r * numColumns, static_cast<int32_t>(numColumns), columns.data(),
                   static_cast<int32_t>(numColumns), row, static_cast<int32_t>(inner));
    }
    workLeft -= static_cast<double>(numRows * numColumns * inner);
    table.cost.reserve(rowOf.size() * columnOf.size());
    for (Index r : rowOf)
      for (Index c : columnOf)
        table.cost.push_back(sums[r * numColumns + c]);
    tables.push_back(std::move(table));
  }
  eliminated.push_back({node, costs, around[node]});
  for (Index end : {from.node, to.node})
    std::erase_if(around[end], [&](const Neighbour &other) { return other.node == node; });
  connect(from.node, to.node, number);
  return true;
}

/// Adds a table with the strategies of `u` as rows.
void Reduced::connect(Index u, Index v, Index table) {
  auto known = std::find_if(around[u].begin(), around[u].end(),
                            [&](const Neighbour &other) { return other.node == v; });
  if (known == around[u].end()) {
    around[u].push_back({v, table, true});
    around[v].push_back({u, table, false});
    return;
  }
  auto [number, isNew] = tableNumbers.intern({added, table, known->table, known->isRow});
  if (isNew) {
    Matrix sum;
    sum.rows = tables[table].rows;
    sum.columns = tables[table].columns;
    sum.cost = oriented(known->table, known->isRow);
    for (size_t x = 0; x < sum.cost.size(); ++x)
      sum.cost[x] += tables[table].cost[x];
    tables.push_back(std::move(sum));
  }
  *known = {v, number, true};
  for (Neighbour &other : around[v])
    if (other.node == u)
      other = {u, number, false};
}

bool Reduced::remove(Index node) {
  size_t degree = around[node].size();
  bool isDecided = domains.at(node).size() == 1;
  if (degree == 2 && !isDecided)
    return bridge(node);
  if (degree > 1 && !isDecided)
    return false;
  Index costs = costsOf(node);
  if (degree == 0 || isDecided)
    eliminatedCost += *std::min_element(vectors[costs].begin(), vectors[costs].end());
  for (const Neighbour &user : around[node])
    sendTo(user, node, isDecided ? -1 : costs);
  eliminated.push_back({node, costs, around[node]});
  return true;
}

Reduced::Reduced(const Source &source, const KindCosts &costs, const Domains &domains,
                 double mostWork)
    : source(source), kindCosts(costs), domains(domains), workLeft(mostWork),
      isEliminated(source.numNodes(), 0), around(source.numNodes()), incoming(source.numNodes()) {
  for (const Source::Pair &pair : source.pairs) {
    Index table = leafOf(pair);
    around[pair.u].push_back({pair.v, table, true});
    around[pair.v].push_back({pair.u, table, false});
  }
  std::vector<Index> next(source.numNodes());
  for (Index i = 0; i < source.numNodes(); ++i)
    next[i] = i;
  while (!next.empty()) {
    std::vector<Index> touched;
    for (Index node : next) {
      if (isEliminated[node])
        continue;
      std::vector<Neighbour> before = around[node];
      if (!remove(node))
        continue;
      isEliminated[node] = 1;
      for (const Neighbour &other : before)
        touched.push_back(other.node);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    next = std::move(touched);
  }
  build();
}

void Reduced::build() {
  std::vector<Index> tableOf(tables.size(), -1), numberOf(source.numNodes(), -1);
  for (Index i = 0; i < source.numNodes(); ++i)
    if (!isEliminated[i]) {
      numberOf[i] = static_cast<Index>(left.size());
      left.push_back(i);
    }
  for (Index i : left) {
    Node &node = result.nodes.emplace_back();
    node.cost = vectors[costsOf(i)];
    for (const Neighbour &other : around[i]) {
      if (!other.isRow)
        continue;
      Index &table = tableOf[other.table];
      if (table < 0) {
        table = static_cast<Index>(result.tables.size());
        const Matrix &from = tables[other.table];
        result.tables.push_back({from.rows, from.columns, from.cost});
      }
      result.edges.push_back({numberOf[i], numberOf[other.node], table});
    }
  }
}

std::vector<int64_t> Reduced::expand(const std::vector<int64_t> &choice) const {
  std::vector<int64_t> position(source.numNodes(), 0);
  for (size_t n = 0; n < left.size(); ++n)
    position[left[n]] = choice[n];
  std::vector<double> sum;
  for (auto it = eliminated.rbegin(); it != eliminated.rend(); ++it) {
    sum = vectors[it->costs];
    for (const Neighbour &other : it->around) {
      const Matrix &table = tables[other.table];
      for (size_t s = 0; s < sum.size(); ++s)
        sum[s] += other.isRow ? table.cost[s * table.columns + position[other.node]]
                              : table.cost[position[other.node] * table.columns + s];
    }
    position[it->node] = std::min_element(sum.begin(), sum.end()) - sum.begin();
  }
  for (Index i = 0; i < source.numNodes(); ++i)
    position[i] = domains.at(i)[position[i]];
  return position;
}

} // namespace tessera::solver
