//===- CompactTable.cpp - Costs of an edge without repetition -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompactTable.h"

#include "DistinctRows.h"
#include "InnerLoops.h"

#include <algorithm>
#include <limits>

namespace tessera::solver {

CompactTable::CompactTable(const EdgeTable &table, const Domain &rows, const Domain &columns) {
  row.cost.reserve(rows.size() * columns.size());
  for (Index a : rows) {
    const double *from = table.cost.data() + a * table.columns;
    for (Index b : columns)
      row.cost.push_back(from[b]);
  }
  row.of = keepDistinct(row.cost, columns.size());
  row.distinct = static_cast<Index>(row.cost.size() / columns.size());
  column.cost = transposed(row.cost, columns.size());
  column.of = keepDistinct(column.cost, row.distinct);
  column.distinct = static_cast<Index>(column.cost.size() / row.distinct);
  row.cost = transposed(column.cost, row.distinct);
}

/// By column, the minimum over rows of the cost less what is taken from the row. Subtracts the
/// least of them from all and returns it. Rows and columns are numbers of distinct ones.
template <typename Real>
static double leastOf(const std::vector<Real> &cost, const std::vector<Index> &rowOf, Index rows,
                      const std::vector<Index> &columnOf, Index columns,
                      const std::vector<double> &taken, std::vector<double> &out) {
  constexpr Real infinity = std::numeric_limits<Real>::infinity();
  static thread_local std::vector<Real> shift, best; // called a million times
  shift.assign(rows, infinity);
  for (size_t a = 0; a < taken.size(); ++a)
    shift[rowOf[a]] = std::min(shift[rowOf[a]], static_cast<Real>(-taken[a]));
  best.assign(columns, infinity);
  minOfShifted(best.data(), columns, cost.data(), columns, shift.data(), rows);
  double least = *std::min_element(best.begin(), best.end());
  out.resize(columnOf.size());
  for (size_t b = 0; b < out.size(); ++b)
    out[b] = best[columnOf[b]] - least;
  return least;
}

double CompactTable::least(bool byRow, const std::vector<double> &taken,
                           std::vector<double> &out) const {
  const Side &from = byRow ? row : column, &to = byRow ? column : row;
  return leastOf(from.cost, from.of, from.distinct, to.of, to.distinct, taken, out);
}

double CompactTable::leastInSinglePrecision(bool byRow, const std::vector<double> &taken,
                                            std::vector<double> &out) const {
  constexpr double most = 1e30; // finite even if several are added
  const Side &from = byRow ? row : column, &to = byRow ? column : row;
  if (from.singleCost.empty())
    for (double cost : from.cost)
      from.singleCost.push_back(static_cast<float>(std::min(cost, most)));
  return leastOf(from.singleCost, from.of, from.distinct, to.of, to.distinct, taken, out);
}

} // namespace tessera::solver
