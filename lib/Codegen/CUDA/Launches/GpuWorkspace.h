//===- GpuWorkspace.h - Plan the temporaries of a kernel --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUWORKSPACE_H
#define TESSERA_CODEGEN_CUDA_GPUWORKSPACE_H

#include "tessera/Codegen/CUDA/GpuCompiler.h"

#include "mlir/IR/Value.h"

namespace tessera::codegen {

/// The buffers that a kernel's launches pass to each other, in one block of memory.
class GpuWorkspace {
public:
  /// Records that launch number `launch` has the buffer as argument `argument`. Launches come in
  /// order.
  void use(mlir::Value root, size_t launch, size_t argument);
  /// Sets the size of the workspace and the offsets of the arguments in it.
  void layOut(runtime::GpuKernel &kernel) const;
  void clear();

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<size_t, size_t>>> uses;
  llvm::SmallVector<mlir::Value> order; ///< of first use
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUWORKSPACE_H
