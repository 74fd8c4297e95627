//===- LeastMemory.h - Plans that take less memory --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descent from a plan: what makes or reads something that is kept at the worst time is
// cut otherwise, alone or together with a neighbour, as long as the peak falls. Lives are
// those of the plan where a descent begins; the descent is repeated until they hold.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_LEASTMEMORY_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_LEASTMEMORY_H

#include "Memory.h"

namespace tessera::dist {

/// How much a descent does.
enum class DescentEffort {
  quick,  ///< no plan fits: a fraction of the work, in which collectives are not planned
  budget, ///< a plan may fit: few plans are looked at with lives of their own
  full,   ///< the least memory is what the user asks for
};

/// A plan with everything sent as late as it can be, and again for each reader where keeping it
/// takes more; no two changes of neighbours lower its peak. The work is counted; beside it
/// `seconds` bounds the search.
std::vector<int64_t> descendInMemory(mlir::func::FuncOp function, const PropagationGraph &graph,
                                     const StrategyGraph &strategies, std::vector<int64_t> choice,
                                     double seconds, DescentEffort work);

/// A plan that costs the same and takes no more memory, by the lives of the given one.
std::vector<int64_t> lowerAtNoCost(const PropagationGraph &graph, const StrategyGraph &strategies,
                                   const Lives &lives, const std::vector<int64_t> &choice);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_LEASTMEMORY_H
