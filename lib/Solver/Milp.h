//===- Milp.h - The problem as a mixed-integer program ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variable x per strategy (0 or 1, exactly one per node is 1), and a variable y per
// cell of an edge's table, whose sums over rows and columns are the x of both ends (the
// local polytope). Equal rows and columns of a table share their y. Independent of the
// other modes, which it checks.
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
  std::vector<double> lower, upper; ///< by row; a lower bound may be minus infinity
  std::vector<int> start, index;    ///< by column: rows, column after column
  std::vector<double> value;
  int numInteger = 0;
  std::vector<int> firstOf; ///< by node, its first column
  double scale = 1;         ///< brings the largest cost to the order of 1
  int memoryRow = -1;       ///< memory / budget <= 1; -1 without a budget

  /// The choice given by the values of the first columns.
  std::vector<int64_t> choiceOf(const Domains &domains, const std::vector<double> &values) const;
  /// Writes free-format MPS; false if the file cannot be written.
  bool write(const std::string &file) const;
};

/// The result of a solver.
struct MilpResult {
  std::vector<double> values; ///< by column; empty: no solution found
  double bound = 0;           ///< proved lower bound, scaled
  bool isDone = true;         ///< not stopped by the time limit
  bool isInfeasible = false;
};

/// Runs HiGHS through its C interface in a shared library, or CBC as a program. The error names the
/// package to install if there is neither, or the failure.
Expected<MilpResult> runMilp(const Milp &milp, const std::string &library, double seconds);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MILP_H
