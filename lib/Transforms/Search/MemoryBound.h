//===- MemoryBound.h - Memory that no plan does without ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_MEMORYBOUND_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_MEMORYBOUND_H

#include "StrategyGraph.h"

namespace tessera::dist {

/// Bytes on a device that every plan takes.
struct MemoryBound {
  double bytes = 0;
  mlir::Operation *op = nullptr; ///< while which they are taken; null: always, by arguments
};

/// Arguments lie as small as their annotations allow. While a matrix product runs there are, beside
/// them, its operands and its result as one of its strategies has them, and, in whatever form, all
/// that it depends on and that something reads which depends on it: no order and no kernels change
/// that.
MemoryBound provedMemory(mlir::func::FuncOp function, const PropagationGraph &graph,
                         const StrategyGraph &strategies);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_MEMORYBOUND_H
