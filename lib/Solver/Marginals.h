//===- Marginals.h - The least cost of each strategy ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_MARGINALS_H
#define TESSERA_LIB_SOLVER_MARGINALS_H

#include "MinPlus.h"

#include <optional>

namespace tessera::solver {

/// The tables of an elimination, and the least cost of the rest of the problem for each entry.
struct Marginals {
  double optimum = 0;
  std::vector<Table> tables; ///< by number in the plan
  /// By step, over the dimensions of its result: the least cost of all that it does not contain.
  std::vector<Table> outside;
  /// By node, by position in its domain: the least cost of a choice that takes the strategy.
  std::vector<std::vector<double>> ofStrategy;
};

/// Two passes over an exact plan without pruning (messages to the root and back). Empty if the time
/// is over.
std::optional<Marginals> findMarginals(const Model &model, const Plan &plan,
                                       const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_MARGINALS_H
