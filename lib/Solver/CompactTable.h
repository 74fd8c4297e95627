//===- CompactTable.h - Costs of an edge without repetition -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strategies of an op with the same layout of a tensor have equal rows in the tensor's
// table: of 200 rows a few dozen are distinct. Minima are taken over the distinct rows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_COMPACTTABLE_H
#define TESSERA_LIB_SOLVER_COMPACTTABLE_H

#include "Model.h"

namespace tessera::solver {

class CompactTable {
public:
  /// The rows and columns of a table that are in two domains, in the order of the domains.
  CompactTable(const EdgeTable &table, const Domain &rows, const Domain &columns);

  /// The minima of the costs less `taken`, out[b] = min over a of table[a][b] - taken[a] if
  /// `byRow`, else out[a] = min over b of table[a][b] - taken[b]. Subtracts the least of `out` from
  /// all and returns it.
  double least(bool byRow, const std::vector<double> &taken, std::vector<double> &out) const;
  /// The same in single precision, in half the time.
  double leastInSinglePrecision(bool byRow, const std::vector<double> &taken,
                                std::vector<double> &out) const;

private:
  struct Side {
    std::vector<Index> of;    ///< the distinct row (or column), by position in the domain
    Index distinct = 0;       ///< the number of distinct rows (or columns)
    std::vector<double> cost; ///< row-major: this side's distinct rows x the other side's
    mutable std::vector<float> singleCost; ///< the same in single precision, once computed
  };
  Side row, column;
};

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_COMPACTTABLE_H
