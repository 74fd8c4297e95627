//===- Compile.cpp - Compile IR to an artifact ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Compile.h"

#include "tessera/Codegen/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

LogicalResult codegen::lowerToRt(ModuleOp module, bool forGpu) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  CodegenPipelineOptions options;
  options.gpu = forGpu;
  buildCodegenPipeline(manager, options);
  manager.enableVerifier(false); // once, at the end
  return failure(failed(manager.run(module)) || failed(mlir::verify(module)));
}

/// A module of only the kernels.
static OwningOpRef<ModuleOp> kernelsAlone(ModuleOp module) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  for (func::FuncOp kernel : kernelsOf(module))
    builder.clone(*kernel);
  return alone;
}

/// Compiles the kernels for each CPU.
static LogicalResult compileForCpus(ModuleOp kernels, const ArtifactOptions &options,
                                    std::vector<KernelInfo> *infos,
                                    std::vector<runtime::CpuKernels> &variants) {
  if (kernels.getBody()->empty())
    return success();
  CpuOptions one = options.cpu;
  for (const std::string &cpu : options.cpus.empty() ? std::vector{one.cpu} : options.cpus) {
    one.cpu = cpu;
    FailureOr<runtime::CpuKernels> compiled = compileKernels(kernels, one, infos);
    if (failed(compiled))
      return failure();
    variants.push_back(std::move(*compiled));
  }
  return success();
}

FailureOr<runtime::Artifact> codegen::compileRt(ModuleOp module, const ArtifactOptions &options,
                                                std::vector<KernelInfo> *infos,
                                                std::vector<GpuKernelInfo> *gpuInfos) {
  OwningOpRef<ModuleOp> kernels = kernelsAlone(module);
  runtime::Artifact artifact;
  artifact.report = options.report;
  if (options.gpu) {
    FailureOr<runtime::GpuModule> gpu = compileGpuKernels(*kernels, *options.gpu, gpuInfos);
    if (failed(gpu))
      return failure();
    artifact.gpu = std::move(*gpu);
  } else if (failed(compileForCpus(*kernels, options, infos, artifact.kernels))) {
    return failure();
  }
  FailureOr<SerializedProgram> serialized = serialize(module);
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
