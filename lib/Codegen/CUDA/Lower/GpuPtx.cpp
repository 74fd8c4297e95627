//===- GpuPtx.cpp - Emit PTX by LLVM --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Kernels/MachineCode.h"
#include "../GpuStages.h"

#include "tessera/Codegen/CUDA/Architectures.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

using namespace llvm;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tessera::codegen {

static constexpr StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// Without features LLVM emits the first PTX version with the architecture, which the oldest
/// drivers accept.
static constexpr StringLiteral kOldestPtx = "";

bool isArchitecture(StringRef arch) {
  if (isStub(arch))
    return true;
  if (!arch.consume_front("sm_") && !arch.consume_front("compute_"))
    return false;
  StringRef digits = arch.take_while(isDigit);
  StringRef suffix = arch.drop_front(digits.size());
  unsigned number;
  return !digits.getAsInteger(10, number) && number >= 80 && number < 1000 &&
         (suffix.empty() || suffix == "a" || suffix == "f");
}

/// Loops of more iterations are not unrolled.
static constexpr unsigned kMostUnrolled = 16;

namespace {
/// Prevents ptxas from unrolling loops: it would unroll a hundred iterations, which takes long to
/// compile.
struct KeepLoops : PassInfoMixin<KeepLoops> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      loop->setLoopAlreadyUnrolled();
    return PreservedAnalyses::all();
  }
};
} // namespace

/// The optimizations that launches still need: hoisting, address simplification, unrolling of short
/// loops. All of O2 takes several times longer and finds nothing more.
static FunctionPassManager launchPipeline() {
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  LoopPassManager rotate;
  rotate.addPass(LoopRotatePass());
  rotate.addPass(LICMPass(LICMOptions()));
  rotate.addPass(IndVarSimplifyPass());
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(rotate), /*UseMemorySSA=*/true));
  LoopUnrollOptions unroll(/*OptLevel=*/2);
  unroll.setPartial(true).setRuntime(false).setPeeling(false);
  unroll.setFullUnrollMaxCount(kMostUnrolled);
  passes.addPass(LoopUnrollPass(unroll));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(ADCEPass());
  passes.addPass(KeepLoops());
  return passes;
}

static void initialiseTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Division and square root of f32 have an error of 2 units in the last place, not correct
    // rounding: the latter is a call on a GPU, around which registers are spilled. LLVM only has an
    // option for it.
    for (StringRef name : {"nvptx-prec-divf32", "nvptx-prec-sqrtf32"})
      if (cl::Option *option = cl::getRegisteredOptions().lookup(name))
        option->addOccurrence(0, name, name.ends_with("divf32") ? "1" : "0");
  });
}

static const Target *findTarget(const Triple &triple, StringRef chip, std::string &error) {
  initialiseTarget();
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::unique_ptr<MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (known && known->isCPUStringValid(chip))
    return target;
  error = "LLVM does not support GPU '" + chip.str() + "'";
  return nullptr;
}

/// LLVM's name of an architecture.
static std::string chipOf(StringRef arch) {
  return ("sm_" + arch.drop_front(arch.find('_') + 1)).str();
}

/// The architectures that LLVM supports: "sm_80, sm_86, ...".
static std::string knownChips() {
  std::string error, result;
  const Target *target = TargetRegistry::lookupTarget(Triple(kTriple), error);
  std::unique_ptr<MCSubtargetInfo> info(
      target ? target->createMCSubtargetInfo(Triple(kTriple), "", "") : nullptr);
  if (info)
    for (const SubtargetSubTypeKV &each : info->getAllProcessorDescriptions())
      if (isArchitecture(each.Key))
        result += (result.empty() ? "" : ", ") + StringRef(each.Key).str();
  return result;
}

std::string checkArchitectures(ArrayRef<std::string> archs, bool warpgroups) {
  for (const std::string &arch : archs) {
    std::string unknown = "unknown architecture '" + arch + "'; ", error;
    if (!isArchitecture(arch))
      return unknown + "expected sm_NN or compute_NN with NN at least 80, or stub";
    if (!isStub(arch) && !isKnownChip(arch, error))
      return unknown + "LLVM has code for " + knownChips() + ", and PTX for them as compute_NN";
    if (llvm::count(archs, arch) > 1)
      return "duplicate architecture '" + arch + "'; give each architecture once";
    if (warpgroups && !isStub(arch) && arch != "sm_90a" && arch != "compute_90a")
      return "architecture '" + arch + "' lacks products of warpgroups; use --warpgroups with " +
             "--arch sm_90a (or compute_90a) alone";
  }
  return "";
}

bool isKnownChip(StringRef arch, std::string &error) {
  return findTarget(Triple(kTriple), chipOf(arch), error);
}

mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp launches, StringRef arch, std::string &error) {
  std::string chip = chipOf(arch);
  Triple triple(kTriple);
  const Target *target = findTarget(triple, chip, error);
  if (!target)
    return mlir::failure();
  TargetOptions options;
  // Contraction of multiply and add is decided on MLIR, as for the CPU.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, chip, kOldestPtx, options, Reloc::PIC_, std::nullopt, CodeGenOptLevel::Default));
  LLVMContext context;
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(launches, context, "kernel");
  if (!machine || !module) {
    error = "translation to LLVM IR failed";
    return mlir::failure();
  }
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  std::optional<std::string> text =
      emitMachineCode(*module, *machine, CodeGenFileType::AssemblyFile, tuning,
                      [](PassBuilder &, ModulePassManager &passes) {
                        passes.addPass(createModuleToFunctionPassAdaptor(launchPipeline()));
                      });
  if (!text) {
    error = "LLVM cannot write PTX";
    return mlir::failure();
  }
  return std::move(*text);
}

} // namespace tessera::codegen
