//===- FollowLoops.h - Remove loops determined by others --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Removes loops with one contributing iteration, given by an affine function of the other loops:
/// `x[arange(n), i]` and its derivative need no search for rows, and a device that holds rows looks
/// up their elements itself.
void followLoops(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLLOWLOOPS_H
