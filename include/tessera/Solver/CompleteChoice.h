//===- CompleteChoice.h - Optimal completion of a choice --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SOLVER_COMPLETECHOICE_H
#define TESSERA_SOLVER_COMPLETECHOICE_H

#include "tessera/Solver/Problem.h"

namespace tessera::solver {

/// Completes a choice: each node whose choice is -1 gets the strategy with the least cost given the
/// chosen nodes, the first of equals. No two such nodes have an edge.
std::vector<int64_t> completeChoice(const Problem &problem, std::vector<int64_t> choice);

} // namespace tessera::solver

#endif // TESSERA_SOLVER_COMPLETECHOICE_H
