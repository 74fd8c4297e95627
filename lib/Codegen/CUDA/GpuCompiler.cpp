//===- GpuCompiler.cpp - Tensor kernels to GPU code -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CUDA/GpuCompiler.h"
#include "tessera/Codegen/CUDA/Architectures.h"
#include "tessera/Codegen/Kernels/DiskCache.h"

#include "../Kernels/KernelLink.h"
#include "../Kernels/KernelUnits.h"
#include "GpuCacheEntry.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

#include <chrono>
#include <ctime>

using namespace mlir;

namespace tessera::codegen {

llvm::StringRef toString(GpuScheme scheme) {
  switch (scheme) {
  case GpuScheme::pointwise:
    return "pointwise";
  case GpuScheme::plain:
    return "plain";
  case GpuScheme::rows:
    return "rows";
  case GpuScheme::permute:
    return "permute";
  case GpuScheme::attention:
    return "attention";
  case GpuScheme::contraction:
    return "contraction";
  case GpuScheme::scan:
    return "scan";
  case GpuScheme::sort:
    return "sort";
  case GpuScheme::scatter:
    return "scatter";
  case GpuScheme::loops:
    return "loops";
  case GpuScheme::serial:
    return "serial";
  }
  return "";
}

namespace {

struct Unit : KernelUnit {
  GpuUnit result = {};
};

/// The CPU time of this thread.
double threadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void compileUnits(std::vector<Unit> &units, const GpuOptions &options, const Assembler &assembler,
                  const DiskCache *cache) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(registry);
  auto compile = [&](size_t i, llvm::function_ref<MLIRContext &()> context) {
    Unit &unit = units[i];
    std::string entry;
    llvm::json::Object about;
    if (cache && cache->load(unit.symbol, entry, about) &&
        readCacheEntry(entry, about, options.archs, unit.result))
      return;
    unit.result = GpuUnit();
    MLIRContext &own = context();
    auto begin = std::chrono::steady_clock::now();
    double beganCpu = threadMilliseconds();
    LogicalResult compiled =
        compileGpuText(own, unit.text, unit.symbol, options, assembler, unit.result);
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    unit.result.info.milliseconds = spent.count();
    unit.result.info.cpuMilliseconds += threadMilliseconds() - beganCpu;
    if (failed(compiled)) {
      unit.result.code.clear();
      return;
    }
    unit.result.error.clear();
    if (cache)
      cache->store(unit.symbol, cacheEntryOf(unit.result, options.archs),
                   cacheEntryJson(unit.result.info));
  };
  compileInParallel(units.size(), options.threads, registry, compile);
}

/// Links the stub's image: all kernels in one shared object.
FailureOr<runtime::GpuImage> linkStub(ArrayRef<Unit> units, size_t place, const std::string &linker,
                                      std::string &error) {
  FailureOr<std::string> runtimeObject = emitStubRuntime(error);
  if (failed(runtimeObject))
    return failure();
  std::vector<std::string> objects{*runtimeObject};
  std::vector<ExportedSymbol> exports{{"tessera_stub_version", "tessera_stub_version"},
                                      {"tessera_stub_bind", "tessera_stub_bind"}};
  runtime::GpuImage image{"stub", {}, {}};
  for (const Unit &unit : units) {
    if (unit.result.kernel.launches.empty())
      continue;
    objects.push_back(unit.result.code[place]);
    for (const std::string &symbol : unit.result.symbols()) {
      exports.emplace_back(symbol, symbol);
      image.symbols.push_back(symbol);
    }
  }
  FailureOr<std::vector<char>> linked =
      linkSharedObject(objects, exports, linker, /*foreign=*/false, error);
  if (failed(linked))
    return failure();
  auto *bytes = reinterpret_cast<const std::byte *>(linked->data());
  image.code = runtime::Bytes(bytes, bytes + linked->size());
  return image;
}

/// One thread of a GPU is slow: warns if a thread has many sequential iterations, and fails if it
/// has far too many.
static LogicalResult checkSerialIterations(std::vector<Unit> &units) {
  for (Unit &unit : units)
    for (const GpuLaunchInfo &launch : unit.result.info.launches) {
      if (launch.serialIterations <= kManySerialIterations)
        continue;
      bool tooMany = launch.serialIterations > kMaxSerialIterations;
      InFlightDiagnostic diagnostic = tooMany ? unit.first.emitError() : unit.first.emitWarning();
      diagnostic << "one GPU thread runs " << launch.serialIterations
                 << " iterations of this kernel serially";
      if (!unit.result.info.reason.empty())
        diagnostic << " (" << unit.result.info.reason << ")";
      if (tooMany)
        return diagnostic << "; the limit is " << kMaxSerialIterations
                          << ", write it as operations with independent iterations";
    }
  return success();
}

} // namespace

FailureOr<runtime::GpuModule> compileGpuKernels(ModuleOp kernels, const GpuOptions &options,
                                                std::vector<GpuKernelInfo> *infos) {
  std::string error;
  Assembler assembler;
  std::string salt = !options.schemes ? "gpu|s|" : options.wideIndices ? "gpu|w|" : "gpu|v|";
  if (options.byDigits)
    salt += "d|";
  if (options.warpgroups)
    salt += "g|";
  if (options.reportAccesses)
    salt += "a|";
  if (std::string why = checkArchitectures(options.archs, options.warpgroups); !why.empty())
    return kernels.emitError(why), failure();
  for (const std::string &arch : options.archs) {
    if (!isStub(arch) && !isPtx(arch) && assembler.path.empty()) {
      assembler = findAssembler(options.ptxas, error);
      if (assembler.path.empty())
        return kernels.emitError(error), failure();
    }
    salt += arch + "|";
  }
  salt += assembler.key + "|" + kernelCompilerRevision();

  FailureOr<KernelUnits> collected = collectUnits(kernels, salt);
  if (failed(collected))
    return failure();
  std::vector<Unit> units;
  for (KernelUnit &unit : collected->units)
    units.push_back({std::move(unit)});

  bool useCache = options.useCache && !options.keepPtx && !options.keepLoopIR;
  DiskCache cache(options.cacheDirectory, ".kernel", options.cacheLimitBytes);
  compileUnits(units, options, assembler, useCache ? &cache : nullptr);
  if (useCache)
    cache.trim();

  runtime::GpuModule module;
  for (Unit &unit : units)
    if (unit.result.code.size() != options.archs.size())
      return unit.first.emitError("kernel cannot be compiled for a GPU: ") << unit.result.error,
             failure();
  if (options.schemes && failed(checkSerialIterations(units)))
    return failure();
  for (auto &[name, index] : collected->functions) {
    module.kernels.push_back(units[index].result.kernel);
    if (infos) {
      infos->push_back(units[index].result.info);
      infos->back().name = name;
    }
  }
  for (auto [place, arch] : llvm::enumerate(options.archs)) {
    if (isStub(arch)) {
      FailureOr<runtime::GpuImage> image = linkStub(units, place, options.linker, error);
      if (failed(image))
        return kernels.emitError(error), failure();
      module.images.push_back(std::move(*image));
      continue;
    }
    for (const Unit &unit : units) {
      if (unit.result.kernel.launches.empty())
        continue;
      const std::string &code = unit.result.code[place];
      auto *bytes = reinterpret_cast<const std::byte *>(code.data());
      module.images.push_back(
          {arch, unit.result.symbols(), runtime::Bytes(bytes, bytes + code.size())});
    }
  }
  return module;
}

} // namespace tessera::codegen
