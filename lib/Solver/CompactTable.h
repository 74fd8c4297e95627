//===- CompactTable.h - An edge's costs without repetition -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strategies of an op that lay a tensor alike have equal rows in the tensor's table: of
// 200 rows a few dozen are distinct. Minima over rows are taken over those.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_COMPACTTABLE_H
#define TESSERA_LIB_SOLVER_COMPACTTABLE_H

#include "Model.h"

namespace tessera::solver {

class CompactTable {
public:
  /// The rows and columns of a table that are in two domains, in their order.
  CompactTable(const EdgeTable &table, const Domain &rows, const Domain &columns);

  /// With what is left of the costs, out[b] = min over a of table[a][b] - taken[a] when `byRow`,
  /// else out[a] = min over b of table[a][b] - taken[b], less the least of `out`. Returns that.
  double least(bool byRow, const std::vector<double> &taken, std::vector<double> &out) const;
  /// The same with seven digits, in half the time.
  double leastRoughly(bool byRow, const std::vector<double> &taken, std::vector<double> &out) const;

private:
  struct Side {
    std::vector<Index> of;    ///< by position in the domain: the distinct row (or column)
    Index distinct = 0;       ///< how many there are
    std::vector<double> cost; ///< distinct x distinct of the other side, this one's rows
    mutable std::vector<float> roughCost; ///< the same, once it was asked for
  };
  Side row, column;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_COMPACTTABLE_H
