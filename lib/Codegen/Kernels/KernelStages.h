//===- KernelStages.h - Stages that all targets share -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel goes through whatever it is compiled for; CpuStages.h and GpuStages.h have the
// order and what is theirs. Each stage is a separate, terminating rewrite: one big pattern set does
// not converge.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H

#include "tessera/Codegen/Kernels/Kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera::codegen {

/// Checks the contract that Kernels/Kernel.h states.
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

/// Decomposes aggregates (softmax, concat, pad, gather, scatter) and generalises named ops; then
/// every scalar op has a result and every index is inside.
mlir::LogicalResult prepareKernel(mlir::func::FuncOp kernel);
/// Parts of it: sums that are written at indices become loops in order (LowerScatters.cpp); the two
/// that define results (DefineScalars.cpp, ClampIndices.cpp).
void lowerScatters(mlir::func::FuncOp kernel);
void defineScalars(mlir::func::FuncOp kernel);
void clampIndices(mlir::func::FuncOp kernel);

/// Fuses elementwise ops on tensors without ever computing anything twice.
void fuseKernel(mlir::func::FuncOp kernel);

/// Gives every returned value its destination argument as its buffer, as far up as it goes.
void aimAtDestinations(mlir::func::FuncOp kernel);

/// Bytes of temporary buffers inside a kernel.
struct TemporaryBytes {
  int64_t stack = 0, heap = 0;
};

/// Turns tensors into memrefs. The function takes memrefs and returns nothing.
mlir::LogicalResult bufferizeKernel(mlir::ModuleOp module, mlir::func::FuncOp kernel,
                                    TemporaryBytes &temporaries);

/// x * y + z as one operation where the product has no other use. Done once, on the scalar body:
/// vectors and remainders then round alike, and so do runs that cut a tensor differently.
void contractMultiplyAdds(mlir::linalg::GenericOp op);

/// Replaces every linalg op on memrefs by scalar loops.
mlir::LogicalResult lowerToScalarLoops(mlir::func::FuncOp kernel);

/// What arithmetic must know of a target.
struct MathTarget {
  bool f16InIntegers = false;  ///< no instruction converts f16 to f32 and back
  bool zeroExtendsNaN = false; ///< a NaN that f32 arithmetic makes has zeros in its lower half
  bool approximate = true;     ///< polynomials for f32 functions
};

/// Rewrites arithmetic that LLVM would turn into slow library calls, and 16-bit floats into f32.
mlir::LogicalResult expandKernelMath(mlir::ModuleOp module, const MathTarget &target);

/// Everything structured becomes a flow graph, everything on memrefs plain addresses.
mlir::LogicalResult flattenKernel(mlir::ModuleOp module);

/// Gives memory accesses the types that lie in memory. bf16 moves as i16: otherwise LLVM folds our
/// rounding into a select of bf16 values, which on CPUs without that type becomes a call to a
/// function that no library here has. Vectors of i1 move as bytes: LLVM would pack them into bits.
void useMemoryTypes(mlir::LLVM::LLVMFuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELSTAGES_H
