//===- Problem.cpp - The problem of a strategy search ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/Problem.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::solver {

double Problem::cost(const std::vector<int64_t> &choice) const {
  double sum = 0;
  for (size_t i = 0; i < nodes.size(); ++i)
    sum += nodes[i].cost[choice[i]];
  for (const Edge &edge : edges)
    sum += tables[edge.table].at(choice[edge.from], choice[edge.to]);
  return sum;
}

double Problem::memory(const std::vector<int64_t> &choice) const {
  double sum = 0;
  for (size_t i = 0; i < nodes.size(); ++i)
    sum += nodes[i].memoryOf(choice[i]);
  return sum;
}

double Problem::leastMemory(int64_t node) const {
  const Node &subject = nodes[node];
  for (const Pin &pin : pins)
    if (pin.node == node)
      return subject.memoryOf(pin.strategy);
  return subject.memory.empty() ? 0
                                : *std::min_element(subject.memory.begin(), subject.memory.end());
}

std::vector<int64_t> Problem::pinned() const {
  std::vector<int64_t> result(nodes.size(), -1);
  for (const Pin &pin : pins)
    result[pin.node] = pin.strategy;
  return result;
}

static std::string text(int64_t value) {
  return std::to_string(value);
}

/// Whether no entry is infinite or NaN, by exponents of all ones. Without branches, since tables
/// have millions of entries.
static bool areFinite(const std::vector<double> &values) {
  constexpr uint64_t exponent = 0x7ff0000000000000;
  uint64_t isBad = 0;
  for (double value : values)
    isBad |= static_cast<uint64_t>((std::bit_cast<uint64_t>(value) & exponent) == exponent);
  return isBad == 0;
}

static bool isSound(const Node &node) {
  size_t count = node.cost.size();
  auto isOfEach = [&](size_t entries) { return entries == 0 || entries == count; };
  return count > 0 && areFinite(node.cost) && areFinite(node.memory) &&
         std::all_of(node.memory.begin(), node.memory.end(), [](double m) { return m >= 0; }) &&
         isOfEach(node.memory.size()) && isOfEach(node.coordinates.size()) &&
         std::all_of(
             node.coordinates.begin(), node.coordinates.end(),
             [&](auto &point) { return point.size() == node.coordinates.front().size(); }) &&
         node.standard >= 0 && node.standard < static_cast<int64_t>(count);
}

/// The first error of one node as "FIELD: error", or an empty string.
static std::string faultOf(const Node &node, const std::string &field) {
  int64_t count = node.numStrategies();
  if (count == 0)
    return field + ".cost: is empty; a node has at least one strategy";
  for (int64_t s = 0; s < count; ++s)
    if (!std::isfinite(node.cost[s]))
      return field + ".cost[" + text(s) + "]: is not finite; costs are finite seconds";
  if (!node.memory.empty() && node.memory.size() != node.cost.size())
    return field + ".memory: has " + text(node.memory.size()) + " entries for " + text(count) +
           " strategies; give one per strategy";
  for (size_t s = 0; s < node.memory.size(); ++s)
    if (!(node.memory[s] >= 0) || !std::isfinite(node.memory[s]))
      return field + ".memory[" + text(s) + "]: is negative or not finite; memory is in bytes";
  if (!node.coordinates.empty() && node.coordinates.size() != node.cost.size())
    return field + ".axes: has " + text(node.coordinates.size()) + " entries for " + text(count) +
           " strategies; give one per strategy";
  for (const std::vector<int64_t> &point : node.coordinates)
    if (point.size() != node.coordinates.front().size())
      return field + ".axes: has entries of different lengths; each names every axis";
  return field + ".default: " + text(node.standard) + " is not a strategy; there are " + text(count);
}

std::string verify(const Problem &problem) {
  auto count = static_cast<int64_t>(problem.nodes.size());
  for (int64_t i = 0; i < count; ++i)
    if (!isSound(problem.nodes[i]))
      return faultOf(problem.nodes[i], "nodes[" + text(i) + "]");
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const EdgeTable &table = problem.tables[t];
    auto field = [&]() { return "tables[" + text(t) + "]"; };
    if (static_cast<int64_t>(table.cost.size()) != table.rows * table.columns)
      return field() + ": has rows of different lengths; a table is a rectangle";
    if (!areFinite(table.cost)) {
      auto k = std::find_if_not(table.cost.begin(), table.cost.end(),
                                [](double cost) { return std::isfinite(cost); }) -
               table.cost.begin();
      return field() + "[" + text(k / table.columns) + "][" + text(k % table.columns) +
             "]: is not finite; costs are finite seconds";
    }
  }
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const Edge &edge = problem.edges[e];
    auto field = [&]() { return "edges[" + text(e) + "]"; };
    for (int64_t node : {edge.from, edge.to})
      if (node < 0 || node >= count)
        return field() + ": " + text(node) + " is not a node; there are " + text(count);
    if (edge.from == edge.to)
      return field() + ": leads from node " + text(edge.from) + " to itself; the ends must differ";
    if (edge.table < 0 || edge.table >= static_cast<int64_t>(problem.tables.size()))
      return field() + ": " + text(edge.table) + " is not a table; there are " +
             text(problem.tables.size());
    const EdgeTable &table = problem.tables[edge.table];
    int64_t rows = problem.nodes[edge.from].numStrategies();
    int64_t columns = problem.nodes[edge.to].numStrategies();
    if (table.rows != rows || table.columns != columns)
      return field() + ": table " + text(edge.table) + " is " + text(table.rows) + "x" +
             text(table.columns) + " but the nodes have " + text(rows) + " and " + text(columns) +
             " strategies; rows are strategies of the first, columns of the second";
  }
  std::vector<int64_t> pinned(count, -1);
  for (size_t p = 0; p < problem.pins.size(); ++p) {
    const Pin &pin = problem.pins[p];
    auto field = [&]() { return "pins[" + text(p) + "]"; };
    if (pin.node < 0 || pin.node >= count)
      return field() + ": " + text(pin.node) + " is not a node; there are " + text(count);
    if (pin.strategy < 0 || pin.strategy >= problem.nodes[pin.node].numStrategies())
      return field() + ": " + text(pin.strategy) + " is not a strategy of node " + text(pin.node) +
             "; there are " + text(problem.nodes[pin.node].numStrategies());
    if (pinned[pin.node] >= 0 && pinned[pin.node] != pin.strategy)
      return field() + ": node " + text(pin.node) + " is pinned to " + text(pinned[pin.node]) +
             " already; a node is pinned once";
    pinned[pin.node] = pin.strategy;
  }
  return {};
}

} // namespace tessera::solver
