//===- PrepareScalars.h - Scalars that cross steps as tensors ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PREPARESCALARS_H
#define TESSERA_LIB_CODEGEN_PREPARESCALARS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Converts carries of loops and branches, coordinates, induction variables, bounds, conditions and
/// elements extracted from larger tensors to rank-0 tensors.
void prepareScalars(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PREPARESCALARS_H
