//===- Labels.h - Elimination with cost and memory --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under a budget an entry of a table is not one cost but a list of labels (cost,
// memory), none of which is dominated by another. A label is dropped if no plan through
// it can be within the budget and cheaper than the best known plan: its cost plus price
// times memory, plus the least that the rest costs at that price, exceeds the value of
// any better plan.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_LABELS_H
#define TESSERA_LIB_SOLVER_LABELS_H

#include "Marginals.h"

namespace tessera::solver {

/// The bounds by which lists of labels are pruned.
struct LabelBounds {
  double budget;          ///< bytes
  double price;           ///< seconds per byte; the marginals are those of cost + price x memory
  double cost;            ///< of the best known plan: labels that cannot be cheaper are dropped
  size_t mostLabels = 64; ///< per entry; longer lists are thinned, which loses the proof
};

struct Constrained {
  std::vector<int64_t> choice; ///< empty: no plan is within the budget and cheaper
  bool isExact = true;         ///< no list was thinned
};

/// The cheapest choice of the model's strategies within the budget, if cheaper than the best known
/// plan. `memory` is by node and position. Empty if the time is over.
std::optional<Constrained> minimiseLabels(const Model &model, const Plan &plan,
                                          const Marginals &marginals,
                                          const std::vector<std::vector<double>> &memory,
                                          const LabelBounds &bounds, const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_LABELS_H
