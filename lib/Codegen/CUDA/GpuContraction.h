//===- GpuContraction.h - Contractions with strided operands ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction is a product of matrices whose rows, columns and summed index are groups of loops
// (an implicit GEMM): a convolution reads its windows in place, and no matrix of them is in memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H
#define TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H

#include "GpuStages.h"
#include "GpuTileWriter.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

namespace tessera::codegen {

/// Loops as one index, the last loop fastest.
struct LoopGroup {
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<std::array<int64_t, 3>> strides; ///< in A, B and C, in elements
  int64_t size() const;
};

/// C[batch][row][column] = sum of A[batch][row][k] * B[batch][column][k]. Neighbouring columns are
/// neighbours in C, where any index of C has this property.
struct ContractionLoops {
  explicit ContractionLoops(rt::ContractionOp op);

  LoopGroup batches, rows, columns, sums;
  std::array<int64_t, 3> starts;
  bool swapped = false; ///< A and B are the op's B and A
};

/// A kernel that is a chain of contractions, each of which writes to the result of the one before.
struct ContractionKernel {
  struct Step {
    rt::ContractionOp op;
    unsigned a, b;    ///< arguments of the kernel
    bool accumulates; ///< adds to what the result holds
  };
  llvm::SmallVector<Step> steps;
  unsigned result;    ///< argument of the kernel
  bool fills = false; ///< the result is zero where no step writes
};
/// Nothing where the kernel computes something else, or more than indices of 32 bits can count.
std::optional<ContractionKernel> matchContractionKernel(mlir::func::FuncOp kernel);

/// The contraction as a convolution or a derivative of one, with the slots of A, B and C; nothing
/// where it is something else.
std::optional<runtime::GpuConvolution> convolutionOf(rt::ContractionOp op,
                                                     std::array<int64_t, 3> slots);

/// Adds the launches of such a kernel to a module: tensor cores (mma.sync) multiply 16-bit
/// operands, FMA those of f32. Few tiles with long sums are cut into parts, which a second launch
/// adds up in order.
void emitContractions(mlir::func::FuncOp kernel, const ContractionKernel &contraction,
                      mlir::ModuleOp launches, llvm::StringRef symbol,
                      llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result,
                      GpuKernelInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H
