//===- GpuOpKernel.h - Kernels that are one operation -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUOPKERNEL_H
#define TESSERA_CODEGEN_CUDA_GPUOPKERNEL_H

#include "tessera/Codegen/Kernels/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace tessera::codegen {

/// A kernel that is one op on its arguments.
template <class Op> struct OpKernel {
  mutable Op op;                        ///< accessors of ops are not const
  llvm::SmallVector<unsigned> operands; ///< their arguments
  /// The arguments of the results; without one for those that nobody reads.
  llvm::SmallVector<std::optional<unsigned>> results;
};

/// The op that the kernel consists of, if there is one; a copy stores each result to its
/// destination.
template <class Op> std::optional<OpKernel<Op>> matchOpKernel(mlir::func::FuncOp kernel) {
  OpKernel<Op> match;
  mlir::Block &body = kernel.getBody().front();
  for (mlir::Operation &op : body.without_terminator()) {
    auto found = llvm::dyn_cast<Op>(op);
    if (found && !match.op)
      match.op = found;
    else if (!llvm::isa<mlir::linalg::CopyOp>(op))
      return std::nullopt;
  }
  if (!match.op)
    return std::nullopt;
  for (mlir::Value operand : match.op->getOperands()) {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
    if (!argument)
      return std::nullopt;
    match.operands.push_back(argument.getArgNumber());
  }
  int64_t reads = kernel->getAttrOfType<mlir::IntegerAttr>(kKernelReadsAttr).getInt();
  match.results.resize(match.op->getNumResults());
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto copy = value.getDefiningOp<mlir::linalg::CopyOp>();
    if (!copy || copy.getInputs()[0].getDefiningOp() != match.op ||
        copy.getOutputs()[0] != kernel.getArgument(reads + i))
      return std::nullopt;
    auto result = llvm::cast<mlir::OpResult>(copy.getInputs()[0]);
    std::optional<unsigned> &place = match.results[result.getResultNumber()];
    if (place)
      return std::nullopt;
    place = reads + i;
  }
  return match;
}

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUOPKERNEL_H
