//===- TakeUnitDims.h - Read tensors through unit dimensions ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_TAKEUNITDIMS_H
#define TESSERA_LIB_CODEGEN_TAKEUNITDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Lets ops read the source of a reshape that only adds dimensions of extent 1, by another indexing
/// map. So a producer and its consumers can share a kernel.
void takeUnitDims(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_TAKEUNITDIMS_H
