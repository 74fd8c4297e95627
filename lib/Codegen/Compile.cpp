//===- Compile.cpp - From IR to an artifact --------------------------------===//
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

LogicalResult codegen::lowerToRt(ModuleOp module) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  buildCodegenPipeline(manager);
  return manager.run(module);
}

/// The bytes of the shared object of a module's kernels; empty without kernels.
static FailureOr<runtime::Bytes> compileObject(ModuleOp module, const CpuOptions &options,
                                               std::vector<KernelInfo> &infos) {
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  if (kernels.empty())
    return runtime::Bytes();
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  for (func::FuncOp kernel : kernels)
    builder.clone(*kernel);
  FailureOr<std::vector<char>> object = compileKernels(*alone, options, &infos);
  if (failed(object))
    return failure();
  auto *bytes = reinterpret_cast<const std::byte *>(object->data());
  return runtime::Bytes(bytes, bytes + object->size());
}

FailureOr<runtime::Artifact> codegen::compileRt(ModuleOp module, const CompileOptions &options,
                                                std::vector<KernelInfo> *infos) {
  std::vector<KernelInfo> compiled;
  FailureOr<runtime::Bytes> object = compileObject(module, options.cpu, compiled);
  if (failed(object))
    return failure();
  SmallVector<int64_t> tasks;
  for (const KernelInfo &info : compiled)
    tasks.push_back(info.tasks);
  FailureOr<SerializedProgram> serialized = serialize(module, tasks);
  if (failed(serialized))
    return failure();
  runtime::Artifact artifact{std::move(serialized->program), options.report, std::move(*object),
                             std::move(serialized->constants)};
  // What the reader would refuse is our mistake: say so here, where the source is known.
  runtime::Status status =
      runtime::verify(artifact.program, static_cast<int64_t>(artifact.constants.size()));
  if (!status.ok())
    return module.emitError() << "the compiled program is not valid: " << status.message();
  if (infos)
    *infos = std::move(compiled);
  return artifact;
}

FailureOr<runtime::Artifact> codegen::compileToArtifact(ModuleOp localView,
                                                        const CompileOptions &options,
                                                        std::vector<KernelInfo> *infos) {
  OwningOpRef<ModuleOp> copy = localView.clone();
  if (failed(lowerToRt(*copy)))
    return failure();
  return compileRt(*copy, options, infos);
}
