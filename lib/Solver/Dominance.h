//===- Dominance.h - Removal of dominated strategies ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strategy of a node is dominated if another one is never worse, whatever the
// neighbors do (R. Goldstein, "Efficient rotamer elimination applied to protein
// side-chains and related spin glasses", Biophysical Journal 66, 1994):
//
//   cost[b] - cost[a] + sum over edges of max over s of (table[b][s] - table[a][s]) <= 0
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_DOMINANCE_H
#define TESSERA_LIB_SOLVER_DOMINANCE_H

#include "Model.h"

namespace tessera::solver {

/// Removes dominated strategies; an optimum remains. With `keepMemory` a strategy is dropped only
/// for one that needs no more memory, so that this holds under every budget. Nodes with equal kind
/// and edges keep equal sets, for folding. After the deadline nothing more is dropped.
Domains removeDominated(const Source &source, const KindCosts &costs, Domains domains,
                        bool keepMemory, const Deadline &deadline);

/// By strategies a, b of one end of an edge, n x n: the maximum over strategies of the other end of
/// the cost of b less that of a. `isRow`: the strategies of this end are the rows.
std::vector<double> worstDifferences(const Matrix &matrix, bool isRow);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_DOMINANCE_H
