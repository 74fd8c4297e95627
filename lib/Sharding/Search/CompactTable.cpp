//===- CompactTable.cpp - An edge's costs without repetition ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompactTable.h"

#include "DistinctRows.h"
#include "Kernels.h"

#include <algorithm>
#include <limits>

namespace tessera::sharding::search {

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

void CompactTable::least(bool byRow, const std::vector<double> &added,
                         std::vector<double> &out) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Side &from = byRow ? row : column, &to = byRow ? column : row;
  shift.assign(from.distinct, infinity);
  for (size_t a = 0; a < added.size(); ++a)
    shift[from.of[a]] = std::min(shift[from.of[a]], added[a]);
  best.assign(to.distinct, infinity);
  minOfShifted(best.data(), to.distinct, from.cost.data(), to.distinct, shift.data(),
               from.distinct);
  out.resize(to.of.size());
  for (size_t b = 0; b < out.size(); ++b)
    out[b] = best[to.of[b]];
}

} // namespace tessera::sharding::search
