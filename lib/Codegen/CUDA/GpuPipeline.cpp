//===- GpuPipeline.cpp - Compile one kernel from text to code -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/GpuAttention.h"
#include "Contraction/GpuContraction.h"
#include "GpuLimits.h"
#include "GpuStages.h"
#include "ScanSort/GpuScan.h"
#include "ScanSort/GpuSort.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace tessera::codegen {

std::vector<std::string> GpuUnit::symbols() const {
  std::vector<std::string> result;
  for (const runtime::GpuLaunch &launch : kernel.launches) // several may be of one function
    if (!llvm::is_contained(result, launch.symbol))
      result.push_back(launch.symbol);
  return result;
}

static unsigned numberOf(StringRef arch) {
  unsigned result = 0;
  arch = arch.drop_front(arch.find('_') + 1);
  (void)arch.consumeInteger(10, result);
  return result;
}

/// The most shared memory of a block (CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability"). PTX for an older architecture runs on all later ones.
static int64_t sharedBytesOf(StringRef arch) {
  if (isStub(arch))
    return kMostShared;
  unsigned number = numberOf(arch);
  if (isPtx(arch) && !arch.ends_with("a"))
    return 99 << 10;
  if (number == 80 || number == 87)
    return 163 << 10;
  return number >= 90 && number < 120 ? kMostShared : 99 << 10;
}

/// Splits a kernel on tensors into launches; fails with the name of the failed stage.
static LogicalResult addLaunches(ModuleOp module, ModuleOp launches, StringRef symbol, bool schemes,
                                 const GpuOptions &options, GpuUnit &unit, StringRef &stage) {
  auto kernel = *module.getOps<func::FuncOp>().begin();
  SmallVector<bool> mayAlias = mayAliasOf(kernel);
  GpuLaunchLimits limits;
  for (const std::string &arch : options.archs)
    limits.sharedBytes = std::min(limits.sharedBytes, sharedBytesOf(arch));
  limits.warpgroups = options.warpgroups;
  if (std::optional<AttentionKernel> attention = matchAttention(kernel); attention && schemes) {
    emitAttention(kernel, *attention, launches, symbol, mayAlias, limits, unit.kernel, unit.info);
    return success();
  }
  if (std::optional<ContractionKernel> contraction = matchContractionKernel(kernel);
      contraction && schemes) {
    emitContractions(kernel, *contraction, launches, symbol, mayAlias, unit.kernel, unit.info);
    return success();
  }
  if (std::optional<ScanKernel> scan = matchScan(kernel); scan && schemes) {
    emitScan(kernel, *scan, launches, symbol, mayAlias, unit.kernel, unit.info);
    return success();
  }
  if (std::optional<SortKernel> sort = matchSort(kernel); sort && schemes) {
    emitSort(kernel, *sort, launches, symbol, mayAlias, options.byDigits, unit.kernel, unit.info);
    return success();
  }
  if (failed(prepareKernel(kernel)))
    return failure();
  if (schemes) {
    putParallelLoopsFirst(kernel);
    chooseInPadding(kernel);
    splitArgMax(kernel);
    fuseKernel(kernel);
    separateIndexedSums(kernel);
    splitReductions(kernel);
  }
  aimAtDestinations(kernel);
  // Temporaries in registers are free; sharing one between two uses would force an order on these.
  kernel.walk([](tensor::EmptyOp empty) {
    OpBuilder b(empty);
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : empty->getUses())
      uses.push_back(&use);
    for (size_t i = 1; i < uses.size(); ++i)
      uses[i]->set(b.clone(*empty)->getResult(0));
  });
  TemporaryBytes unused;
  stage = "bufferization";
  if (failed(verify(module)) || failed(bufferizeKernel(module, kernel, unused)))
    return failure();
  kernel = *module.getOps<func::FuncOp>().begin();
  // Copy the constants.
  OpBuilder b = OpBuilder::atBlockBegin(launches.getBody());
  for (auto global : module.getOps<memref::GlobalOp>())
    cast<memref::GlobalOp>(b.clone(*global)).setSymName((symbol + global.getSymName()).str());
  kernel.walk([&](memref::GetGlobalOp get) { get.setName((symbol + get.getName()).str()); });
  if (schemes)
    chooseInBranches(kernel);
  if (options.wideIndices)
    limits.narrowIterations = 0;
  stage = "splitting into launches";
  return splitIntoLaunches(kernel, launches, symbol, mayAlias, schemes, limits, unit.kernel,
                           unit.info);
}

/// Builds the module of launches of the kernel in `text`, before it is lowered; null with a reason.
static OwningOpRef<ModuleOp> makeLaunches(MLIRContext &context, StringRef text, StringRef symbol,
                                          bool schemes, const GpuOptions &options, GpuUnit &unit) {
  ErrorCollector diagnostics(&context);
  auto fail = [&](StringRef stage) {
    unit.error = diagnostics.reason(stage);
    return OwningOpRef<ModuleOp>();
  };
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return fail("parsing");
  OwningOpRef<ModuleOp> launches = ModuleOp::create(module->getLoc());
  StringRef stage = "preparation";
  if (failed(addLaunches(*module, *launches, symbol, schemes, options, unit, stage)))
    return fail(stage);
  PassManager cleanUp(&context);
  cleanUp.addPass(createCanonicalizerPass());
  cleanUp.addPass(createCSEPass());
  if (failed(verify(*launches)) || failed(cleanUp.run(*launches)))
    return fail("emission of launches");
  if (options.keepLoopIR) {
    llvm::raw_string_ostream stream(unit.info.loopIR);
    launches->print(stream);
  }
  MathTarget math;
  math.isGpu = true;
  math.f16InIntegers = llvm::all_of(options.archs, isStub);
  if (failed(expandKernelMath(*launches, math)) || failed(expandGpuMath(*launches)))
    return fail("math expansion");
  // Simplify again, to fold the descriptors of memrefs.
  if (failed(lowerLaunches(*launches)) || failed(verify(*launches)) ||
      failed(cleanUp.run(*launches)))
    return fail("lowering to LLVM");
  return launches;
}

/// Emits the code for every architecture.
static LogicalResult emitCode(ModuleOp launches, const GpuOptions &options,
                              const Assembler &assembler, GpuUnit &unit) {
  ErrorCollector diagnostics(launches.getContext());
  auto fail = [&](StringRef stage) {
    if (unit.error.empty())
      unit.error = diagnostics.reason(stage);
    return failure();
  };
  // No code here is specific to an architecture, so the PTX for the oldest one serves all. This
  // includes those with a suffix (sm_90a): PTX for these would run on them only. Products of
  // warpgroups are the exception, for which all architectures are sm_90a.
  unsigned number = 0;
  for (const std::string &arch : options.archs)
    if (!isStub(arch) && (number == 0 || numberOf(arch) < number))
      number = numberOf(arch);
  std::string oldest = "compute_" + std::to_string(number) + (options.warpgroups ? "a" : "");
  std::map<std::string, std::string> ptxOf;
  for (const std::string &arch : options.archs) {
    if (isStub(arch)) {
      std::map<std::string, std::vector<int64_t>> bytes;
      for (const runtime::GpuLaunch &launch : unit.kernel.launches)
        if (std::vector<int64_t> &sizes = bytes[launch.symbol]; sizes.empty())
          for (const runtime::GpuArgument &argument : launch.arguments)
            sizes.push_back(argument.bytes);
      OwningOpRef<ModuleOp> copy = launches.clone();
      FailureOr<std::string> object = emitStub(*copy, bytes, options.reportAccesses, unit.error);
      if (failed(object))
        return fail("code for the stub");
      unit.code.push_back(std::move(*object));
      continue;
    }
    if (!isKnownChip(arch, unit.error))
      return fail("code for " + arch);
    const std::string &from = isPtx(arch) ? arch : oldest;
    std::string &ptx = ptxOf[from.substr(from.find('_'))];
    if (ptx.empty()) {
      FailureOr<std::string> text = emitPtx(launches, from, unit.error);
      if (failed(text))
        return fail("code for " + arch);
      ptx = std::move(*text);
      if (options.keepPtx && unit.info.ptx.empty())
        unit.info.ptx = ptx;
    }
    if (isPtx(arch)) {
      unit.code.push_back(ptx);
      continue;
    }
    std::map<std::string, GpuUsage> usage;
    FailureOr<std::string> cubin =
        assemble(assembler, ptx, arch, usage, unit.info.cpuMilliseconds, unit.error);
    if (failed(cubin))
      return fail("assembly for " + arch);
    unit.code.push_back(std::move(*cubin));
    for (auto [launch, info] : llvm::zip_equal(unit.kernel.launches, unit.info.launches))
      info.usage.push_back(usage[launch.symbol]);
  }
  return success();
}

LogicalResult compileGpuText(MLIRContext &context, StringRef text, StringRef symbol,
                             const GpuOptions &options, const Assembler &assembler, GpuUnit &unit) {
  OwningOpRef<ModuleOp> launches;
  std::string reason;
  if (options.schemes) {
    launches = makeLaunches(context, text, symbol, /*schemes=*/true, options, unit);
    reason = unit.error;
  }
  if (!launches) {
    unit = GpuUnit();
    launches = makeLaunches(context, text, symbol, /*schemes=*/false, options, unit);
    if (!launches)
      return failure();
    unit.error.clear();
    if (!reason.empty())
      unit.info.reason = "a single thread: " + reason;
  }
  if (unit.kernel.launches.empty()) {
    unit.code.assign(options.archs.size(), "");
    return success();
  }
  return emitCode(*launches, options, assembler, unit);
}

} // namespace tessera::codegen
