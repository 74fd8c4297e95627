//===- CompleteChoice.h - The best of what is left to choose ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SOLVER_COMPLETECHOICE_H
#define TESSERA_SOLVER_COMPLETECHOICE_H

#include "tessera/Solver/Problem.h"

namespace tessera::solver {

/// Completes a choice: nodes whose choice is -1 get the strategy that costs least beside those that
/// are chosen, the first of equals. No two of them have an edge.
std::vector<int64_t> completeChoice(const Problem &problem, std::vector<int64_t> choice);

} // namespace tessera::solver

#endif // TESSERA_SOLVER_COMPLETECHOICE_H
