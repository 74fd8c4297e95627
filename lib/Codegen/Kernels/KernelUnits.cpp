//===- KernelUnits.cpp - Compile kernels with equal text once -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelUnits.h"

#include "KernelRevision.h"
#include "KernelStages.h"
#include "tessera/Support/Processors.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/SHA256.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace tessera::codegen {

std::string kernelCompilerRevision() {
  return LLVM_VERSION_STRING " " TESSERA_KERNEL_REVISION;
}

FailureOr<KernelUnits> collectUnits(ModuleOp kernels, StringRef salt) {
  KernelUnits result;
  std::map<std::string, size_t> unitOf;
  for (Operation &op : *kernels.getBody()) {
    auto kernel = dyn_cast<func::FuncOp>(op);
    if (!kernel)
      return op.emitError("a module of kernels holds functions only"), failure();
    if (failed(checkKernel(kernel)))
      return failure();
    std::string text = canonicalText(kernel);
    auto [it, inserted] = unitOf.try_emplace(text, result.units.size());
    if (inserted) {
      llvm::SHA256 hash;
      hash.update(salt);
      hash.update(text);
      std::string symbol = "tessera_" + llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
      result.units.push_back({std::move(text), std::move(symbol), kernel});
    }
    result.functions.emplace_back(kernel.getName().str(), it->second);
  }
  return result;
}

void compileInParallel(
    size_t count, unsigned threads, const DialectRegistry &registry,
    llvm::function_ref<void(size_t, llvm::function_ref<MLIRContext &()>)> compile) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    std::unique_ptr<MLIRContext> context;
    auto ask = [&]() -> MLIRContext & {
      if (!context) {
        context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
        context->printOpOnDiagnostic(false);
        context->loadAllAvailableDialects();
      }
      return *context;
    };
    for (size_t i; (i = next++) < count;)
      compile(i, ask);
  };
  threads = threads ? threads : static_cast<unsigned>(availableProcessors());
  threads = std::clamp<size_t>(threads, 1, std::max<size_t>(1, count));
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

} // namespace tessera::codegen
