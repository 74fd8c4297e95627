//===- KernelPipeline.cpp - One kernel, from text to an object ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuStages.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

} // namespace

/// One attempt; on failure `error` is the reason.
static FailureOr<std::string> attempt(MLIRContext &context, StringRef text, StringRef symbol,
                                      const KernelTarget &target, const CpuOptions &options,
                                      bool vectorise, KernelInfo &info, std::string &error) {
  ErrorCollector diagnostics(&context);
  ParserConfig config(&context);
  auto fail = [&](StringRef stage) {
    error = diagnostics.reason(stage);
    return failure();
  };
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
  if (!module)
    return fail("parsing");
  auto kernel = *module->getOps<func::FuncOp>().begin();

  SmallVector<bool> mayAlias = mayAliasOf(kernel);

  if (failed(prepareKernel(kernel, /*scattersInTasks=*/vectorise)))
    return fail("preparation");
  if (vectorise)
    fuseKernel(kernel);
  aimAtDestinations(kernel);
  if (vectorise) {
    insertByBlocks(kernel);
    groupAndTile(kernel, target);
  }
  if (failed(verify(*module)))
    return fail("tiling");
  TemporaryBytes temporaries;
  if (failed(bufferizeKernel(*module, kernel, temporaries)))
    return fail("bufferization");
  info.stackBytes = temporaries.stack;
  info.heapBytes = temporaries.heap;
  kernel = *module->getOps<func::FuncOp>().begin();

  // The range of tasks.
  Type index = IndexType::get(&context);
  for (int i = 0; i < 2; ++i)
    if (failed(kernel.insertArgument(kernel.getNumArguments(), index, {}, kernel.getLoc())))
      return fail("adding the task range");

  if (failed(vectorise ? vectoriseKernel(kernel, target, info) : lowerToScalarLoops(kernel)))
    return fail("vectorization");
  if (options.keepLoopIR)
    info.loopIR = print(*module);
  MathTarget math{.f16InIntegers = target.convertsF16InIntegers,
                  .zeroExtendsNaN = target.zeroExtendsNaN,
                  .approximate = vectorise};
  if (failed(expandKernelMath(*module, math)))
    return fail("math expansion");
  if (failed(lowerKernelToLLVM(*module, kernel, symbol, mayAlias)) || failed(verify(*module)))
    return fail("lowering to LLVM");

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*module, llvmContext, "kernel");
  if (!llvmModule)
    return fail("translation to LLVM IR");
  bool scalar = !vectorise || !info.reason.empty();
  FailureOr<std::string> object =
      emitObject(*llvmModule, target, scalar ? OptimiseLevel::Full : OptimiseLevel::Explicit);
  if (failed(object))
    return fail("code generation");
  if (options.keepLLVMIR) {
    llvm::raw_string_ostream stream(info.llvmIR);
    llvmModule->print(stream, nullptr);
  }
  return object;
}

FailureOr<std::string> compileKernelText(MLIRContext &context, StringRef text, StringRef symbol,
                                         const KernelTarget &target, const CpuOptions &options,
                                         KernelInfo &info, std::string &error) {
  const KernelInfo fresh = info;
  std::string reason = "not asked for";
  if (options.vectorise) {
    info.scheme = KernelScheme::Vectorised;
    FailureOr<std::string> object =
        attempt(context, text, symbol, target, options, /*vectorise=*/true, info, reason);
    if (succeeded(object))
      return object;
  }
  info = fresh;
  FailureOr<std::string> object =
      attempt(context, text, symbol, target, options, /*vectorise=*/false, info, error);
  info.scheme = KernelScheme::Fallback;
  info.reason = reason;
  return object;
}

} // namespace tessera::codegen
