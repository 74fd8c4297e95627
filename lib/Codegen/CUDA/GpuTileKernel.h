//===- GpuTileKernel.h - Kernels of launches with tiles ---------*- C++ -*-===//
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

/// Makes the launches of a kernel that is one operation.
class TileKernel {
public:
  TileKernel(mlir::func::FuncOp kernel, mlir::ModuleOp launches, llvm::StringRef symbol,
             llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result, GpuKernelInfo &info);

  /// The buffer of an argument.
  mlir::Value root(unsigned argument) { return buffers->getArgument(argument); }
  llvm::SmallVector<mlir::Value> roots(llvm::ArrayRef<unsigned> arguments);
  /// Memory that launches one after the other pass values in. What one call returned may be
  /// overwritten behind the next one.
  mlir::Value workspace(mlir::Type element, int64_t elements);
  /// Adds a launch; `emit` writes what a thread does, and returns the grid.
  void launch(mlir::Location loc, GpuScheme scheme,
              llvm::function_ref<GpuShape(GpuLaunchBuilder &, GpuLaunchInfo &)> emit);

private:
  mlir::ModuleOp launches;
  std::string symbol;
  llvm::ArrayRef<bool> mayAlias;
  runtime::GpuKernel &result;
  GpuKernelInfo &info;
  mlir::OwningOpRef<mlir::func::FuncOp> buffers; ///< whose arguments stand for buffers
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H
