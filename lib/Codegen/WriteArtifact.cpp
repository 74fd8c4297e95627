//===- WriteArtifact.cpp - Serialize a program from a pass pipeline -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Compile.h"
#include "tessera/Codegen/Passes.h"

namespace tessera::codegen {
#define GEN_PASS_DEF_CODEGENWRITEARTIFACT
#include "tessera/Codegen/Passes.h.inc"
} // namespace tessera::codegen

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

namespace {
struct CodegenWriteArtifact : codegen::impl::CodegenWriteArtifactBase<CodegenWriteArtifact> {
  using CodegenWriteArtifactBase::CodegenWriteArtifactBase;
  void runOnOperation() override {
    if (failed(write()))
      signalPassFailure();
  }

  LogicalResult write() {
    if (output.empty()) {
      FailureOr<SerializedProgram> serialized = serialize(getOperation());
      if (failed(serialized))
        return failure();
      llvm::outs() << runtime::toJson(serialized->program) << "\n";
      return success();
    }
    FailureOr<runtime::Artifact> artifact = compileRt(getOperation(), {});
    if (failed(artifact))
      return failure();
    runtime::Status status = runtime::writeArtifact(*artifact, output);
    if (!status.ok())
      return getOperation().emitError() << status.message();
    return success();
  }
};
} // namespace
