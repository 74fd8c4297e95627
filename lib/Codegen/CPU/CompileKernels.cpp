//===- CompileKernels.cpp - The kernel compiler in tessera-opt ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CPU/KernelCompiler.h"
#include "tessera/Codegen/KernelPasses.h"

using namespace mlir;

namespace tessera::codegen {
#define GEN_PASS_DEF_TESSERACOMPILEKERNELS
#include "tessera/Codegen/KernelPasses.h.inc"

namespace {

struct CompileKernels : impl::TesseraCompileKernelsBase<CompileKernels> {
  using TesseraCompileKernelsBase::TesseraCompileKernelsBase;

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
};

} // namespace
} // namespace tessera::codegen
