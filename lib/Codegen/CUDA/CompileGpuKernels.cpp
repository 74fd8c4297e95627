//===- CompileGpuKernels.cpp - The GPU compiler in tessera-opt ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Kernels/KernelModule.h"
#include "tessera/Codegen/CUDA/GpuCompiler.h"
#include "tessera/Codegen/KernelPasses.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera::codegen {
#define GEN_PASS_DEF_TESSERACOMPILEGPUKERNELS
#include "tessera/Codegen/KernelPasses.h.inc"

namespace {

struct CompileGpuKernels : impl::TesseraCompileGpuKernelsBase<CompileGpuKernels> {
  using TesseraCompileGpuKernelsBase::TesseraCompileGpuKernelsBase;

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
    OwningOpRef<ModuleOp> kernels = kernelsAlone(getOperation());
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
};

} // namespace
} // namespace tessera::codegen
