//===- GpuSums.h - Sums beside what they sum up -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSUMS_H
#define TESSERA_CODEGEN_CUDA_GPUSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::codegen {

/// Whether another op of the kernel makes the operand, an element an iteration of `op`, or reads it
/// so.
bool isSharedWhole(mlir::linalg::GenericOp op, mlir::OpOperand &operand);

/// Cuts ops in two that compute elements and sum them up over rows or altogether: the elements
/// belong to the launch of their rows, the sums may not.
void separateSums(mlir::func::FuncOp kernel);

/// Of a sum of everything, makes sums of the rows and the sum of these, where another op of the
/// kernel goes over the rows anyway. Returns whether it did.
bool sumRowsFirst(mlir::linalg::GenericOp op, mlir::IRRewriter &rewriter);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSUMS_H
