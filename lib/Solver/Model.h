//===- Model.h - The problem, with equal things named once -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Repetition is found by content: nodes with equal costs are one *kind*, equal tables
// one table, equal sets of kept strategies one *domain*. Whatever is computed for one
// of them is computed once, so 96 equal layers take the time of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MODEL_H
#define TESSERA_LIB_SOLVER_MODEL_H

#include "tessera/Solver/Problem.h"

#include <chrono>
#include <unordered_map>

namespace tessera::solver {

using Index = int32_t;
using Key = std::vector<Index>;

struct KeyHash {
  size_t operator()(const Key &key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (Index value : key)
      hash = (hash ^ static_cast<uint32_t>(value)) * 0xff51afd7ed558ccdu, hash ^= hash >> 32;
    return hash;
  }
};

/// Numbers distinct keys in the order in which they come.
class Interner {
public:
  /// The number of a key, and whether it is new.
  std::pair<Index, bool> intern(const Key &key) {
    auto [it, isNew] = numbers.try_emplace(key, static_cast<Index>(numbers.size()));
    return {it->second, isNew};
  }

  bool contains(const Key &key) const { return numbers.count(key) > 0; }

private:
  std::unordered_map<Key, Index, KeyHash> numbers;
};

/// When a search has to come back with what it has.
class Deadline {
public:
  explicit Deadline(double limit) : limit(limit), start(std::chrono::steady_clock::now()) {}
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  bool isOver() const {
    wasSeen |= elapsed() > limit;
    return wasSeen;
  }
  /// Whether anybody stopped for it.
  bool wasMet() const { return wasSeen; }
  double left() const { return limit - elapsed(); }

private:
  double limit;
  std::chrono::steady_clock::time_point start;
  mutable bool wasSeen = false;
};

/// How a node sees an edge.
struct Neighbour {
  Index node;
  Index table;
  bool isRow; ///< whether this node's strategies are the table's rows
};

/// The problem with equal things named once. Parallel edges are added up.
struct Source {
  explicit Source(const Problem &problem);

  struct Pair {
    Index u, v, table; ///< u: rows, v: columns
  };
  const Problem &problem;
  std::vector<Index> kind;           ///< by node
  std::vector<Index> representative; ///< by kind: its first node
  std::vector<EdgeTable> merged;     ///< sums of parallel edges
  std::vector<const EdgeTable *> tables;
  std::vector<Pair> pairs;
  std::vector<std::vector<Neighbour>> neighbours; ///< by node, in the order of edges

  Index numNodes() const { return static_cast<Index>(kind.size()); }
  Index numKinds() const { return static_cast<Index>(representative.size()); }
  const Node &nodeOfKind(Index k) const { return problem.nodes[representative[k]]; }
};

/// Strategies of a kind, ascending.
using Domain = std::vector<Index>;

/// Which strategies of each node are looked at. Equal sets have one number.
struct Domains {
  std::vector<Domain> sets;
  std::vector<Index> of; ///< by node

  const Domain &at(Index node) const { return sets[of[node]]; }
  /// The number of a set.
  Index intern(const Domain &set);

private:
  Interner numbers;
};

/// All strategies of every node, or the one it is pinned to.
Domains allStrategies(const Source &source);

/// Nodes of one kind with the same edges look alike; by node, the number of its look. `salt` tells
/// apart nodes that must not share one.
std::vector<Index> fingerprintsOf(const Source &source, const std::vector<Index> &salt);

/// By kind, what its strategies cost: cost + price x memory.
using KindCosts = std::vector<std::vector<double>>;
KindCosts costsOf(const Source &source, double pricePerByte = 0);

/// A table of costs over the kept strategies.
struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<double> cost; ///< row-major
};

/// The problem over kept strategies, as elimination takes it. Costs are by position in the domain.
struct Model {
  Model() = default;
  /// With `contract` nodes of one strategy are added to their neighbours and to the constant: they
  /// have no part in an elimination.
  Model(const Source &source, const KindCosts &costs, Domains domains, bool contract = false);

  Domains domains;
  std::vector<std::vector<double>> vectors;
  std::vector<Matrix> matrices;
  std::vector<Index> unary;                       ///< by node: its vector
  std::vector<Source::Pair> pairs;                ///< tables are matrices here
  std::vector<std::vector<Neighbour>> neighbours; ///< tables are matrices here
  double constant = 0;                            ///< of what is contracted
  bool isContracted = false;

  /// Whether an elimination need not look at a node.
  bool isOut(Index node) const { return isContracted && size(node) == 1; }
  Index numNodes() const { return static_cast<Index>(unary.size()); }
  Index size(Index node) const { return static_cast<Index>(domains.at(node).size()); }
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MODEL_H
