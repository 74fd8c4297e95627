//===- CompactTable.cpp - An edge's costs without repetition ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompactTable.h"
#include "Kernels.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace tessera::sharding::search {

/// Keeps the distinct rows of a row-major table, in their first order.
static Index keepDistinct(std::vector<double> &cost, size_t length, std::vector<Index> &of) {
  std::unordered_map<std::string_view, Index> numbers;
  std::vector<double> kept;
  kept.reserve(cost.size()); // views into it stay where they are
  for (const double *row = cost.data(); row != cost.data() + cost.size(); row += length) {
    const double *copy = kept.data() + kept.size();
    kept.insert(kept.end(), row, row + length);
    auto [it, isNew] =
        numbers.try_emplace({reinterpret_cast<const char *>(copy), length * sizeof(double)},
                            static_cast<Index>(numbers.size()));
    if (!isNew)
      kept.resize(kept.size() - length);
    of.push_back(it->second);
  }
  cost = std::move(kept);
  return static_cast<Index>(numbers.size());
}

static std::vector<double> transposed(const std::vector<double> &cost, size_t columns) {
  size_t rows = cost.size() / columns;
  std::vector<double> result(cost.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      result[c * rows + r] = cost[r * columns + c];
  return result;
}

CompactTable::CompactTable(const EdgeTable &table, const Domain &rows, const Domain &columns) {
  row.cost.reserve(rows.size() * columns.size());
  for (Index a : rows) {
    const double *from = table.cost.data() + a * table.columns;
    for (Index b : columns)
      row.cost.push_back(from[b]);
  }
  row.distinct = keepDistinct(row.cost, columns.size(), row.of);
  column.cost = transposed(row.cost, columns.size());
  column.distinct = keepDistinct(column.cost, row.distinct, column.of);
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
