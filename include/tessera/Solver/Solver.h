//===- Solver.h - Strategy search -------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SOLVER_SOLVER_H
#define TESSERA_SOLVER_SOLVER_H

#include "tessera/Solver/Problem.h"

#include <limits>
#include <optional>

namespace tessera::solver {

/// How the problem is solved; docs/search.md compares the modes.
enum class Mode {
  /// Nodes connected to a pinned or annotated node are completed at the least cost if one
  /// elimination suffices, else near it; the others keep the standard strategy.
  completion,
  dynamic_programming,   ///< exact: dominance, elimination with folded repetitions, bounds
  recursive_programming, ///< coarse to fine: a few milliseconds, near the optimum
  exact,                 ///< an existing MILP solver, for comparison
};

/// The mode and the limits of a search.
struct Options {
  Mode mode = Mode::dynamic_programming;
  double memoryBudget = std::numeric_limits<double>::infinity(); ///< bytes
  /// Seconds after which the best plan so far is returned with its gap.
  double timeLimit = 60;
  /// Under a budget the search stops at this relative gap: repeated layers have many plans with
  /// negligible differences.
  double targetGap = 1e-4;
  /// Limits on the entries (of 8 bytes) of the largest table of an elimination, and of all tables
  /// together. Larger tables are split, which gives bounds, and branched on.
  double tableLimit = 6.4e7;
  double totalLimit = 1.6e8;
  std::string solverLibrary; ///< of `exact`: path of HiGHS or CBC; empty: searched for
};

/// A plan and its proven bounds.
struct Solution {
  std::vector<int64_t> choice; ///< by node
  double cost = 0;             ///< of the choice, as in Problem::cost
  /// Lower bound on the cost of all plans within the budget that respect the pins. For
  /// `completion`, of the plans that keep the standard strategy.
  double lowerBound = 0;
  double memory = 0;          ///< of the choice, bytes
  double seconds = 0;         ///< of the search
  double cpuSeconds = 0;      ///< of the search, which uses one core
  bool stoppedByTime = false; ///< the time limit ended the search before the gap closed

  /// Relative distance between cost and bound, 0 if they are equal.
  double gap() const;
};

/// Runs the search. Errors: a malformed problem, a budget that no plan meets (with the least memory
/// of any plan and the node that needs most of it), `exact` without a solver (with the package to
/// install). Deterministic unless the time limit is hit; ties go to the plan with the lowest
/// strategies.
Expected<Solution> solve(const Problem &problem, const Options &options);

/// Writes the problem as a mixed-integer program in MPS, for other solvers.
std::optional<Error> writeMps(const Problem &problem, const Options &options,
                              const std::string &file);

} // namespace tessera::solver

#endif // TESSERA_SOLVER_SOLVER_H
