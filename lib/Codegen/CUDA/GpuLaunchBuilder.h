//===- GpuLaunchBuilder.h - The function of one launch ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPULAUNCHBUILDER_H
#define TESSERA_CODEGEN_CUDA_GPULAUNCHBUILDER_H

#include "tessera/Codegen/CUDA/GpuCompiler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::codegen {

/// The memory space of a block's shared memory, as NVPTX numbers it.
inline constexpr int64_t kSharedSpace = 3;
/// On a launch: threads of a block, bytes of shared memory.
inline constexpr llvm::StringLiteral kBlockAttr = "gpu.block_size";
inline constexpr llvm::StringLiteral kSharedAttr = "gpu.shared_bytes";

/// Builds `func.func @symbol(%buffers..., %shared : memref<?xi8, 3>)`: the work of one thread.
/// Buffers become arguments when they are first asked for.
class GpuLaunchBuilder {
public:
  /// A buffer that the launch touches.
  struct Buffer {
    mlir::Value root; ///< of the kernel
    bool written = false;
  };

  GpuLaunchBuilder(mlir::ModuleOp module, llvm::StringRef symbol, mlir::Location loc);

  /// The buffer, of its own type; with `write` it is noted as written.
  mlir::Value buffer(mlir::Value root, bool write);
  /// The buffer as one dimension of all its elements.
  mlir::Value flat(mlir::Value root, bool write);
  /// A value of the kernel within the launch: what defines it is computed again. Fails where that
  /// could have another outcome; `reason` says why.
  mlir::FailureOr<mlir::Value> capture(mlir::Value value);
  /// `elements` of a type in shared memory, apart from all others.
  mlir::Value shared(mlir::Type element, int64_t elements);
  /// The index of the block, of the thread within it.
  mlir::Value blockIndex() const { return block; }
  mlir::Value threadIndex() const { return thread; }

  /// Ends the function.
  void finish(int64_t threads);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::func::FuncOp function;
  llvm::SmallVector<Buffer> buffers;
  /// From the kernel's values to the launch's.
  mlir::IRMapping mapping;
  std::string reason;
  /// Whether the contents of a buffer may have changed since the kernel's op read them.
  llvm::function_ref<bool(mlir::Operation *, mlir::Value)> changed = nullptr;
  int64_t sharedBytes = 0;
  /// Buffers of which single elements are read as scalars.
  llvm::SmallVector<mlir::Value> scalarReads;

private:
  mlir::OpBuilder entry();

  mlir::Operation *anchor; ///< what belongs to the entry stands before it
  mlir::Value block, thread;
  llvm::DenseMap<mlir::Value, mlir::Value> flattened;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPULAUNCHBUILDER_H
