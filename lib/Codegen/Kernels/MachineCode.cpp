//===- MachineCode.cpp - LLVM IR to machine code --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"

using namespace llvm;

namespace tessera::codegen {

std::optional<std::string>
emitMachineCode(Module &module, TargetMachine &machine, CodeGenFileType type,
                const PipelineTuningOptions &tuning,
                function_ref<void(PassBuilder &, ModulePassManager &)> build) {
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager cgscc;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  ModulePassManager passes;
  build(builder, passes);
  passes.run(module, modules);

  SmallString<0> code;
  raw_svector_ostream stream(code);
  legacy::PassManager emit;
  if (machine.addPassesToEmitFile(emit, stream, nullptr, type))
    return std::nullopt;
  emit.run(module);
  return std::string(code.str());
}

} // namespace tessera::codegen
