//===- PeelLastMoves.h - Moves that the last iteration wastes ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PEELLASTMOVES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PEELLASTMOVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Takes the last iteration out of loops that move a carry for the next iteration alone, as a ring
/// of devices passes on its keys: the last of n moves is not made. The iterations are unchanged.
void peelLastMoves(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PEELLASTMOVES_H
