//===- Plan.h - In which order nodes are eliminated --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eliminating a node adds up all tables that mention it (its *bucket*) and takes the
// minimum over its strategies; the result is a table over its neighbours (R. Dechter,
// "Bucket elimination", Artificial Intelligence 113, 1999). A plan is made before any
// number is touched. Tables are named by how they come about, so two buckets with the
// same parts in the same places are one definition, computed once: this is how repeated
// layers are folded, without knowing where layers begin.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_PLAN_H
#define TESSERA_LIB_SOLVER_PLAN_H

#include "Model.h"

namespace tessera::solver {

/// A table in a bucket: which of the bucket's variables its dimensions are.
struct Part {
  Index table;
  std::vector<Index> vars;
};

/// A sum of tables minimised over its first variables.
struct Bucket {
  std::vector<Index> sizes; ///< by variable
  Index eliminated = 1;     ///< variables 0 … eliminated - 1
  std::vector<Part> parts;
  bool isLazy = false;  ///< computed where it is asked for: most of it never is
  bool isSplit = false; ///< never computed: its parts were, in groups, which bounds it from below

  double entries() const;
};

/// How a table comes about.
struct TableDef {
  enum Kind { unary, pair, bucket, pruned } kind;
  Index index;              ///< vector or matrix of the model, or bucket, or pruning
  std::vector<Index> sizes; ///< by dimension

  double entries() const;
};

/// Entries of a table that another entry makes needless, see Pruning in Eliminate.cpp.
struct PruningDef {
  Index table;
  /// By dimension, what a change of the strategy can cost elsewhere at most: unary vectors and
  /// matrices (isRow: the dimension's strategies are rows) that the table does not contain.
  struct Outside {
    bool isUnary;
    Index index;
    bool isRow;
  };
  std::vector<std::vector<Outside>> outside;
};

/// A bucket at a place of the problem.
struct Step {
  Index bucket;
  std::vector<Index> nodes; ///< by variable of the bucket
  std::vector<Index> from;  ///< by part: the step whose result it is, or -1 for the model's tables
};

struct Plan {
  std::vector<TableDef> tables; ///< each after those that it needs
  std::vector<Bucket> buckets;
  std::vector<PruningDef> prunings;
  std::vector<Step> steps;       ///< in the order of elimination
  std::vector<Index> constants;  ///< tables without dimensions whose sum is the optimum
  std::vector<Index> split;      ///< nodes whose buckets were split, first eliminated first
  double work = 0;               ///< entries of all distinct buckets
  double largest = 0, total = 0; ///< entries of the largest table, of all tables
};

/// What the order minimises at each step, over how often the same bucket occurs.
enum class EliminationOrder {
  bucket, ///< entries of the bucket
  growth, ///< entries of the table that results
};

struct PlanOptions {
  EliminationOrder order = EliminationOrder::bucket;
  bool prune = true;       ///< drop needless entries on the way
  double lazyFrom = 1e9;   ///< entries of a bucket that is worth the bookkeeping of laziness
  double tableLimit = 3e7; ///< larger tables are made only when there is no other way
  /// A bucket of more entries is split into groups of parts, each minimised for itself: the sum is
  /// then a lower bound (R. Dechter, I. Rish, "Mini-buckets", Journal of the ACM 50, 2003).
  double splitAt = 1e300;
  /// Planning ends where the work is more: such a plan is of no use but to say so.
  double workLimit = 1e300;
};

/// A plan for all nodes, if its work is within the limit. It is exact when `split` is empty.
Plan makePlan(const Model &model, const PlanOptions &options);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_PLAN_H
