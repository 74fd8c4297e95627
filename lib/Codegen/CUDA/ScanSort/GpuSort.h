//===- GpuSort.h - Kernels of one sort --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSORT_H
#define TESSERA_CODEGEN_CUDA_GPUSORT_H

#include "../Tiles/GpuOpKernel.h"
#include "../Tiles/GpuTileKernel.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

namespace tessera::codegen {

using SortKernel = OpKernel<ext::SortOp>;

/// The sort that the kernel consists of, if there is one and its launches have few enough blocks.
std::optional<SortKernel> matchSort(mlir::func::FuncOp kernel);

/// Emits the launches of a sort. `byDigits`: not by merges, also if these move fewer bytes.
void emitSort(mlir::func::FuncOp kernel, const SortKernel &sort, mlir::ModuleOp launches,
              llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias, bool byDigits,
              runtime::GpuKernel &result, GpuKernelInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSORT_H
