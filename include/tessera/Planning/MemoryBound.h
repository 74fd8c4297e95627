//===- MemoryBound.h - Lower bound on the memory of all plans ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_MEMORYBOUND_H
#define TESSERA_PLANNING_MEMORYBOUND_H

#include "tessera/Planning/StrategyGraph.h"

namespace tessera::dist {

/// Bytes per device that every plan needs.
struct MemoryBound {
  double bytes = 0;
  mlir::Operation *op = nullptr; ///< while which they are live; null: always, by arguments
};

/// Arguments have the smallest shardings that their annotations allow. While a matrix product runs,
/// these values are also live: its operands and its result in the shardings of one of its
/// strategies, and, in some form, all values on which it depends and that a dependent op reads.
/// This holds for any order of ops and any kernels.
MemoryBound provedMemory(mlir::func::FuncOp function, const PropagationGraph &graph,
                         const StrategyGraph &strategies);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_MEMORYBOUND_H
