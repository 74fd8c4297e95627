//===- GpuPlan.h - Which ops of a kernel make a launch ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUPLAN_H
#define TESSERA_CODEGEN_CUDA_GPUPLAN_H

#include "GpuEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// A launch to be: a group of ops that have a scheme, or some ops by themselves.
struct GpuPlan {
  std::optional<GpuGroup> group;
  llvm::SmallVector<mlir::Operation *> ops; ///< without a group: in order, by one thread
  bool parallel = false;                    ///< one linalg op, a thread an iteration
  bool nest = false;                        ///< one nest of loops, some of which are independent
  std::string reason;                       ///< why not in a group

  /// Adds the buffers that the launch reads and writes.
  void effects(llvm::SmallVectorImpl<mlir::Value> &reads,
               llvm::SmallVectorImpl<mlir::Value> &writes) const;
  /// Whether the member must keep its order with the launch.
  bool conflicts(const GpuMember &member) const;
  /// Whether one of its ops is what `is` asks for.
  bool any(llvm::function_ref<bool(mlir::Operation *)> is) const;
};

/// What an op, with all in its regions, reads and writes.
void effectsOf(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &reads,
               llvm::SmallVectorImpl<mlir::Value> &writes);

/// The launches of a kernel, a function on memrefs, in order.
std::vector<GpuPlan> planLaunches(mlir::func::FuncOp kernel);

/// The work of a launch without a group (GpuLoops.cpp). Fails with the reason in the builder.
mlir::FailureOr<GpuShape> emitLoops(const GpuPlan &plan, GpuLaunchBuilder &builder,
                                    GpuLaunchInfo &info);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUPLAN_H
