//===- CompileGpuKernelsPass.cpp - The GPU compiler in tessera-opt --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CUDA/GpuCompiler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// Compiles a module of kernels for GPUs and says what became of each. The module stays as it is;
/// the code is thrown away.
struct CompileGpuKernelsPass : PassWrapper<CompileGpuKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CompileGpuKernelsPass)

  CompileGpuKernelsPass() = default;
  CompileGpuKernelsPass(const CompileGpuKernelsPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "tessera-compile-gpu-kernels"; }
  StringRef getDescription() const override {
    return "Compile kernels for GPUs and print the launches of each";
  }

  void runOnOperation() override {
    GpuOptions options;
    options.archs.assign(archs.begin(), archs.end());
    if (options.archs.empty())
      options.archs = {"compute_80"};
    options.schemes = schemes;
    options.ptxas = ptxas;
    options.useCache = false;
    options.keepPtx = printPtx;
    options.keepLoopIR = printLoops;
    // The module of a program has more than kernels.
    OwningOpRef<ModuleOp> kernels = ModuleOp::create(getOperation().getLoc());
    OpBuilder b = OpBuilder::atBlockEnd(kernels->getBody());
    for (Operation &op : *getOperation().getBody())
      if (isa<func::FuncOp>(op) && op.hasAttr("kernel.reads"))
        b.clone(op);
    std::vector<GpuKernelInfo> infos;
    FailureOr<runtime::GpuModule> module = compileGpuKernels(*kernels, options, &infos);
    if (failed(module))
      return signalPassFailure();
    for (auto [kernel, info] : llvm::zip_equal(module->kernels, infos))
      print(kernel, info);
  }

  void print(const runtime::GpuKernel &kernel, const GpuKernelInfo &info) {
    llvm::raw_ostream &os = llvm::outs();
    int64_t moved = 0;
    for (const GpuLaunchInfo &launch : info.launches)
      moved += launch.readBytes + launch.writtenBytes;
    os << info.name << ": launches " << kernel.launches.size() << ", workspace "
       << kernel.workspaceBytes << ", bytes " << moved << " of " << info.argumentBytes;
    if (!info.reason.empty())
      os << " (" << info.reason << ")";
    os << "\n";
    for (auto [launch, about] : llvm::zip_equal(kernel.launches, info.launches)) {
      os << "  " << toString(about.scheme) << ": grid " << launch.grid[0] << ", block "
         << launch.block[0] << ", shared " << launch.sharedBytes << ", reads " << about.readBytes
         << ", writes " << about.writtenBytes;
      for (const GpuUsage &usage : about.usage)
        os << ", " << usage.arch << ": " << usage.registers << " registers, " << usage.spillBytes
           << " spilled";
      os << "\n";
    }
    if (printTime)
      os << "  time " << llvm::format("%.1f", info.milliseconds) << " ms\n";
    os << info.loopIR << info.ptx;
  }

  ListOption<std::string> archs{*this, "arch",
                                llvm::cl::desc("architectures: sm_NN, compute_NN, stub")};
  Option<std::string> ptxas{*this, "ptxas", llvm::cl::desc("NVIDIA's assembler")};
  Option<bool> schemes{*this, "schemes", llvm::cl::desc("false: one thread does it all"),
                       llvm::cl::init(true)};
  Option<bool> printPtx{*this, "print-ptx", llvm::cl::desc("print the PTX"), llvm::cl::init(false)};
  Option<bool> printLoops{*this, "print-loops", llvm::cl::desc("print the launches as loops"),
                          llvm::cl::init(false)};
  Option<bool> printTime{*this, "print-time", llvm::cl::desc("print the time each kernel took"),
                         llvm::cl::init(false)};
};

} // namespace

void registerCompileGpuKernelsPass() {
  PassRegistration<CompileGpuKernelsPass>();
}

} // namespace tessera::codegen
