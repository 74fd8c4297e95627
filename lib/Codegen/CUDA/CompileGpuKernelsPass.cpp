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
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// Compiles a module of kernels for GPUs and prints the scheme of each. The module is unchanged;
/// the code is discarded.
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
    options.wideIndices = wideIndices;
    options.byDigits = byDigits;
    options.warpgroups = warpgroups;
    options.ptxas = ptxas;
    options.useCache = false;
    options.keepPtx = printPtx;
    options.keepLoopIR = printLoops;
    // The module of a program contains more than kernels.
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
    if (!saveCode.empty() && failed(save(*module)))
      signalPassFailure();
  }

  /// Writes each image to a file in `saveCode`, named after its first launch and the architecture.
  LogicalResult save(const runtime::GpuModule &module) {
    for (const runtime::GpuImage &image : module.images) {
      SmallString<128> path(saveCode);
      std::string stem = image.symbols.empty() ? "all" : image.symbols[0];
      llvm::sys::path::append(path, stem + "." + image.arch);
      std::error_code code;
      llvm::raw_fd_ostream file(path, code);
      if (!code)
        file.write(reinterpret_cast<const char *>(image.code.data()), image.code.size());
      file.close();
      if (code || file.has_error()) {
        code = code ? code : file.error();
        file.clear_error();
        return getOperation().emitError("cannot write '") << path << "': " << code.message();
      }
    }
    return success();
  }

  void print(const runtime::GpuKernel &kernel, const GpuKernelInfo &info) {
    llvm::raw_ostream &os = llvm::outs();
    // Launches by TF32 run in place of the others, and only if asked for.
    int64_t moved = 0, launches = 0;
    for (const GpuLaunchInfo &launch : info.launches)
      if (!launch.tf32) {
        moved += launch.readBytes + launch.writtenBytes;
        ++launches;
      }
    os << info.name << ": launches " << launches << ", workspace " << kernel.workspaceBytes
       << ", bytes " << moved << " of " << info.argumentBytes;
    if (!info.reason.empty())
      os << " (" << info.reason << ")";
    os << "\n";
    for (auto [launch, about] : llvm::zip_equal(kernel.launches, info.launches)) {
      os << "  " << toString(about.scheme) << (about.tf32 ? " (tf32)" : "") << ": grid "
         << launch.grid[0] << ", block " << launch.block[0] << ", shared " << launch.sharedBytes
         << ", reads " << about.readBytes << ", writes " << about.writtenBytes;
      for (const GpuUsage &usage : about.usage)
        os << ", " << usage.arch << ": " << usage.registers << " registers, " << usage.spillBytes
           << " spilled";
      os << "\n";
      if (printAccesses)
        os << "    symbol " << launch.symbol << "\n";
      if (printAccesses)
        for (const std::string &access : about.narrow)
          os << "    " << access << "\n";
    }
    if (printTime)
      os << "  time " << llvm::format("%.1f", info.milliseconds) << " ms, cpu "
         << llvm::format("%.1f", info.cpuMilliseconds) << " ms\n";
    os << info.loopIR << info.ptx;
  }

  ListOption<std::string> archs{*this, "arch",
                                llvm::cl::desc("architectures: sm_NN, compute_NN, stub")};
  Option<std::string> ptxas{*this, "ptxas",
                            llvm::cl::desc("NVIDIA's assembler: ptxas or libnvJitLink.so")};
  Option<bool> schemes{*this, "schemes", llvm::cl::desc("false: one thread per kernel"),
                       llvm::cl::init(true)};
  Option<bool> byDigits{*this, "by-digits",
                        llvm::cl::desc("sort lines of more than a tile by digits, however short"),
                        llvm::cl::init(false)};
  Option<bool> warpgroups{*this, "warpgroups",
                          llvm::cl::desc("multiply by warpgroups (wgmma), for sm_90a alone"),
                          llvm::cl::init(false)};
  Option<bool> wideIndices{*this, "wide-indices",
                           llvm::cl::desc("64-bit indices, as for 2^31 iterations or more"),
                           llvm::cl::init(false)};
  Option<bool> printPtx{*this, "print-ptx", llvm::cl::desc("print the PTX"), llvm::cl::init(false)};
  Option<bool> printLoops{*this, "print-loops", llvm::cl::desc("print the launches as loops"),
                          llvm::cl::init(false)};
  Option<bool> printAccesses{*this, "print-accesses",
                             llvm::cl::desc("print the accesses of less than 16 bytes, and why"),
                             llvm::cl::init(false)};
  Option<std::string> saveCode{*this, "save-code",
                               llvm::cl::desc("write the code of every kernel to this directory")};
  Option<bool> printTime{*this, "print-time", llvm::cl::desc("print the time each kernel took"),
                         llvm::cl::init(false)};
};

} // namespace

void registerCompileGpuKernelsPass() {
  PassRegistration<CompileGpuKernelsPass>();
}

} // namespace tessera::codegen
