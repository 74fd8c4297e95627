//===- DistinctRows.h - Distinct rows of tables -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_DISTINCTROWS_H
#define TESSERA_LIB_SOLVER_DISTINCTROWS_H

#include "Model.h"

namespace tessera::solver {

/// Keeps the distinct rows (of `length` numbers each) of a row-major table, in the order of their
/// first occurrence. Returns the number of the kept row, by row.
std::vector<Index> keepDistinct(std::vector<double> &cost, size_t length);

/// The transpose of a row-major table with `columns` columns.
std::vector<double> transposed(const std::vector<double> &cost, size_t columns);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_DISTINCTROWS_H
