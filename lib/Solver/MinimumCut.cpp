//===- MinimumCut.cpp - Minimum cut of a graph ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/MinimumCut.h"

#include <algorithm>

namespace tessera::solver {

int64_t MinimumCut::addNode() {
  first.push_back(-1);
  return static_cast<int64_t>(first.size()) - 1;
}

void MinimumCut::addEdge(int64_t from, int64_t to, Capacity capacity) {
  auto add = [&](int64_t a, int64_t b, Capacity c) {
    edges.push_back({b, c, first[a]});
    first[a] = static_cast<int64_t>(edges.size()) - 1;
  };
  add(from, to, capacity);
  add(to, from, 0);
}

bool MinimumCut::computeLevels() {
  level.assign(first.size(), -1);
  level[kSource] = 0;
  std::vector<int64_t> queue{kSource};
  for (size_t head = 0; head < queue.size(); ++head)
    for (int64_t e = first[queue[head]]; e >= 0; e = edges[e].next)
      if (edges[e].capacity > 0 && level[edges[e].to] < 0) {
        level[edges[e].to] = level[queue[head]] + 1;
        queue.push_back(edges[e].to);
      }
  return level[kSink] >= 0;
}

/// One path in the level graph, with an explicit stack: a path may be as long as the program.
Capacity MinimumCut::augment() {
  std::vector<int64_t> path; // edges
  int64_t node = kSource;
  while (node != kSink) {
    int64_t &e = current[node];
    while (e >= 0 && !(edges[e].capacity > 0 && level[edges[e].to] == level[node] + 1))
      e = edges[e].next;
    if (e >= 0) {
      path.push_back(e);
      node = edges[e].to;
      continue;
    }
    if (path.empty())
      return 0;
    level[node] = -1; // a dead end
    node = edges[path.back() ^ 1].to;
    path.pop_back();
  }
  Capacity flow = kInfinite;
  for (int64_t e : path)
    flow = std::min(flow, edges[e].capacity);
  for (int64_t e : path) {
    edges[e].capacity -= flow;
    edges[e ^ 1].capacity += flow;
  }
  return flow;
}

Capacity MinimumCut::solve() {
  Capacity total = 0;
  while (total < kInfinite && computeLevels()) {
    current = first;
    while (Capacity flow = augment())
      if ((total += flow) >= kInfinite)
        break;
  }
  computeLevels();
  return total;
}

} // namespace tessera::solver
