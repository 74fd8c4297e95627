//===- TakeSlices.h - Parts of arguments are read in place ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_TAKESLICES_H
#define TESSERA_LIB_CODEGEN_TAKESLICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Replaces `dist.slice` of an argument by a slice that begins at the device's index, if only
/// kernels read it: they read the argument in place, and nothing is copied. A weight of which each
/// device updates a part is such an argument.
void takeSlices(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_TAKESLICES_H
