//===- KernelUnits.h - Compile kernels with equal text once -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H

#include "tessera/Codegen/Kernels/Kernel.h"

namespace tessera::codegen {

/// A kernel to compile once for all functions with its text.
struct KernelUnit {
  std::string text;
  std::string symbol; ///< digest of text and options; also the key of the cache
  mlir::func::FuncOp first;
};

/// The kernels of a module.
struct KernelUnits {
  std::vector<KernelUnit> units;
  std::vector<std::pair<std::string, size_t>> functions; ///< name and unit, in order
};

/// Identifies the compiler that made an object: LLVM's version and the sources of the kernel
/// compilers.
std::string kernelCompilerRevision();

/// Checks every function and finds those with equal text. `salt`: the options that affect the code.
/// Fails with a located diagnostic.
mlir::FailureOr<KernelUnits> collectUnits(mlir::ModuleOp kernels, llvm::StringRef salt);

/// Calls `compile` with each of `count` numbers once, on `threads` threads (0: one per core). A
/// thread's context is created on the first request of `compile`, so that interning is neither
/// shared nor locked.
void compileInParallel(
    size_t count, unsigned threads, const mlir::DialectRegistry &registry,
    llvm::function_ref<void(size_t, llvm::function_ref<mlir::MLIRContext &()>)> compile);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H
