//===- Messages.cpp - Bounds by messages along edges ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Messages.h"

#include <algorithm>
#include <numeric>

namespace tessera::solver {

static double minimumOf(const std::vector<double> &values) {
  return *std::min_element(values.begin(), values.end());
}

/// Classes in program order. A class after all its neighbors, such as the placement of a tensor,
/// moves to the position of its first neighbor: longer chains of messages need fewer sweeps.
static std::vector<Index> orderOf(const Folded &folded) {
  auto count = static_cast<Index>(folded.classes.size());
  std::vector<double> key(count);
  std::iota(key.begin(), key.end(), 0);
  std::vector<Index> least(count, count), most(count, -1);
  for (const Folded::Edge &edge : folded.edges) {
    Index u = folded.rowClass(edge), v = folded.columnClass(edge);
    for (auto [own, other] : {std::pair{u, v}, std::pair{v, u}}) {
      least[own] = std::min(least[own], other);
      most[own] = std::max(most[own], other);
    }
  }
  for (Index c = 0; c < count; ++c)
    if (most[c] >= 0 && most[c] < c)
      key[c] = least[c] + 0.5;
  std::vector<Index> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key[a] < key[b]; });
  return order;
}

Messages::Messages(const Folded &folded)
    : folded(folded), order(orderOf(folded)), rank(order.size()), belief(order.size()),
      receivers(order.size()) {
  for (size_t place = 0; place < order.size(); ++place)
    rank[order[place]] = static_cast<Index>(place);
  for (Index slot = 0; slot < std::ssize(folded.slots); ++slot) {
    incoming.emplace_back(folded.classes[folded.slots[slot].of].cost.size(), 0.0);
    receivers[folded.slots[otherSlot(slot)].of].push_back(slot);
  }
}

/// Sums up the messages that a node of the class receives; returns the least cost.
double Messages::updateBelief(Index own) {
  const Folded::Class &self = folded.classes[own];
  std::vector<double> &sum = belief[own];
  sum = self.cost;
  for (auto [slot, copies] : self.slots)
    for (size_t a = 0; a < sum.size(); ++a)
      sum[a] += copies * incoming[slot][a];
  double least = minimumOf(sum);
  for (double &value : sum)
    value -= least;
  return least;
}

/// Sends to a slot, by strategy, the least cost of its edge and of the other end, less the minimum,
/// which stays in the edge.
void Messages::sendMessages(Index slot, Digits digits) {
  const Folded::Slot &target = folded.slots[slot];
  const std::vector<double> &kept = incoming[otherSlot(slot)];
  const CompactTable &table = *folded.edges[target.edge].table;
  if (digits == Digits::all)
    table.least(!target.isRow, kept, incoming[slot]);
  else
    table.leastInSinglePrecision(!target.isRow, kept, incoming[slot]);
}

/// Distributes the costs of each class over the chains of edges through it, and passes them to the
/// classes ahead.
void Messages::pass(bool isForward, Digits digits) {
  for (size_t place = 0; place < order.size(); ++place) {
    Index own = order[isForward ? place : order.size() - 1 - place];
    const Folded::Class &self = folded.classes[own];
    auto isAhead = [&](Index other) { return (rank[other] > rank[own]) == isForward; };
    updateBelief(own);
    double ahead = 0, behind = 0;
    for (auto [slot, copies] : self.slots)
      (hasSameEdges(slot) && isAhead(folded.slots[otherSlot(slot)].of) ? ahead : behind) += copies;
    double share = 1.0 / std::max({ahead, behind, 1.0});
    for (auto [slot, copies] : self.slots)
      if (hasSameEdges(slot) && isAhead(folded.slots[otherSlot(slot)].of))
        for (size_t a = 0; a < belief[own].size(); ++a)
          incoming[slot][a] -= share * belief[own][a]; // moves to the edges
    for (Index slot : receivers[own])
      if (isAhead(folded.slots[slot].of))
        sendMessages(slot, digits);
  }
}

void Messages::sweep(int times) {
  for (; times > 0; --times)
    for (bool isForward : {true, false})
      pass(isForward, times > 1 ? Digits::seven : Digits::all);
}

std::vector<Index> Messages::round() const {
  std::vector<Index> chosen(order.size(), 0);
  std::vector<double> sum;
  for (Index own : order) {
    const Folded::Class &self = folded.classes[own];
    sum = self.cost;
    for (auto [slot, copies] : self.slots) {
      const Folded::Edge &edge = folded.edges[folded.slots[slot].edge];
      Index other = folded.slots[otherSlot(slot)].of;
      bool isRow = folded.slots[slot].isRow;
      for (Index a = 0; a < std::ssize(sum); ++a)
        if (rank[other] > rank[own])
          sum[a] += copies * incoming[slot][a];
        else
          sum[a] += copies * (isRow ? folded.edgeCost(edge, a, chosen[other])
                                    : folded.edgeCost(edge, chosen[other], a));
    }
    chosen[own] = static_cast<Index>(std::min_element(sum.begin(), sum.end()) - sum.begin());
  }
  return chosen;
}

Messages::Proof Messages::prove() {
  for (Index slot = 0; slot < std::ssize(folded.slots); ++slot)
    if (!hasSameEdges(slot))
      sendMessages(slot, Digits::all);
  Proof proof;
  // By slot, the excess cost of its edges for each strategy.
  std::vector<std::vector<double>> rest(folded.slots.size());
  std::vector<double> ofRow, ofColumn;
  auto keep = [](std::vector<double> &least, const std::vector<double> &values, double base) {
    if (least.empty())
      least.assign(values.size(), std::numeric_limits<double>::infinity());
    for (size_t a = 0; a < values.size(); ++a)
      least[a] = std::min(least[a], values[a] - base);
  };
  for (const Folded::Edge &edge : folded.edges) {
    const std::vector<double> &row = incoming[edge.row], &column = incoming[edge.column];
    double leastOfRows = edge.table->least(false, column, ofRow),
           leastOfColumns = edge.table->least(true, row, ofColumn);
    for (size_t a = 0; a < row.size(); ++a)
      ofRow[a] += leastOfRows - row[a];
    for (size_t b = 0; b < column.size(); ++b)
      ofColumn[b] += leastOfColumns - column[b];
    double least = std::min(minimumOf(ofRow), minimumOf(ofColumn));
    proof.bound += edge.count * least;
    keep(rest[edge.row], ofRow, least);
    keep(rest[edge.column], ofColumn, least);
  }
  for (Index own = 0; own < std::ssize(folded.classes); ++own) {
    proof.bound += folded.classes[own].count * updateBelief(own);
    std::vector<double> &excess = proof.excess.emplace_back(belief[own]);
    for (auto [slot, copies] : folded.classes[own].slots)
      for (size_t a = 0; a < excess.size(); ++a)
        excess[a] += copies * rest[slot][a];
  }
  return proof;
}

} // namespace tessera::solver
