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

enum class Mode {
  /// What pins and wishes reach is completed at least cost, as far as one elimination goes, or else
  /// nearly so; the rest stays standard.
  completion,
  dynamic_programming,   ///< exact: dominance, elimination with folded repetitions, bounds
  recursive_programming, ///< coarse to fine: a few milliseconds, near the optimum
  exact,                 ///< an existing MILP solver, for comparison
};

struct Options {
  Mode mode = Mode::dynamic_programming;
  double memoryBudget = std::numeric_limits<double>::infinity(); ///< bytes
  /// Seconds after which the best plan so far is returned with its gap.
  double timeLimit = 60;
  /// Under a budget the search stops at this relative gap: repeated layers make plans that differ
  /// by less than anybody cares about.
  double targetGap = 1e-4;
  /// The largest table of an elimination, in entries of 8 bytes, and all of them together. What
  /// would exceed them is split into bounds and branched upon.
  double tableLimit = 6.4e7;
  double totalLimit = 1.6e8;
  std::string solverLibrary; ///< of `exact`: path of HiGHS' or CBC's; empty: looked for
};

/// A plan, and what is proved of it.
struct Solution {
  std::vector<int64_t> choice; ///< by node
  double cost = 0;             ///< of the choice, as Problem::cost says
  /// No plan within the budget that honours the pins costs less. `completion` bounds the
  /// plans that leave unreached nodes standard.
  double lowerBound = 0;
  double memory = 0;          ///< of the choice, bytes
  double seconds = 0;         ///< of the search
  double cpuSeconds = 0;      ///< of it, on the one core that it uses
  bool stoppedByTime = false; ///< the gap is what the time limit left

  /// Relative distance between cost and bound, 0 when they meet.
  double gap() const;
};

/// Searches. Errors: a malformed problem, a budget that no plan meets (with the least memory that
/// one can reach and the node that needs most of it), `exact` without a solver (with what to
/// install). Deterministic unless the time limit is hit; of equal plans the one found first by
/// lowest strategy is taken.
Expected<Solution> solve(const Problem &problem, const Options &options);

/// Writes the problem as a mixed-integer program in MPS, for other solvers.
std::optional<Error> writeMps(const Problem &problem, const Options &options,
                              const std::string &file);

} // namespace tessera::solver

#endif // TESSERA_SOLVER_SOLVER_H
