//===- ReadNarrow.h - Products of narrow values ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Where a contraction multiplies a 16-bit float with one of the same type that was extended, it
/// reads the latter as it was before: the products are the same, half as much is read and sent, and
/// libraries have such products. Derivatives of computations in 16 bits are full of them.
void readNarrow(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H
