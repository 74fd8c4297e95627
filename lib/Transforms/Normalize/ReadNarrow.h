//===- ReadNarrow.h - Products of narrow values -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// If a contraction multiplies a 16-bit float by an extended value of the same type, it reads the
/// latter without the extension: the products are equal, half of the bytes are read and sent, and
/// libraries support such products. They are frequent in derivatives of 16-bit computations.
void readNarrow(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_READNARROW_H
