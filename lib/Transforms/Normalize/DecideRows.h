//===- DecideRows.h - Checks that numbers of rows decide --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEROWS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Removes choices by comparisons that always hold: of the numbers of rows with the index of the
/// row, and of a tensor with itself.
void decideRows(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_DECIDEROWS_H
