//===- GpuLaunchBuilder.h - Build the function of one launch ----*- C++ -*-===//
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

/// The address space number of shared memory in NVPTX.
inline constexpr int64_t kSharedSpace = 3;
/// Attributes of a launch: threads per block, bytes of shared memory.
inline constexpr llvm::StringLiteral kBlockAttr = "gpu.block_size";
inline constexpr llvm::StringLiteral kSharedAttr = "gpu.shared_bytes";
inline constexpr llvm::StringLiteral kSharedAlignmentAttr = "gpu.shared_alignment";
/// Of an exponential: its result is only added to others, of which one is 1 and none is greater.
inline constexpr llvm::StringLiteral kTermAttr = "gpu.term";
inline constexpr llvm::StringLiteral kResidentAttr = "gpu.resident_blocks";

/// Builds `func.func @symbol(%buffers..., %shared : memref<?xi8, 3>)`, the code of one thread.
/// Buffers become arguments at their first use.
class GpuLaunchBuilder {
public:
  /// A buffer that the launch accesses.
  struct Buffer {
    mlir::Value root; ///< of the kernel
    bool written = false;
  };

  GpuLaunchBuilder(mlir::ModuleOp module, llvm::StringRef symbol, mlir::Location loc);

  /// The buffer with its own type; `write` marks it as written.
  mlir::Value buffer(mlir::Value root, bool write);
  /// The buffer as a one-dimensional memref of all its elements.
  mlir::Value flat(mlir::Value root, bool write);
  /// Recomputes a value of the kernel inside the launch. Fails if that could give another value;
  /// `reason` has the explanation.
  mlir::FailureOr<mlir::Value> capture(mlir::Value value);
  /// Allocates `elements` of a type in shared memory, disjoint from all other allocations.
  mlir::Value shared(mlir::Type element, int64_t elements, int64_t alignment = 16);
  /// The index of the block, and of the thread within it.
  mlir::Value blockIndex() const { return block; }
  mlir::Value threadIndex() const { return thread; }
  /// Reads both indices again, for the code that follows: values that are computed from them before
  /// a loop and used after it would take registers in the loop.
  void readIndicesAgain();
  /// The index of the thread, read where the code is.
  mlir::Value readThread();

  /// Ends the function, of blocks of `threads`; registers must suffice for `resident` of them.
  void finish(int64_t threads, int64_t resident = 1);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::func::FuncOp function;
  llvm::SmallVector<Buffer> buffers;
  /// Maps the kernel's values to the launch's.
  mlir::IRMapping mapping;
  std::string reason;
  /// Whether the contents of a buffer may have changed since an op of the kernel read them.
  llvm::function_ref<bool(mlir::Operation *, mlir::Value)> changed = nullptr;
  int64_t sharedBytes = 0, sharedAlignment = 16;
  /// Buffers with elements that are read as scalars.
  llvm::SmallVector<mlir::Value> scalarReads;

private:
  mlir::OpBuilder entry();

  mlir::Operation *anchor; ///< end of the code of the entry
  mlir::Value block, thread;
  llvm::DenseMap<mlir::Value, mlir::Value> flattened;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPULAUNCHBUILDER_H
