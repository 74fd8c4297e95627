//===- OverwriteBlocks.h - Write blocks over those read ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_OVERWRITEBLOCKS_H
#define TESSERA_LIB_CODEGEN_OVERWRITEBLOCKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Lets loops that fill a tensor block by block write over a tensor of its type that is not needed
/// afterwards, if each block is read only in the iteration that writes it, before the write. The
/// tensor becomes the initial value of the carry, and is read from there.
void overwriteBlocks(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_OVERWRITEBLOCKS_H
