//===- KernelTarget.cpp - The target CPU of kernels -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTarget.h"

#include "../Kernels/MachineCode.h"

#include "tessera/Support/CpuFeatures.h"

#include "llvm-c/Target.h"
#include "llvm/ADT/STLExtras.h"
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

using namespace llvm;

namespace tessera::codegen {

namespace {
/// An architecture with a code generator, and its names.
struct Architecture {
  const char *name, *triple, *baseline;
};
} // namespace
static constexpr Architecture kArchitectures[] = {
    {"x86-64", "x86_64-unknown-linux-gnu", "x86-64"},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic"},
};

static void initialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

/// The subtarget of a CPU with features added or removed; null if LLVM does not know the CPU.
static std::unique_ptr<MCSubtargetInfo>
subtargetOf(const Architecture &architecture, const std::string &cpu, const std::string &features) {
  std::string error;
  Triple triple(architecture.triple);
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  // Queries the generic CPU: a subtarget for an unknown one would print to stderr.
  std::unique_ptr<MCSubtargetInfo> generic(target->createMCSubtargetInfo(triple, "", ""));
  if (!generic || !generic->isCPUStringValid(cpu))
    return nullptr;
  return std::unique_ptr<MCSubtargetInfo>(target->createMCSubtargetInfo(triple, cpu, features));
}

std::string KernelTarget::features() const {
  std::string text;
  for (const std::string &feature : required)
    text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

bool KernelTarget::isForeign() const {
  return architecture != hostArchitecture();
}

mlir::FailureOr<KernelTarget> KernelTarget::get(const CpuOptions &options, std::string &error) {
  initialiseTargets();
  bool isNative = options.cpu.empty() || options.cpu == "native" || options.cpu == "host";
  std::string cpu = isNative ? sys::getHostCPUName().str() : options.cpu;
  for (const Architecture &architecture : kArchitectures) {
    if (isNative && architecture.name != StringRef(hostArchitecture()))
      continue;
    if (isNative && !subtargetOf(architecture, cpu, ""))
      cpu = architecture.baseline; // a CPU newer than LLVM
    std::unique_ptr<MCSubtargetInfo> subtarget = subtargetOf(
        architecture, cpu == architecture.name ? architecture.baseline : cpu, options.features);
    if (!subtarget)
      continue;
    KernelTarget target;
    target.triple = architecture.triple;
    target.cpu = cpu;
    target.architecture = architecture.name;
    target.baseline = architecture.baseline;
    if (isNative)
      target.required = hostFeatures();
    else
      for (const char *feature : kernelFeatures(architecture.name))
        if (subtarget->checkFeatures(std::string("+") + feature))
          target.required.push_back(feature);

    // Their default NaN is 0x7fc00000 or 0xffc00000, and NaN operands propagate.
    target.zeroExtendsNaN = true;
    auto has = [&](StringRef feature) { return is_contained(target.required, feature); };
    if (target.architecture == "x86-64") {
      bool avx512 = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
      target.vectorBits = avx512 ? 512 : has("avx2") ? 256 : 128;
      target.numRegisters = avx512 ? 32 : 16;
      target.fma = has("fma");
      target.convertsF16InIntegers = !has("f16c");
    } else {
      target.numRegisters = 32;
      target.fma = true;
    }
    return target;
  }
  error = "unknown CPU '" + options.cpu +
          "'; expected 'native', 'aarch64', or LLVM's name of an x86-64 or AArch64 CPU, such as "
          "x86-64-v3";
  return mlir::failure();
}

std::string targetKey(const CpuOptions &options) {
  std::string error;
  mlir::FailureOr<KernelTarget> target = KernelTarget::get(options, error);
  return failed(target) ? std::string() : target->key();
}

std::string checkCpu(const std::string &name) {
  CpuOptions options;
  options.cpu = name;
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
      parsed, baseline, features(), options, Reloc::PIC_, std::nullopt, CodeGenOptLevel::Default));
}

/// For vectorized loops: hoists, simplifies addresses, and unrolls windows of a few trips. O2 takes
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
    function.addFnAttr("target-cpu", target.baseline);
    function.addFnAttr("target-features", target.features());
    function.addFnAttr("tune-cpu",
                       target.cpu == target.architecture ? target.baseline : target.cpu);
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
