//===- GpuContraction.h - Contractions with strided operands ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction is a product of matrices whose rows, columns and summed index are groups of loops
// (an implicit GEMM): a convolution reads its windows in place, without a matrix of windows in
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H
#define TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H

#include "../GpuStages.h"
#include "../Tiles/GpuTileWriter.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

namespace tessera::codegen {

/// Loops as one index, the last loop fastest.
struct LoopGroup {
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<std::array<int64_t, 3>> strides; ///< in A, B and C, in elements
  int64_t size() const;
};

/// C[batch][row][column] = sum of A[batch][row][k] * B[batch][column][k]. Adjacent columns are
/// contiguous in C if any index of C is.
struct ContractionLoops {
  explicit ContractionLoops(rt::ContractionOp op);

  LoopGroup batches, rows, columns, sums;
  std::array<int64_t, 3> starts;
  bool swapped = false; ///< A and B are the op's B and A
};

/// A kernel that is a chain of contractions, each of which writes to the result of the previous
/// one.
struct ContractionKernel {
  struct Step {
    rt::ContractionOp op;
    unsigned a, b;    ///< arguments of the kernel
    bool accumulates; ///< adds to the result's contents
  };
  llvm::SmallVector<Step> steps;
  unsigned result;    ///< argument of the kernel
  bool fills = false; ///< zeroes the elements of the result that no step writes
};
/// None if the kernel computes something else, or has more iterations than 32-bit indices allow.
std::optional<ContractionKernel> matchContractionKernel(mlir::func::FuncOp kernel);

/// The contraction as a convolution or a derivative of one, with the slots of A, B and C; none if
/// it is something else.
std::optional<runtime::GpuConvolution> convolutionOf(rt::ContractionOp op,
                                                     std::array<int64_t, 3> slots);

/// Adds the launches of such a kernel to a module. Tensor cores (mma.sync) multiply 16-bit
/// operands, FMA those of f32. If there are few tiles with long sums, the sums are split into
/// parts, which a second launch adds up in order.
void emitContractions(mlir::func::FuncOp kernel, const ContractionKernel &contraction,
                      mlir::ModuleOp launches, llvm::StringRef symbol,
                      llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result,
                      GpuKernelInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCONTRACTION_H
