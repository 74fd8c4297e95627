//===- GpuPlan.h - Plan the launches of a kernel ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUPLAN_H
#define TESSERA_CODEGEN_CUDA_GPUPLAN_H

#include "../Emit/GpuEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// A planned launch: a group of ops with a scheme, or ops without a group.
struct GpuPlan {
  std::optional<GpuGroup> group;
  llvm::SmallVector<mlir::Operation *> ops; ///< without a group: run in order by one thread
  bool parallel = false;                    ///< one linalg op, with a thread per iteration
  bool nest = false;                        ///< one loop nest with some independent loops
  std::string reason;                       ///< why there is no group

  /// Adds the buffers that the launch reads and writes.
  void effects(llvm::SmallVectorImpl<mlir::Value> &reads,
               llvm::SmallVectorImpl<mlir::Value> &writes) const;
  /// Whether the member and the launch must keep their order.
  bool conflicts(const GpuMember &member) const;
  /// Whether `is` holds for one of its ops.
  bool any(llvm::function_ref<bool(mlir::Operation *)> is) const;
};

/// Adds the buffers that an op and its regions read and write.
void effectsOf(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &reads,
               llvm::SmallVectorImpl<mlir::Value> &writes);

/// The launches of a kernel, a function on memrefs, in order.
std::vector<GpuPlan> planLaunches(mlir::func::FuncOp kernel);

/// Emits a launch without a group (GpuLoops.cpp). Fails with the reason in the builder.
mlir::FailureOr<GpuShape> emitLoops(const GpuPlan &plan, GpuLaunchBuilder &builder,
                                    GpuLaunchInfo &info);

/// Emits a nest of updates at computed indices, which it replaces, by blocks that own the indices;
/// none if the nest is not of that form.
std::optional<GpuShape> emitScatter(mlir::Operation *nest, GpuLaunchBuilder &builder,
                                    GpuLaunchInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUPLAN_H
