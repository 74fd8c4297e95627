//===- FollowLoops.h - Loops that follow others -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Removes loops of which only the iteration counts that an affine function of the others names:
/// of `x[arange(n), i]` and its derivative, rows are no longer searched for, and a device that has
/// rows looks up their elements itself.
void followLoops(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H
