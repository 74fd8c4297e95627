//===- InPlace.h - Whether a kernel may write over an input -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_INPLACE_H
#define TESSERA_LIB_CODEGEN_INPLACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Whether the buffer of the kernel's argument `input` may be that of its destination `output`.
bool canReuseInput(mlir::func::FuncOp kernel, unsigned input, unsigned output);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_INPLACE_H
