//===- LeastMemory.h - Local search for plans with less memory --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descent from a plan: producers and readers of tensors that are live at the worst time
// are recut, alone or together with a neighbor, while the peak falls. A descent uses the
// live ranges of its first plan, and is repeated to a fixpoint.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_LEASTMEMORY_H
#define TESSERA_PLANNING_LEASTMEMORY_H

#include "tessera/Planning/PlanMemory.h"

namespace tessera::dist {

/// The effort of a descent.
enum class DescentEffort {
  quick,  ///< no plan fits: a fraction of the work, without planning collectives
  budget, ///< a plan may fit: few plans have exact live ranges
  full,   ///< the objective is memory
};

/// A plan that runs every collective as late as possible, and repeats it for each reader if keeping
/// its result takes more; no two changes of neighbors lower its peak. The work is counted;
/// `seconds` also bounds the search.
std::vector<int64_t> descendByPeakMemory(mlir::func::FuncOp function, const PropagationGraph &graph,
                                         const StrategyGraph &strategies,
                                         std::vector<int64_t> choice, double seconds,
                                         DescentEffort work);

/// A plan with equal cost and no more memory, derived from the live ranges of the given plan.
std::vector<int64_t> reduceMemoryAtEqualCost(const PropagationGraph &graph,
                                             const StrategyGraph &strategies,
                                             const PlanLiveness &lives,
                                             const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_LEASTMEMORY_H
