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

/// The outputs with all loops; empty if the value of one depends on an output.
llvm::SmallVector<unsigned> wholeOutputs(mlir::linalg::GenericOp op);

/// Creates an op with some outputs of `op`; `known` are additional inputs that replace values of
/// its body.
mlir::linalg::GenericOp takeOutputs(mlir::linalg::GenericOp op, llvm::ArrayRef<unsigned> outputs,
                                    llvm::ArrayRef<std::pair<mlir::Value, mlir::OpOperand *>> known,
                                    llvm::ArrayRef<mlir::Value> knownInputs,
                                    mlir::IRRewriter &rewriter);

/// Splits the maximum of few long rows and the sum relative to it into parts, in one walk.
void splitOnlineSums(mlir::func::FuncOp kernel);

/// Turns a sum of all elements into sums of the rows and the sum of these, if another op of the
/// kernel iterates over the rows anyway. Returns whether it did.
bool sumRowsFirst(mlir::linalg::GenericOp op, mlir::IRRewriter &rewriter);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSUMS_H
