//===- KernelStages.h - Stages that all targets share -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stages of a kernel for all targets; CpuStages.h and GpuStages.h have the order and the stages
// of one target. Each stage is a separate, terminating rewrite: one big pattern set does not
// converge.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H

#include "tessera/Codegen/Kernels/Kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Checks the contract of Kernels/Kernel.h.
mlir::LogicalResult checkKernel(mlir::func::FuncOp kernel);

/// The text of the kernel with a fixed name and without irrelevant attributes: equal kernels have
/// equal texts.
std::string canonicalText(mlir::func::FuncOp kernel);

/// Whether each argument of an outlined kernel may share a buffer with another one.
llvm::SmallVector<bool> mayAliasOf(mlir::func::FuncOp kernel);

/// Collects the errors of one compilation as text.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext *context);
  /// The errors, else the name of the failed stage.
  std::string reason(llvm::StringRef stage) const {
    return text.empty() ? (stage + " failed").str() : text;
  }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// Decomposes aggregates (softmax, concat, pad, gather, scatter) and generalizes named ops; then
/// defines the result of every scalar op and clamps every index.
/// `scattersInTasks`: sums that are written at indices are divided among workers.
mlir::LogicalResult prepareKernel(mlir::func::FuncOp kernel, bool scattersInTasks = false);
/// Parts of it: sums that are written at indices become loops in order (LowerScatters.cpp); the two
/// that define results (DefineScalars.cpp, ClampIndices.cpp).
void lowerScatters(mlir::func::FuncOp kernel, bool inTasks);
/// Contractions with strided operands become loops, which add products up in order.
void lowerContractions(mlir::func::FuncOp kernel);
/// Scans and sorts become loops, each line in turn.
void lowerScans(mlir::func::FuncOp kernel);
void lowerSorts(mlir::func::FuncOp kernel);
void defineScalars(mlir::func::FuncOp kernel);
void clampIndices(mlir::func::FuncOp kernel);

/// Fuses elementwise ops on tensors without recomputation.
void fuseKernel(mlir::func::FuncOp kernel);

/// Computes every returned value in the buffer of its destination argument, as far up as possible.
void aimAtDestinations(mlir::func::FuncOp kernel);

/// Bytes of temporary buffers inside a kernel.
struct TemporaryBytes {
  int64_t stack = 0, heap = 0;
};

/// Turns tensors into memrefs. The function takes memrefs and returns nothing.
mlir::LogicalResult bufferizeKernel(mlir::ModuleOp module, mlir::func::FuncOp kernel,
                                    TemporaryBytes &temporaries);

/// x * y + z as one operation where the product has no other use. Done once, on the scalar body, so
/// that vectors, remainders and differently cut tensors round equally.
void contractMultiplyAdds(mlir::linalg::GenericOp op);

/// Replaces every linalg op on memrefs by scalar loops.
mlir::LogicalResult lowerToScalarLoops(mlir::func::FuncOp kernel);

/// Properties of a target for arithmetic.
struct MathTarget {
  bool isGpu = false;          ///< instructions round f32 to bf16, approximate 2^x and tanh,
                               ///< add and multiply pairs of 16-bit floats
  bool f16InIntegers = false;  ///< no instruction converts f16 to f32 and back
  bool zeroExtendsNaN = false; ///< NaN results of f32 arithmetic have zeros in the lower half
  bool approximate = true;     ///< polynomials for f32 functions
};

/// Rewrites arithmetic that LLVM would turn into slow library calls, and 16-bit floats into f32.
mlir::LogicalResult expandKernelMath(mlir::ModuleOp module, const MathTarget &target);

/// Everything structured becomes a flow graph, everything on memrefs plain addresses.
mlir::LogicalResult flattenKernel(mlir::ModuleOp module);

/// Gives memory accesses the types in memory. bf16 is loaded and stored as i16: otherwise LLVM
/// folds our rounding into a select of bf16 values, which on CPUs without that type becomes a call
/// to a missing library function. Vectors of i1 are bytes: LLVM would pack them into bits.
void useMemoryTypes(mlir::LLVM::LLVMFuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H
