//===- Model.h - The problem with equal parts stored once -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds repetition by content: nodes with equal costs are one *kind*, equal tables one
// table, equal sets of kept strategies one *domain*. Everything is computed once for
// each of them, so 96 equal layers take the time of one.
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

/// Numbers distinct keys in the order of their first occurrence.
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

/// The time at which a search must return the best result so far.
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
  /// Whether the search was stopped by it.
  bool hasExpired() const { return wasSeen; }
  double left() const { return limit - elapsed(); }

private:
  double limit;
  std::chrono::steady_clock::time_point start;
  mutable bool wasSeen = false;
};

/// An edge as seen from one of its nodes.
struct Neighbour {
  Index node;
  Index table;
  bool isRow; ///< whether this node's strategies are the table's rows
};

/// The problem with equal parts stored once. Parallel edges are added up.
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

/// The candidate strategies of each node. Equal sets have one number.
struct Domains {
  std::vector<Domain> sets;
  std::vector<Index> of; ///< by node

  const Domain &at(Index node) const { return sets[of[node]]; }
  /// The number of a set.
  Index intern(const Domain &set);

private:
  Interner numbers;
};

/// All strategies of every node, or the pinned one.
Domains allStrategies(const Source &source);

/// By node, a number that is equal for nodes of one kind with the same edges. `salt` distinguishes
/// nodes that must not share a number.
std::vector<Index> fingerprintsOf(const Source &source, const std::vector<Index> &salt);

/// By kind, the costs of its strategies: cost + price x memory.
using KindCosts = std::vector<std::vector<double>>;
KindCosts costsOf(const Source &source, double pricePerByte = 0);

/// A table of costs over the kept strategies.
struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<double> cost; ///< row-major
};

/// The problem over kept strategies, the input of elimination. Costs are by position in the domain.
struct Model {
  Model() = default;
  /// With `contract`, nodes with one strategy are added to their neighbors and to the constant,
  /// and do not take part in an elimination.
  Model(const Source &source, const KindCosts &costs, Domains domains, bool contract = false);

  Domains domains;
  std::vector<std::vector<double>> vectors;
  std::vector<Matrix> matrices;
  std::vector<Index> unary;                       ///< by node: its vector
  std::vector<Source::Pair> pairs;                ///< tables are matrices here
  std::vector<std::vector<Neighbour>> neighbours; ///< tables are matrices here
  double constant = 0;                            ///< of contracted nodes
  bool isContracted = false;

  /// Whether elimination ignores a node.
  bool isOut(Index node) const { return isContracted && size(node) == 1; }
  Index numNodes() const { return static_cast<Index>(unary.size()); }
  Index size(Index node) const { return static_cast<Index>(domains.at(node).size()); }
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MODEL_H
