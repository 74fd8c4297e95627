//===- Milp.h - The problem as a mixed-integer program ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variable x a strategy (0 or 1, one of a node's is 1), a variable y a cell of an
// edge's table whose sums over rows and columns are the x of both ends (the local
// polytope). Equal rows and columns of a table share their y. Nothing of the other
// modes is used here: this one is to check them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MILP_H
#define TESSERA_LIB_SOLVER_MILP_H

#include "Model.h"
#include "tessera/Solver/Solver.h"

namespace tessera::solver {

/// min cost · x, lower <= Ax <= upper, 0 <= x <= 1; the first `numInteger` columns are 0 or 1.
struct Milp {
  Milp(const Source &source, const Domains &domains, double budget);

  std::vector<double> cost; ///< by column, scaled by `scale`
  std::vector<std::string> columnNames;
  std::vector<double> lower, upper; ///< by row; minus infinity is a lower bound too
  std::vector<int> start, index;    ///< by column: rows, column after column
  std::vector<double> value;
  int numInteger = 0;
  std::vector<int> firstOf; ///< by node: its first column
  double scale = 1;         ///< costs are of the order of 1 when multiplied by it
  int memoryRow = -1;       ///< memory over budget <= 1, when there is a budget

  /// The choice that the first columns' values mean.
  std::vector<int64_t> choiceOf(const Domains &domains, const std::vector<double> &values) const;
  /// Writes free-format MPS; false when the file cannot be written.
  bool write(const std::string &file) const;
};

/// What a solver says.
struct MilpResult {
  std::vector<double> values; ///< by column; empty: no solution was found
  double bound = 0;           ///< proved, scaled
  bool isDone = true;         ///< not stopped by the time limit
  bool isInfeasible = false;
};

/// HiGHS through its C interface in a shared library, or CBC as a program. `error` says what to
/// install when there is neither, or what went wrong.
Expected<MilpResult> runMilp(const Milp &milp, const std::string &library, double seconds);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MILP_H
