//===- MultiplyLookedUp.h - Products with looked-up matrices ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_MULTIPLYLOOKEDUP_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_MULTIPLYLOOKEDUP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Multiplies each row by the matrix of its group without a copy of the matrix for each row.
void multiplyLookedUp(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_MULTIPLYLOOKEDUP_H
