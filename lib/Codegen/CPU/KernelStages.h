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

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Set on the outermost loop of a group whose trips are independent of each other.
inline constexpr llvm::StringLiteral kTaskLoopAttr = "kernel.task_loop";

/// Checks the contract that KernelCompiler.h states.
mlir::LogicalResult checkKernel(mlir::func::FuncOp kernel);

/// The kernel alone, under a name and without attributes that do not concern it: equal kernels have
/// equal texts.
std::string canonicalText(mlir::func::FuncOp kernel);

/// Which arguments of a kernel, as it was outlined, may share a buffer with another one.
llvm::SmallVector<bool> mayAliasOf(mlir::func::FuncOp kernel);

/// Collects the errors of one attempt at compilation as text.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext *context);
  /// The errors, else which stage failed without one.
  std::string reason(llvm::StringRef stage) const {
    return text.empty() ? (stage + " failed").str() : text;
  }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

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

/// x * y + z as one operation where the product has no other use. Done once, on the scalar body:
/// vectors and remainders then round alike, and so do runs that cut a tensor differently.
void contractMultiplyAdds(mlir::linalg::GenericOp op);

/// Replaces every linalg op on memrefs by scalar loops.
mlir::LogicalResult lowerToScalarLoops(mlir::func::FuncOp kernel);

/// Rewrites arithmetic that LLVM would turn into slow library calls. `approximate` allows
/// polynomials for f32 functions.
mlir::LogicalResult expandKernelMath(mlir::ModuleOp module, const KernelTarget &target,
                                     bool approximate);

/// Everything structured becomes a flow graph, everything on memrefs plain addresses.
mlir::LogicalResult flattenKernel(mlir::ModuleOp module);

/// Gives memory accesses the types that lie in memory. bf16 moves as i16: otherwise LLVM folds our
/// rounding into a select of bf16 values, which on CPUs without that type becomes a call to a
/// function that no library here has. Vectors of i1 move as bytes: LLVM would pack them into bits.
void useMemoryTypes(mlir::LLVM::LLVMFuncOp function);

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
