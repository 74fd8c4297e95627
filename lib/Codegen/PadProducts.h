//===- PadProducts.h - Products with aligned rows ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PADPRODUCTS_H
#define TESSERA_LIB_CODEGEN_PADPRODUCTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// For GPUs: pads the operands of large products of 16-bit floats, of which the rows of one are no
/// multiple of 16 bytes, such as logits of 50,257 words, with zeros. The library's fast kernels
/// need aligned rows.
void padProducts(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PADPRODUCTS_H
