//===- Compile.h - From IR to an artifact -----------------------*- C++ -*-===//
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

struct ArtifactOptions {
  CpuOptions cpu;
  /// When given, kernels are compiled for these architectures and not for the CPU.
  std::optional<GpuOptions> gpu;
  /// The artifact's `report` section: JSON, or nothing.
  std::string report;
};

/// The structures of docs/step-format.md.
struct SerializedProgram {
  runtime::Program program;
  runtime::Bytes constants; ///< equal ones once, each 64-byte aligned
};

/// Serialises the one `rt.program` of a module. `tasks`, in the order of `kernelsOf`, is how far
/// each kernel can be split; empty: no kernel is. Fails with a located diagnostic when there is not
/// one program, or when transfers between parts wait for each other.
mlir::FailureOr<SerializedProgram> serialize(mlir::ModuleOp module,
                                             llvm::ArrayRef<int64_t> tasks = {});

/// The kernels of a module in order: what `LaunchStep::kernel` counts.
llvm::SmallVector<mlir::func::FuncOp> kernelsOf(mlir::ModuleOp module);

/// Lowers a module of the local view to its `rt.program`, in place. `forGpu`: products take the
/// bias and the activation behind them.
mlir::LogicalResult lowerToRt(mlir::ModuleOp module, bool forGpu = false);

/// Compiles a module that has an `rt.program`: kernels, program, constants, report. The artifact
/// has passed `runtime::verify`. `infos`, when given, gets what became of each kernel on the CPU,
/// `gpuInfos` on a GPU.
mlir::FailureOr<runtime::Artifact> compileRt(mlir::ModuleOp module, const ArtifactOptions &options,
                                             std::vector<KernelInfo> *infos = nullptr,
                                             std::vector<GpuKernelInfo> *gpuInfos = nullptr);

/// Both on a copy of `localView`, and the bytes of the file: what the driver runs and writes.
mlir::FailureOr<runtime::Artifact> compileToArtifact(mlir::ModuleOp localView,
                                                     const ArtifactOptions &options,
                                                     std::vector<KernelInfo> *infos = nullptr);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_COMPILE_H
