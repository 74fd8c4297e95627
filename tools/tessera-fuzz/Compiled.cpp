//===- Compiled.cpp - Local views through compiled kernels ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Driver/InterpreterCheck.h"
#include "tessera/Runtime/Session/Session.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace tessera;
using interpreter::Tensor;
using runtime::HostTensor;

/// The element type of the IR for the runtime's `dtype`.
static Type elementType(MLIRContext *context, runtime::DType dtype) {
  Builder b(context);
  switch (dtype) {
  case runtime::DType::f64:
    return b.getF64Type();
  case runtime::DType::f32:
    return b.getF32Type();
  case runtime::DType::f16:
    return b.getF16Type();
  case runtime::DType::bf16:
    return b.getBF16Type();
  case runtime::DType::index:
    return b.getIndexType();
  case runtime::DType::i1:
    return b.getI1Type();
  default:
    return b.getIntegerType(8 * runtime::sizeOf(dtype));
  }
}

static runtime::Expected<SmallVector<Tensor>>
runArtifact(std::shared_ptr<const runtime::Artifact> artifact, MLIRContext *context,
            ArrayRef<Tensor> inputs, int64_t steps) {
  runtime::SessionOptions options;
  options.devices.cores = 2;
  auto session = runtime::Session::open(artifact, options);
  if (!session)
    return session.status();
  const runtime::Program &program = artifact->program;
  if (program.arguments.size() != inputs.size())
    return runtime::Status::error("the compiled program has " +
                                  std::to_string(program.arguments.size()) + " arguments, not " +
                                  std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    runtime::Status set = (*session)->setArgument(i, toHost(inputs[i], program.arguments[i].dtype));
    if (!set.ok())
      return set;
  }
  for (int64_t step = 0; step < steps; ++step) {
    runtime::Status stepped = (*session)->step();
    if (!stepped.ok())
      return stepped;
  }
  SmallVector<Tensor> results;
  for (size_t r = 0; r < program.results.size(); ++r) {
    runtime::Expected<HostTensor> value = (*session)->result(r);
    if (!value)
      return value.status();
    results.push_back(toInterpreter(*value, elementType(context, value->dtype), value->shape));
  }
  return results;
}

FailureOr<SmallVector<Tensor>> fuzz::runCompiled(ModuleOp local, ArrayRef<Tensor> inputs,
                                                 int64_t steps, const std::string &cacheDirectory) {
  codegen::ArtifactOptions options;
  options.cpu.cacheDirectory = cacheDirectory;
  options.cpu.threads = 1; // seeds run in parallel
  FailureOr<runtime::Artifact> artifact = codegen::compileToArtifact(local, options);
  if (failed(artifact))
    return failure();
  // Through its bytes, as from a file.
  runtime::Bytes bytes = runtime::serialize(*artifact);
  auto read = runtime::parseArtifact(bytes.data(), bytes.size(), "artifact");
  if (!read)
    return mlir::emitError(local.getLoc()) << read.status().message();
  auto results = runArtifact(std::make_shared<const runtime::Artifact>(std::move(*read)),
                             local.getContext(), inputs, steps);
  if (!results)
    return mlir::emitError(local.getLoc()) << results.status().message();
  return std::move(*results);
}
