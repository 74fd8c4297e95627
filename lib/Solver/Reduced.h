//===- Reduced.h - A problem without its thin parts ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node of one strategy or of one neighbour is a cost of those beside it, a node of two
// neighbours is a table between them, and tables between the same two add up. So trees, chains and
// whatever is made of them in series and in parallel (J. Valdes, R. Tarjan, E. Lawler, 1982)
// disappear, exactly, and with the loops in them the distance of what messages prove. Equal parts
// are computed once: a table is named by how it comes about.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_REDUCED_H
#define TESSERA_LIB_SOLVER_REDUCED_H

#include "Model.h"

#include <deque>

namespace tessera::solver {

class Reduced {
public:
  /// Stops where tables would take more than `mostWork` sums.
  Reduced(const Source &source, const KindCosts &costs, const Domains &domains, double mostWork);

  /// What is left, which may be nothing; a choice of it costs `constant` less than its expansion.
  const Problem &problem() const { return result; }
  double constant() const { return eliminatedCost; }
  /// By node of what is left, the one of the source. Strategies are positions in its domain.
  const std::vector<Index> &nodes() const { return left; }
  /// The best choice of the whole problem with this one of what is left.
  std::vector<int64_t> expand(const std::vector<int64_t> &choice) const;

private:
  /// A node that is eliminated, with what it knew then: its costs, and its tables to those that
  /// stayed.
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
  /// Row-major, with this node's strategies (`isRow`: the table's rows) as rows.
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
