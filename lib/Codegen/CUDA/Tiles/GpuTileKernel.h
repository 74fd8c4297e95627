//===- GpuTileKernel.h - Build kernels whose launches use tiles -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H
#define TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H

#include "../Emit/GpuEmitState.h"
#include "../Emit/GpuLaunchBuilder.h"
#include "../GpuStages.h"

namespace tessera::codegen {

/// Builds the launches of a kernel that consists of one operation.
class TileKernel {
public:
  TileKernel(mlir::func::FuncOp kernel, mlir::ModuleOp launches, llvm::StringRef symbol,
             llvm::ArrayRef<bool> mayAlias, runtime::GpuKernel &result, GpuKernelInfo &info);

  /// The buffer of an argument.
  mlir::Value root(unsigned argument) { return buffers->getArgument(argument); }
  llvm::SmallVector<mlir::Value> roots(llvm::ArrayRef<unsigned> arguments);
  /// Memory for values passed from one launch to the next, at `offset` bytes of the workspace, a
  /// multiple of 64. Results of several calls may overlap.
  mlir::Value workspace(mlir::Type element, int64_t elements, int64_t offset = 0);
  /// Adds a launch and returns its number; `emit` writes the code of a thread and returns the grid.
  size_t launch(mlir::Location loc, GpuScheme scheme,
                llvm::function_ref<GpuShape(GpuLaunchBuilder &, GpuLaunchInfo &)> emit);
  /// Adds a launch of the same function as launch `number`, with `blocks` blocks and with other
  /// memory of the workspace in place of some.
  void repeat(size_t number, int64_t blocks,
              llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> replaced,
              const GpuLaunchInfo &launchInfo);
  /// The precision for which the launches that follow are.
  void setPrecision(runtime::GpuPrecision which) { precision = which; }

private:
  mlir::ModuleOp launches;
  std::string symbol;
  llvm::ArrayRef<bool> mayAlias;
  runtime::GpuKernel &result;
  GpuKernelInfo &info;
  runtime::GpuPrecision precision = runtime::GpuPrecision::any;
  mlir::OwningOpRef<mlir::func::FuncOp> buffers; ///< its arguments represent the buffers
  llvm::DenseMap<mlir::Value, int64_t> offsets;  ///< in the workspace
  /// The arguments of each launch.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> rootsOf;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUTILEKERNEL_H
