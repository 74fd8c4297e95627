//===- CompileKernelsPass.cpp - The kernel compiler in tessera-opt --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// Compiles a module of kernels for this machine and reports the scheme of each. Leaves the module
/// unchanged and discards the shared object.
struct CompileKernelsPass : PassWrapper<CompileKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CompileKernelsPass)

  CompileKernelsPass() = default;
  CompileKernelsPass(const CompileKernelsPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "tessera-compile-kernels"; }
  StringRef getDescription() const override {
    return "Compile kernels for the CPU and print the scheme of each";
  }

  void runOnOperation() override {
    CpuOptions options;
    options.cpu = cpu;
    options.features = features;
    options.vectorise = vectorise;
    options.useCache = false;
    options.keepLLVMIR = printLLVM;
    options.keepLoopIR = printLoops;
    std::vector<KernelInfo> infos;
    if (failed(compileKernels(getOperation(), options, &infos)))
      return signalPassFailure();
    for (const KernelInfo &info : infos) {
      llvm::outs() << info.name << ": "
                   << (info.scheme == KernelScheme::Vectorised ? "vectorised" : "fallback")
                   << ", tasks " << info.tasks << ", stack " << info.stackBytes << ", heap "
                   << info.heapBytes;
      if (!info.reason.empty())
        llvm::outs() << " (" << info.reason << ")";
      llvm::outs() << "\n" << info.loopIR << info.llvmIR;
    }
  }

  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("LLVM CPU name"), llvm::cl::init("native")};
  Option<std::string> features{*this, "features", llvm::cl::desc("LLVM CPU features")};
  Option<bool> vectorise{*this, "vectorise", llvm::cl::desc("false: plain loops only"),
                         llvm::cl::init(true)};
  Option<bool> printLLVM{*this, "print-llvm", llvm::cl::desc("print the optimized LLVM IR"),
                         llvm::cl::init(false)};
  Option<bool> printLoops{*this, "print-loops", llvm::cl::desc("print the kernel as loops"),
                          llvm::cl::init(false)};
};

} // namespace

void registerCompileKernelsPass() {
  PassRegistration<CompileKernelsPass>();
}

} // namespace tessera::codegen
