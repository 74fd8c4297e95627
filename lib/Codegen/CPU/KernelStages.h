//===- KernelStages.h - The stages of one kernel's compilation --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel in a module of its own goes through
//
//   prepareKernel        one vocabulary: linalg.generic, tensor subset ops, scf     (tensors)
//   fuseKernel           elementwise producers into their consumers                 (tensors)
//   aimAtDestinations    every result is computed in its destination's buffer       (tensors)
//   groupAndTile         ops over the same rows share one loop over them            (tensors)
//   bufferizeKernel      destinations are written, temporaries stand at the entry   (memrefs)
//   vectoriseKernel      each op becomes loops over vectors                         (memrefs)
//   expandKernelMath     exp, tanh, ... as polynomials; multiply-adds; 16-bit floats
//   lowerKernelToLLVM    the LLVM dialect and the entry point `void(void **, i64, i64)`
//
// The fallback leaves out fuseKernel, groupAndTile and vectoriseKernel. Each stage is a separate,
// terminating rewrite: one big pattern set does not converge.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_KERNELSTAGES_H
#define TESSERA_CODEGEN_CPU_KERNELSTAGES_H

#include "KernelTarget.h"
#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Set on the outermost loop of a group whose trips are independent of each other.
inline constexpr llvm::StringLiteral kTaskLoopAttr = "kernel.task_loop";

/// Decomposes aggregates (softmax, concat, pad, gather, scatter) and generalises named ops.
mlir::LogicalResult prepareKernel(mlir::func::FuncOp kernel);

/// Fuses elementwise ops on tensors without ever computing anything twice.
void fuseKernel(mlir::func::FuncOp kernel);

/// Gives every returned value its destination argument as its buffer, as far up as it goes.
void aimAtDestinations(mlir::func::FuncOp kernel);

/// Puts ops that iterate over the same outer dimensions into one loop over them.
void groupAndTile(mlir::func::FuncOp kernel, const KernelTarget &target);

/// Turns tensors into memrefs. The function takes memrefs and returns nothing. Adds to the
/// temporary bytes of `info`.
mlir::LogicalResult bufferizeKernel(mlir::ModuleOp module, mlir::func::FuncOp kernel,
                                    KernelInfo &info);

/// Replaces every linalg op on memrefs by loops over vectors; what it does not know becomes scalar
/// loops, with a note in `info.reason`.
mlir::LogicalResult vectoriseKernel(mlir::func::FuncOp kernel, const KernelTarget &target,
                                    KernelInfo &info);

/// Replaces every linalg op on memrefs by scalar loops.
mlir::LogicalResult lowerToScalarLoops(mlir::func::FuncOp kernel);

/// Rewrites arithmetic that LLVM would turn into slow library calls. `approximate` allows
/// polynomials for f32 functions.
mlir::LogicalResult expandKernelMath(mlir::ModuleOp module, const KernelTarget &target,
                                     bool approximate);

/// Lowers to the LLVM dialect; the entry point is called `symbol`. `mayAlias[i]`: argument i may
/// share its buffer with another one.
mlir::LogicalResult lowerKernelToLLVM(mlir::ModuleOp module, mlir::func::FuncOp kernel,
                                      llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias);

/// Runs the stages on the kernel in `text` and compiles it to an object file with the entry point
/// `symbol`. On failure `error` says why no scheme worked.
mlir::FailureOr<std::string> compileKernelText(mlir::MLIRContext &context, llvm::StringRef text,
                                               llvm::StringRef symbol, const KernelTarget &target,
                                               const CpuOptions &options, KernelInfo &info,
                                               std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CPU_KERNELSTAGES_H
