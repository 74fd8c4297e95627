//===- Eliminate.h - Running an elimination plan ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_ELIMINATE_H
#define TESSERA_LIB_SOLVER_ELIMINATE_H

#include "MinPlus.h"

#include <optional>

namespace tessera::solver {

/// The optimum over a model's strategies.
struct Optimum {
  double cost;
  std::vector<int64_t> choice; ///< strategies of the problem, by node
};

/// Runs a plan made for this model; empty if the time is over. Ties go to the lowest strategy.
std::optional<Optimum> eliminate(const Model &model, const Plan &plan, const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_ELIMINATE_H
