//===- Folded.h - Classes of equal nodes ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_FOLDED_H
#define TESSERA_LIB_SOLVER_FOLDED_H

#include "CompactTable.h"

#include <deque>

namespace tessera::solver {

/// Partitions nodes into classes of nodes whose neighborhoods are equal up to some distance. All
/// nodes of a class have the same *slots*: groups of edges with one table that lead to nodes that
/// are equal up to a distance one shorter. Inside repeated layers the two slots of an edge have the
/// same edges, so the classes form a graph of one layer; near the ends of a chain of layers there
/// are more classes.
struct Folded {
  /// Refines classes until there are `enough`, or until all nodes that differ are in different
  /// classes.
  Folded(const Source &source, const KindCosts &costs, const Domains &domains, Index enough);

  struct Slot {
    Index of;         ///< class
    bool isRow;       ///< whether the nodes are the rows of the table
    Index edge = -1;  ///< the class edge to which most of its edges belong
    double edges = 0; ///< the number of edges that belong to it
  };
  struct Class {
    Index first;                                 ///< the first node
    double count = 0;                            ///< number of nodes
    std::vector<double> cost;                    ///< of one node, by position in the domain
    std::vector<std::pair<Index, double>> slots; ///< slot, and the number of a node's edges in it
  };
  /// Edges between the same slots.
  struct Edge {
    Index row, column; ///< slots
    const CompactTable *table;
    Index whole; ///< its table in the source
    double count = 0;
  };
  const Source &source;
  const Domains &domains;
  std::vector<Class> classes;
  std::vector<Index> classOf; ///< by node
  std::vector<Slot> slots;
  std::vector<Edge> edges;
  std::deque<CompactTable> tables;
  bool isWhole = false; ///< all nodes that differ are in different classes

  const Domain &all(const Class &foldedClass) const { return domains.at(foldedClass.first); }
  Index rowClass(const Edge &edge) const { return slots[edge.row].of; }
  Index columnClass(const Edge &edge) const { return slots[edge.column].of; }
  double edgeCost(const Edge &edge, Index a, Index b) const {
    return source.tables[edge.whole]->at(all(classes[rowClass(edge)])[a],
                                         all(classes[columnClass(edge)])[b]);
  }
  /// The choice in which the nodes of each class take one strategy, given by class.
  std::vector<int64_t> unfold(const std::vector<Index> &position) const;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_FOLDED_H
