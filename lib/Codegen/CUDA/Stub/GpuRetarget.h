//===- GpuRetarget.h - Retarget launches to the emulator --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPURETARGET_H
#define TESSERA_CODEGEN_CUDA_GPURETARGET_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tessera::codegen {

/// GPU instructions that kernels call by name: 2^x of f32, with zeros for subnormal numbers; two
/// f32 rounded to bf16 in a word, the first in its upper half; f32 rounded to TF32 in a word.
inline constexpr llvm::StringLiteral kExp2Intrinsic = "llvm.nvvm.ex2.approx.ftz.f";
inline constexpr llvm::StringLiteral kPackBf16Intrinsic = "llvm.nvvm.ff2bf16x2.rn";
inline constexpr llvm::StringLiteral kRoundTf32Intrinsic = "llvm.nvvm.f2tf32.rna";

/// Assembly code of kernels: the indices of the block and of the thread, read where the code is.
inline constexpr llvm::StringLiteral kReadBlockCode = "mov.u32 $0, %ctaid.x;";
inline constexpr llvm::StringLiteral kReadThreadCode = "mov.u32 $0, %tid.x;";

/// Turns a launch into a CPU function `void symbol(void **arguments, const tessera_stub_thread *)`,
/// as StubKernel.h defines it. `table` holds the pointer to the emulator's functions; argument i
/// has `bytes[i]` bytes, and the function reports accesses beyond them; all accesses if
/// `reportAccesses`.
void retargetToStub(mlir::LLVM::LLVMFuncOp launch, mlir::LLVM::GlobalOp table,
                    llvm::ArrayRef<int64_t> bytes, bool reportAccesses);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPURETARGET_H
