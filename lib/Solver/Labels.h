//===- Labels.h - Elimination with cost and memory ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under a budget an entry of a table is not one cost but a list of labels (cost,
// memory), none of which is worse in both. A label is dropped when no plan through it
// can be within the budget and cheaper than the best plan known: its cost plus price
// times memory, plus what the rest costs at best at that price, exceeds what a better
// plan has.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOLVER_LABELS_H
#define TESSERA_LIB_SOLVER_LABELS_H

#include "Marginals.h"

namespace tessera::solver {

/// What the lists of labels are pruned with.
struct LabelBounds {
  double budget;          ///< bytes
  double price;           ///< seconds a byte; the marginals are those of cost + price x memory
  double cost;            ///< of the best plan known: labels that cannot be cheaper go
  size_t mostLabels = 64; ///< of an entry; more are thinned out, which loses the proof
};

struct Constrained {
  std::vector<int64_t> choice; ///< empty: no plan is within the budget and cheaper
  bool isExact = true;         ///< no list was thinned out
};

/// The cheapest choice within the budget over the model's strategies, if cheaper than the best
/// known. `memory` is by node and position. Nothing when the time is over.
std::optional<Constrained> minimiseLabels(const Model &model, const Plan &plan,
                                          const Marginals &marginals,
                                          const std::vector<std::vector<double>> &memory,
                                          const LabelBounds &bounds, const Deadline &deadline);

} // namespace tessera::solver

#endif // TESSERA_LIB_SOLVER_LABELS_H
