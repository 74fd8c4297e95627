//===- PeelMoves.h - Moves that a loop's ends waste -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_PEELMOVES_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_PEELMOVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Takes iterations out of the loops of a function in the local view whose collectives are wasted:
/// the last one where nothing reads what they make, as what a pipeline's stages pass on after the
/// last micro-batch, and the first one where they move a constant, as its gradients do.
void peelMoves(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_PEELMOVES_H
