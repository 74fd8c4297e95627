//===- Reduced.h - A problem without its thin parts -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node with one strategy or one neighbor becomes a cost of its neighbors, a node
// with two neighbors becomes a table between them, and parallel tables add up. This
// removes trees, chains and all series-parallel parts (J. Valdes, R. Tarjan, E. Lawler,
// 1982), exactly, and with their cycles the gap of bounds by messages. Equal parts are
// computed once: a table is identified by its definition.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_REDUCED_H
#define TESSERA_LIB_SOLVER_REDUCED_H

#include "Model.h"

#include <deque>

namespace tessera::solver {

class Reduced {
public:
  /// Stops if tables would take more than `mostWork` sums.
  Reduced(const Source &source, const KindCosts &costs, const Domains &domains, double mostWork);

  /// The remaining problem, which may be empty; a choice of it costs `constant` less than its
  /// expansion.
  const Problem &problem() const { return result; }
  double constant() const { return eliminatedCost; }
  /// By remaining node, its node of the source. Strategies are positions in its domain.
  const std::vector<Index> &nodes() const { return left; }
  /// The best choice of the whole problem that extends this choice of the remaining one.
  std::vector<int64_t> expand(const std::vector<int64_t> &choice) const;

private:
  /// An eliminated node with its costs at that time and its tables to the remaining neighbors.
  struct Eliminated {
    Index node, costs;
    std::vector<Neighbour> around;
  };

  bool remove(Index node);
  void sendTo(const Neighbour &user, Index node, Index costs);
  bool bridge(Index node);
  void connect(Index u, Index v, Index table);
  Index costsOf(Index node);
  Index leafOf(const Source::Pair &pair);
  /// Row-major with this node's strategies as rows; `isRow`: they are the table's rows.
  std::vector<double> oriented(Index table, bool isRow) const;
  void build();

  const Source &source;
  const KindCosts &kindCosts;
  const Domains &domains;
  double workLeft;
  Problem result;
  double eliminatedCost = 0;
  std::vector<Index> left;
  std::vector<char> isEliminated; ///< by node of the source
  std::vector<std::vector<Neighbour>> around;
  std::vector<std::vector<Index>> incoming; ///< by node, messages
  std::vector<Eliminated> eliminated;       ///< first eliminated first
  Interner tableNumbers, vectorNumbers, messageNumbers;
  std::deque<Matrix> tables;
  std::deque<std::vector<double>> vectors, messages;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_REDUCED_H
