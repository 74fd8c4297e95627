//===- RecomputeStacks.h - Shares that loops keep ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_RECOMPUTESTACKS_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_RECOMPUTESTACKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// The iterations of the loops around the ops of a block, which keep what their derivatives read
/// once for each; loops without a constant number count as one.
int64_t iterationsOf(mlir::Block &block);

/// Where a loop keeps the scores or shares of an attention for each of its iterations, which only
/// the loop of its derivative reads, recomputes them there from query and key, if all iterations
/// together keep at least `leastScoreBytes`.
void recomputeStacks(mlir::func::FuncOp function, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_RECOMPUTESTACKS_H
