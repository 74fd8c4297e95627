//===- CpuStages.h - The stages of a kernel for a CPU -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel in a separate module passes through
//
//   prepareKernel        one vocabulary: linalg.generic, tensor subset ops, scf     (tensors)
//   fuseKernel           elementwise producers into their consumers                 (tensors)
//   aimAtDestinations    every result is computed in its destination's buffer       (tensors)
//   groupAndTile         ops over the same rows share one loop over them            (tensors)
//   bufferizeKernel      results go to destinations, temporaries to the entry       (memrefs)
//   vectoriseKernel      each op becomes loops over vectors                         (memrefs)
//   expandKernelMath     exp, tanh, ... as polynomials; multiply-adds; 16-bit floats
//   lowerKernelToLLVM    the LLVM dialect and the entry point `void(void **, i64, i64)`
//
// The fallback omits fuseKernel, groupAndTile and vectoriseKernel.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_CPU_CPUSTAGES_H
#define TESSERA_LIB_CODEGEN_CPU_CPUSTAGES_H

#include "../Kernels/KernelStages.h"
#include "KernelTarget.h"

#include "tessera/Codegen/Kernels/TaskLoop.h"

namespace tessera::codegen {

/// Writes a kernel that only fills and inserts block by block, as tasks.
void insertByBlocks(mlir::func::FuncOp kernel);

/// Puts ops that iterate over the same outer dimensions into one loop over them.
void groupAndTile(mlir::func::FuncOp kernel, const KernelTarget &target);

/// Replaces every linalg op on memrefs by loops over vectors; unsupported ops become scalar loops,
/// with a note in `info.reason`.
mlir::LogicalResult vectoriseKernel(mlir::func::FuncOp kernel, const KernelTarget &target,
                                    KernelInfo &info);

/// Lowers to the LLVM dialect; the entry point is called `symbol`. `mayAlias[i]`: argument i may
/// share its buffer with another one.
mlir::LogicalResult lowerKernelToLLVM(mlir::ModuleOp module, mlir::func::FuncOp kernel,
                                      llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias);

/// Runs the stages on the kernel in `text` and compiles it to an object file with the entry point
/// `symbol`. On failure `error` has the reason of each scheme.
mlir::FailureOr<std::string> compileKernelText(mlir::MLIRContext &context, llvm::StringRef text,
                                               llvm::StringRef symbol, const KernelTarget &target,
                                               const CpuOptions &options, KernelInfo &info,
                                               std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_CPU_CPUSTAGES_H
