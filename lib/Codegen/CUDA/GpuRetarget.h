//===- GpuRetarget.h - Launches for the emulator ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPURETARGET_H
#define TESSERA_CODEGEN_CUDA_GPURETARGET_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tessera::codegen {

/// Makes a launch a function `void symbol(void **arguments, const tessera_stub_thread *)` of the
/// CPU, after StubKernel.h. `table` holds the pointer to the emulator's functions; argument i has
/// `bytes[i]` bytes, and accesses beyond them are reported.
void retargetToStub(mlir::LLVM::LLVMFuncOp launch, mlir::LLVM::GlobalOp table,
                    llvm::ArrayRef<int64_t> bytes);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPURETARGET_H
