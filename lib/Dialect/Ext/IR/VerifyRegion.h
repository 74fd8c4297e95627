//===- VerifyRegion.h - Regions that compute scalars ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_VERIFYREGION_H
#define TESSERA_LIB_DIALECT_EXT_IR_VERIFYREGION_H

#include "mlir/IR/Operation.h"

namespace tessera::ext {

/// Checks (E3): a region computes scalars of scalars and ends in ext.yield.
llvm::LogicalResult verifyScalarRegion(mlir::Operation *op, mlir::Region &region);

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_VERIFYREGION_H
