//===- CompleteChoice.cpp - Optimal completion of a choice ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/CompleteChoice.h"

#include <algorithm>

namespace tessera::solver {

std::vector<int64_t> completeChoice(const Problem &problem, std::vector<int64_t> choice) {
  std::vector<std::vector<double>> costs(choice.size()); // of nodes to complete
  for (size_t node = 0; node < choice.size(); ++node)
    if (choice[node] < 0)
      costs[node] = problem.nodes[node].cost;
  for (const Edge &edge : problem.edges) {
    const EdgeTable &table = problem.tables[edge.table];
    std::vector<double> &from = costs[edge.from], &to = costs[edge.to];
    for (size_t s = 0; s < from.size(); ++s)
      from[s] += table.at(static_cast<int64_t>(s), choice[edge.to]);
    for (size_t s = 0; s < to.size(); ++s)
      to[s] += table.at(choice[edge.from], static_cast<int64_t>(s));
  }
  for (size_t node = 0; node < choice.size(); ++node)
    if (choice[node] < 0)
      choice[node] = std::min_element(costs[node].begin(), costs[node].end()) - costs[node].begin();
  return choice;
}

} // namespace tessera::solver
