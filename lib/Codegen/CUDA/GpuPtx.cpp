//===- GpuPtx.cpp - PTX by LLVM -------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuStages.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace llvm;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tessera::codegen {

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

/// The PTX version that an architecture needs at least; LLVM's default would be too old for some.
static std::string featuresFor(StringRef chip) {
  StringRef digits = chip.drop_front(3).take_while(isDigit);
  unsigned number = 0;
  (void)digits.getAsInteger(10, number);
  return number >= 100 ? "+ptx86" : number >= 90 ? "+ptx80" : "+ptx70";
}

mlir::FailureOr<std::string> emitPtx(mlir::ModuleOp launches, StringRef arch, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string chip = isPtx(arch) ? "sm_" + arch.drop_front(8).str() : arch.str();
  Triple triple("nvptx64-nvidia-cuda");
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return mlir::failure();
  std::unique_ptr<MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(chip)) {
    error = "LLVM knows no GPU '" + chip + "'";
    return mlir::failure();
  }
  TargetOptions options;
  // Contraction is decided on MLIR, as for the CPU.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, chip, featuresFor(chip), options, Reloc::PIC_,
                                  std::nullopt, CodeGenOptLevel::Aggressive));
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
  PassBuilder builder(machine.get(), tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager cgscc;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(*module, modules);

  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, CodeGenFileType::AssemblyFile)) {
    error = "LLVM cannot write PTX";
    return mlir::failure();
  }
  emit.run(*module);
  return std::string(text.str());
}

} // namespace tessera::codegen
