//===- KernelTarget.cpp - The target CPU of kernels -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTarget.h"

#include "../Kernels/MachineCode.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>
#include <set>

using namespace llvm;

namespace tessera::codegen {

/// Whether the subtarget of `machine` has `feature`, by LLVM's table of CPUs.
static bool hasFeature(const TargetMachine &machine, StringRef feature) {
  return machine.getMCSubtargetInfo()->checkFeatures(("+" + feature).str());
}

mlir::FailureOr<KernelTarget> KernelTarget::get(const CpuOptions &options, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
  });

  KernelTarget target;
  target.triple = sys::getDefaultTargetTriple();
  if (options.cpu.empty() || options.cpu == "host") {
    target.cpu = sys::getHostCPUName().str();
    std::set<std::string> sorted; // StringMap has no order of its own.
    for (const auto &[name, enabled] : sys::getHostCPUFeatures())
      sorted.insert((enabled ? "+" : "-") + name.str());
    for (const std::string &feature : sorted)
      target.features += (target.features.empty() ? "" : ",") + feature;
  } else {
    target.cpu = options.cpu;
    target.features = options.features;
  }

  const Target *known = TargetRegistry::lookupTarget(Triple(target.triple), error);
  if (!known)
    return mlir::failure();
  // Queries the generic CPU: a machine for an unknown one would print to stderr.
  std::unique_ptr<MCSubtargetInfo> generic(
      known->createMCSubtargetInfo(Triple(target.triple), "", ""));
  if (!generic || !generic->isCPUStringValid(target.cpu)) {
    error = "unknown CPU '" + target.cpu + "' for " + target.triple +
            "; expected an LLVM CPU name or 'host'";
    return mlir::failure();
  }
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  if (!machine) {
    error = "LLVM has no code generator for " + target.triple;
    return mlir::failure();
  }
  // Their default NaN is 0x7fc00000 or 0xffc00000, and NaN operands propagate.
  Triple triple(target.triple);
  target.zeroExtendsNaN = triple.isX86() || triple.isAArch64() || triple.isRISCV();
  if (triple.isX86()) {
    bool avx512 = hasFeature(*machine, "avx512f") && hasFeature(*machine, "avx512vl") &&
                  hasFeature(*machine, "avx512bw") && hasFeature(*machine, "avx512dq");
    target.vectorBits = avx512 ? 512 : hasFeature(*machine, "avx2") ? 256 : 128;
    target.numRegisters = avx512 ? 32 : 16;
    target.fma = hasFeature(*machine, "fma");
    target.convertsF16InIntegers = !hasFeature(*machine, "f16c");
  } else if (triple.isAArch64()) {
    target.numRegisters = 32;
    target.fma = true;
  }
  return target;
}

std::string checkCpu(const CpuOptions &options) {
  std::string error;
  return failed(KernelTarget::get(options, error)) ? error : std::string();
}

std::unique_ptr<TargetMachine> KernelTarget::createMachine() const {
  std::string error;
  Triple parsed(triple);
  const Target *known = TargetRegistry::lookupTarget(parsed, error);
  if (!known)
    return nullptr;
  TargetOptions options;
  // Kernels neither trap nor read the FP environment; contraction is decided on MLIR, so that
  // vectors and remainders round equally.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(known->createTargetMachine(
      parsed, cpu, features, options, Reloc::PIC_, std::nullopt, CodeGenOptLevel::Default));
}

/// For vectorised loops: hoists, simplifies addresses, and unrolls windows of a few trips. O2 takes
/// several times as long without further gains.
static FunctionPassManager explicitPipeline() {
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  LoopPassManager rotate;
  rotate.addPass(LoopRotatePass());
  rotate.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(rotate), /*UseMemorySSA=*/true));
  LoopPassManager unroll;
  unroll.addPass(IndVarSimplifyPass());
  unroll.addPass(LoopFullUnrollPass());
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(unroll)));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  return passes;
}

mlir::FailureOr<std::string> emitObject(Module &module, const KernelTarget &target,
                                        OptimiseLevel level) {
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  if (!machine)
    return mlir::failure();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    // LLVM's default is half the register on AVX-512 CPUs, which halves FMA-bound kernels.
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("no-trapping-math", "true");
    function.setDoesNotThrow();
  }

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = level == OptimiseLevel::Full;
  tuning.SLPVectorization = false;
  std::optional<std::string> object =
      emitMachineCode(module, *machine, CodeGenFileType::ObjectFile, tuning,
                      [&](PassBuilder &builder, ModulePassManager &passes) {
                        if (level == OptimiseLevel::Full)
                          passes = builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2);
                        else
                          passes.addPass(createModuleToFunctionPassAdaptor(explicitPipeline()));
                      });
  if (!object)
    return mlir::failure();
  return std::move(*object);
}

} // namespace tessera::codegen
