//===- Compile.h - Compile IR to an artifact --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_COMPILE_H
#define TESSERA_CODEGEN_COMPILE_H

#include "tessera/Codegen/CPU/KernelCompiler.h"
#include "tessera/Codegen/CUDA/GpuCompiler.h"
#include "tessera/Runtime/Artifact/Artifact.h"

namespace tessera::codegen {

/// The target of an artifact: this or other CPUs, or if `gpu` is set a GPU (docs/contributing.md, a
/// code target).
struct ArtifactOptions {
  CpuOptions cpu;
  /// Compiles the kernels once for each of these, instead of for `cpu.cpu`; the runtime chooses.
  std::vector<std::string> cpus;
  /// If set, kernels are compiled for these architectures instead of the CPU.
  std::optional<GpuOptions> gpu;
  /// The artifact's `report` section: JSON, or empty.
  std::string report;
};

/// The structures of docs/step-format.md.
struct SerializedProgram {
  runtime::Program program;
  runtime::Bytes constants; ///< without duplicates, each 64-byte aligned
};

/// Serializes the one `rt.program` of a module. Fails with a located diagnostic unless there is one
/// program, or if transfers between parts deadlock. Without constants, which may be large, their
/// slots have offset 0.
mlir::FailureOr<SerializedProgram> serialize(mlir::ModuleOp module, bool withConstants = true);

/// The kernels of a module in the order of `LaunchStep::kernel`.
llvm::SmallVector<mlir::func::FuncOp> kernelsOf(mlir::ModuleOp module);

/// Lowers a module of the local view to its `rt.program`, in place. `forGpu`: products have bias
/// and activation as epilogues.
mlir::LogicalResult lowerToRt(mlir::ModuleOp module, bool forGpu = false);

/// Adds to the arenas of a module's `rt.program` the memory in which the runtime keeps packed
/// operands of products (Runtime/Execution/PackedProducts.h), at most what the peak leaves of
/// `budget` bytes for each device. For host memory.
mlir::LogicalResult packProducts(mlir::ModuleOp module, double budget);

/// Compiles a module that has an `rt.program`: kernels, program, constants, report. The artifact
/// has passed `runtime::verify`. `infos`, if not null, gets the result of each kernel on the CPU,
/// `gpuInfos` on a GPU.
mlir::FailureOr<runtime::Artifact> compileRt(mlir::ModuleOp module, const ArtifactOptions &options,
                                             std::vector<KernelInfo> *infos = nullptr,
                                             std::vector<GpuKernelInfo> *gpuInfos = nullptr);

/// Runs both on a copy of `localView`. The result is the artifact that the driver runs and writes.
mlir::FailureOr<runtime::Artifact> compileToArtifact(mlir::ModuleOp localView,
                                                     const ArtifactOptions &options,
                                                     std::vector<KernelInfo> *infos = nullptr);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_COMPILE_H
