//===- Compile.cpp - Compile IR to an artifact ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Compile.h"

#include "tessera/Codegen/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

LogicalResult codegen::lowerToRt(ModuleOp module, bool forGpu) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  CodegenPipelineOptions options;
  options.gpu = forGpu;
  buildCodegenPipeline(manager, options);
  return manager.run(module);
}

/// A module of only the kernels.
static OwningOpRef<ModuleOp> kernelsAlone(ModuleOp module) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  for (func::FuncOp kernel : kernelsOf(module))
    builder.clone(*kernel);
  return alone;
}

/// Compiles the kernels for the CPU, and records the number of tasks of each.
static LogicalResult compileForCpu(ModuleOp kernels, const CpuOptions &options,
                                   std::vector<KernelInfo> *infos, SmallVectorImpl<int64_t> &tasks,
                                   runtime::Bytes &object) {
  if (kernels.getBody()->empty())
    return success();
  std::vector<KernelInfo> compiled;
  FailureOr<std::vector<char>> code = compileKernels(kernels, options, &compiled);
  if (failed(code))
    return failure();
  auto *bytes = reinterpret_cast<const std::byte *>(code->data());
  object = runtime::Bytes(bytes, bytes + code->size());
  for (const KernelInfo &info : compiled)
    tasks.push_back(info.tasks);
  if (infos)
    *infos = std::move(compiled);
  return success();
}

FailureOr<runtime::Artifact> codegen::compileRt(ModuleOp module, const ArtifactOptions &options,
                                                std::vector<KernelInfo> *infos,
                                                std::vector<GpuKernelInfo> *gpuInfos) {
  OwningOpRef<ModuleOp> kernels = kernelsAlone(module);
  SmallVector<int64_t> tasks;
  runtime::Artifact artifact;
  artifact.report = options.report;
  if (options.gpu) {
    FailureOr<runtime::GpuModule> gpu = compileGpuKernels(*kernels, *options.gpu, gpuInfos);
    if (failed(gpu))
      return failure();
    artifact.gpu = std::move(*gpu);
  } else if (failed(compileForCpu(*kernels, options.cpu, infos, tasks, artifact.kernels))) {
    return failure();
  }
  FailureOr<SerializedProgram> serialized = serialize(module, tasks);
  if (failed(serialized))
    return failure();
  artifact.program = std::move(serialized->program);
  artifact.constants = std::move(serialized->constants);
  // An artifact that the reader would reject is a bug: report it here, where the source is known.
  runtime::Status status =
      runtime::verify(artifact.program, static_cast<int64_t>(artifact.constants.size()));
  if (status.ok() && options.gpu)
    status = runtime::verify(artifact.gpu, artifact.program);
  if (!status.ok())
    return module.emitError() << "the compiled program is not valid: " << status.message();
  return artifact;
}

FailureOr<runtime::Artifact> codegen::compileToArtifact(ModuleOp localView,
                                                        const ArtifactOptions &options,
                                                        std::vector<KernelInfo> *infos) {
  OwningOpRef<ModuleOp> copy = localView.clone();
  if (failed(lowerToRt(*copy, options.gpu.has_value())))
    return failure();
  return compileRt(*copy, options, infos);
}
