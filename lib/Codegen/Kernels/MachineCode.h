//===- MachineCode.h - LLVM IR to machine code ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_MACHINECODE_H
#define TESSERA_LIB_CODEGEN_KERNELS_MACHINECODE_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <optional>
#include <string>

namespace tessera::codegen {

/// Runs the passes that `build` adds over the module, then the machine's code generator: an object
/// file, or text. Nothing if the machine does not support that output.
std::optional<std::string>
emitMachineCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type,
                const llvm::PipelineTuningOptions &tuning,
                llvm::function_ref<void(llvm::PassBuilder &, llvm::ModulePassManager &)> build);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_MACHINECODE_H
