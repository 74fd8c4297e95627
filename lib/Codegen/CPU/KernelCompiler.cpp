//===- KernelCompiler.cpp - Tensor kernels to a shared object -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/CPU/KernelCompiler.h"
#include "tessera/Codegen/Kernels/DiskCache.h"

#include "../Kernels/KernelLink.h"
#include "../Kernels/KernelUnits.h"
#include "CpuStages.h"
#include "KernelTarget.h"

using namespace mlir;

namespace tessera::codegen {

namespace {
struct Unit : KernelUnit {
  KernelInfo info = {};
  std::string object = {}, error = {};
};
} // namespace

static llvm::json::Object writeInfo(const KernelInfo &info) {
  return llvm::json::Object{{"vectorised", info.scheme == KernelScheme::Vectorised},
                            {"reason", llvm::json::fixUTF8(info.reason)},
                            {"tasks", info.tasks},
                            {"stack_bytes", info.stackBytes},
                            {"heap_bytes", info.heapBytes}};
}

static void readInfo(const llvm::json::Object &about, KernelInfo &info) {
  info.scheme = about.getBoolean("vectorised").value_or(false) ? KernelScheme::Vectorised
                                                               : KernelScheme::Fallback;
  info.reason = about.getString("reason").value_or("").str();
  info.tasks = about.getInteger("tasks").value_or(1);
  info.stackBytes = about.getInteger("stack_bytes").value_or(0);
  info.heapBytes = about.getInteger("heap_bytes").value_or(0);
  info.cached = true;
}

static void compileUnits(std::vector<Unit> &units, const KernelTarget &target,
                         const CpuOptions &options, const DiskCache *cache) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  auto compile = [&](size_t i, llvm::function_ref<MLIRContext &()> context) {
    Unit &unit = units[i];
    if (llvm::json::Object about; cache && cache->load(unit.symbol, unit.object, about)) {
      readInfo(about, unit.info);
      return;
    }
    FailureOr<std::string> object = compileKernelText(context(), unit.text, unit.symbol, target,
                                                      options, unit.info, unit.error);
    if (failed(object))
      return;
    unit.object = std::move(*object);
    if (cache)
      cache->store(unit.symbol, unit.object, writeInfo(unit.info));
  };
  compileInParallel(units.size(), options.threads, registry, compile);
}

FailureOr<runtime::CpuKernels> compileKernels(ModuleOp kernels, const CpuOptions &options,
                                              std::vector<KernelInfo> *infos) {
  std::string error;
  FailureOr<KernelTarget> target = KernelTarget::get(options, error);
  if (failed(target))
    return kernels.emitError(error), failure();

  std::string salt = target->key() + (options.vectorise ? "|v|" : "|s|") + kernelCompilerRevision();
  FailureOr<KernelUnits> collected = collectUnits(kernels, salt);
  if (failed(collected))
    return failure();
  std::vector<Unit> units;
  for (KernelUnit &unit : collected->units)
    units.push_back({std::move(unit)});

  bool useCache = options.useCache && !options.keepLLVMIR && !options.keepLoopIR;
  DiskCache cache(options.cacheDirectory, ".kernel", options.cacheLimitBytes);
  compileUnits(units, *target, options, useCache ? &cache : nullptr);
  if (useCache)
    cache.trim();

  std::vector<std::string> objects;
  for (Unit &unit : units) {
    if (unit.object.empty())
      return unit.first.emitError("kernel cannot be compiled: ") << unit.error, failure();
    objects.push_back(std::move(unit.object));
  }
  runtime::CpuKernels result{target->cpu, target->architecture, target->required, {}, {}};
  std::vector<ExportedSymbol> exports;
  for (auto &[name, unit] : collected->functions) {
    exports.emplace_back(name, units[unit].symbol);
    result.tasks.push_back(units[unit].info.tasks);
    if (infos) {
      infos->push_back(units[unit].info);
      infos->back().name = name;
      infos->back().cpu = target->cpu;
    }
  }
  FailureOr<std::vector<char>> linked =
      linkSharedObject(objects, exports, options.linker, target->isForeign(), error);
  if (failed(linked))
    return kernels.emitError(error), failure();
  auto *bytes = reinterpret_cast<const std::byte *>(linked->data());
  result.image = runtime::Bytes(bytes, bytes + linked->size());
  return result;
}

} // namespace tessera::codegen
