//===- MinimumCut.h - Minimum cut of a graph --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SOLVER_MINIMUMCUT_H
#define TESSERA_SOLVER_MINIMUMCUT_H

#include <cstdint>
#include <vector>

namespace tessera::solver {

/// Splits a directed graph into the sides of a source and a sink so that the edges from the
/// source's side to the sink's have the least total capacity (E. Dinic, 1970). Deterministic:
/// returns the minimum cut nearest to the source.
/// Bytes times executions, which exceed 64 bits.
using Capacity = __int128;

class MinimumCut {
public:
  static constexpr Capacity kInfinite = Capacity(1) << 126;
  static constexpr int64_t kSource = 0;
  static constexpr int64_t kSink = 1;

  MinimumCut() : first{-1, -1} {}

  int64_t addNode();
  /// Capacities are >= 0; an edge of `kInfinite` is cut only if nothing else separates source and
  /// sink.
  void addEdge(int64_t from, int64_t to, Capacity capacity);
  /// Capacity of the cut.
  Capacity solve();
  /// Valid after `solve`.
  bool onSourceSide(int64_t node) const { return level[node] >= 0; }

private:
  struct Edge {
    int64_t to;
    Capacity capacity; ///< remaining capacity
    int64_t next;      ///< next edge of the same node, or -1
  };
  bool computeLevels();
  Capacity augment();

  std::vector<Edge> edges;    ///< edge e and its reverse e ^ 1
  std::vector<int64_t> first; ///< by node
  std::vector<int64_t> level;
  std::vector<int64_t> current;
};

} // namespace tessera::solver

#endif // TESSERA_SOLVER_MINIMUMCUT_H
