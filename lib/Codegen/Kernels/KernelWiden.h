//===- KernelWiden.h - Sums of 16-bit floats in f32 -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELWIDEN_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELWIDEN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Gives sums and products of 16-bit floats (Rules/NarrowSums.h), in a kernel on tensors that
/// consists of linalg.generic ops, accumulators of f32, rounded once at the end. It is a part of the
/// kernel's preparation.
void widenSums(mlir::func::FuncOp kernel);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELWIDEN_H
