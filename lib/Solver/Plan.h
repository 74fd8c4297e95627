//===- Plan.h - Elimination orders ------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eliminating a node adds up all tables that mention it (its *bucket*) and takes the
// minimum over its strategies; the result is a table over its neighbors (R. Dechter,
// "Bucket elimination", Artificial Intelligence 113, 1999). A plan is made before any
// number is computed. Tables are identified by their definition, so two buckets with
// the same parts in the same places are one definition, computed once: this folds
// repeated layers without knowing where layers begin.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_PLAN_H
#define TESSERA_LIB_SOLVER_PLAN_H

#include "Model.h"

namespace tessera::solver {

/// A table in a bucket, and the bucket's variables of its dimensions.
struct Part {
  Index table;
  std::vector<Index> vars;
};

/// A sum of tables, minimized over its first variables.
struct Bucket {
  std::vector<Index> sizes; ///< by variable
  Index eliminated = 1;     ///< variables 0 … eliminated - 1
  std::vector<Part> parts;
  bool isLazy = false;  ///< computed on demand; most entries are never needed
  bool isSplit = false; ///< only its groups of parts are computed, which gives a lower bound

  double entries() const;
};

/// The definition of a table.
struct TableDef {
  enum Kind { unary, pair, bucket, pruned } kind;
  Index index;              ///< vector or matrix of the model, or bucket, or pruning
  std::vector<Index> sizes; ///< by dimension

  double entries() const;
};

/// Entries of a table that another entry makes unnecessary, see Pruning in Eliminate.cpp.
struct PruningDef {
  Index table;
  /// By dimension, the tables outside of this one that depend on the strategy: unary vectors and
  /// matrices (isRow: the dimension's strategies are rows). They bound the cost of a change.
  struct Outside {
    bool isUnary;
    Index index;
    bool isRow;
  };
  std::vector<std::vector<Outside>> outside;
};

/// An occurrence of a bucket in the problem.
struct Step {
  Index bucket;
  std::vector<Index> nodes; ///< by variable of the bucket
  std::vector<Index> from;  ///< by part: the step that computed it, or -1 for the model's tables
};

struct Plan {
  std::vector<TableDef> tables; ///< in dependency order
  std::vector<Bucket> buckets;
  std::vector<PruningDef> prunings;
  std::vector<Step> steps;       ///< in the order of elimination
  std::vector<Index> constants;  ///< tables without dimensions whose sum is the optimum
  std::vector<Index> split;      ///< nodes whose buckets were split, first eliminated first
  double work = 0;               ///< entries of all distinct buckets
  double largest = 0, total = 0; ///< entries of the largest table, of all tables
};

/// The quantity that the order minimizes at each step, divided by the number of equal buckets.
enum class EliminationOrder {
  bucket, ///< entries of the bucket
  growth, ///< entries of the resulting table
};

struct PlanOptions {
  EliminationOrder order = EliminationOrder::bucket;
  bool prune = true;       ///< drop unnecessary entries during elimination
  double lazyFrom = 1e9;   ///< entries from which the bookkeeping of a lazy bucket pays off
  double tableLimit = 3e7; ///< larger tables are made only if there is no alternative
  /// A bucket with more entries is split into groups of parts, each minimized separately: the sum
  /// is then a lower bound (R. Dechter, I. Rish, "Mini-buckets", Journal of the ACM 50, 2003).
  double splitAt = 1e300;
  /// Planning stops if the work exceeds this; such a plan cannot be run.
  double workLimit = 1e300;
};

/// A plan for all nodes, if its work is within the limit. It is exact when `split` is empty.
Plan makePlan(const Model &model, const PlanOptions &options);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_PLAN_H
