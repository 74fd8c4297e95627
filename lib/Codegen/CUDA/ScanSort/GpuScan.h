//===- GpuScan.h - Kernels of one scan --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSCAN_H
#define TESSERA_CODEGEN_CUDA_GPUSCAN_H

#include "../Tiles/GpuOpKernel.h"
#include "../Tiles/GpuTileKernel.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

namespace tessera::codegen {

using ScanKernel = OpKernel<ext::ScanOp>;

/// The scan that the kernel consists of, if there is one and its launches have few enough blocks.
std::optional<ScanKernel> matchScan(mlir::func::FuncOp kernel);

/// Emits the launches of a scan.
void emitScan(mlir::func::FuncOp kernel, const ScanKernel &scan, mlir::ModuleOp launches,
              llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result,
              GpuKernelInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSCAN_H
