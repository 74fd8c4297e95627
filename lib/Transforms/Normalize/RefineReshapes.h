//===- RefineReshapes.h - Reshapes of as few dims as needed -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_REFINERESHAPES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_REFINERESHAPES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Lets a collapse followed by an expand only merge dimensions that the expand divides otherwise:
/// 12x32x8 -> 3072 -> 12x8x32 becomes 12x32x8 -> 12x256 -> 12x8x32. A dimension that is merged into
/// others from the right cannot be cut without communication.
void refineReshapes(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_REFINERESHAPES_H
