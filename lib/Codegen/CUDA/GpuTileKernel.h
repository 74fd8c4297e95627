//===- GpuTileKernel.h - Build kernels whose launches use tiles -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H
#define TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H

#include "GpuEmitState.h"
#include "GpuLaunchBuilder.h"
#include "GpuStages.h"

namespace tessera::codegen {

/// Builds the launches of a kernel that consists of one operation.
class TileKernel {
public:
  TileKernel(mlir::func::FuncOp kernel, mlir::ModuleOp launches, llvm::StringRef symbol,
             llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result, GpuKernelInfo &info);

  /// The buffer of an argument.
  mlir::Value root(unsigned argument) { return buffers->getArgument(argument); }
  llvm::SmallVector<mlir::Value> roots(llvm::ArrayRef<unsigned> arguments);
  /// Memory for values passed from one launch to the next. Results of several calls may overlap.
  mlir::Value workspace(mlir::Type element, int64_t elements);
  /// Adds a launch; `emit` writes the code of a thread and returns the grid.
  void launch(mlir::Location loc, GpuScheme scheme,
              llvm::function_ref<GpuShape(GpuLaunchBuilder &, GpuLaunchInfo &)> emit);

private:
  mlir::ModuleOp launches;
  std::string symbol;
  llvm::ArrayRef<bool> mayAlias;
  runtime::GpuKernel &result;
  GpuKernelInfo &info;
  mlir::OwningOpRef<mlir::func::FuncOp> buffers; ///< its arguments represent the buffers
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H
