//===- ReadDiagonals.h - Diagonals as look-ups ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_READDIAGONALS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_READDIAGONALS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Reads x[i, i] as a look-up of element i in row i, for which a device needs its rows alone.
void readDiagonals(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_READDIAGONALS_H
