//===- GpuSums.h - Separate sums from their elements ------------*- C++ -*-===//
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

/// Whether another op of the kernel computes or reads the operand, one element per iteration of
/// `op`.
bool isSharedWhole(mlir::linalg::GenericOp op, mlir::OpOperand &operand);

/// Splits ops that compute elements and also sum them up over rows or entirely: the elements belong
/// to the launch of their rows, the sums possibly to another.
void separateSums(mlir::func::FuncOp kernel);

/// Turns a sum of all elements into sums of the rows and the sum of these, if another op of the
/// kernel iterates over the rows anyway. Returns whether it did.
bool sumRowsFirst(mlir::linalg::GenericOp op, mlir::IRRewriter &rewriter);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSUMS_H
