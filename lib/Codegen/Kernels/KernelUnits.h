//===- KernelUnits.h - Kernels of one text, compiled once -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H

#include "tessera/Codegen/Kernels/Kernel.h"

namespace tessera::codegen {

/// A kernel to compile once, whatever the number of functions that have its text.
struct KernelUnit {
  std::string text;
  std::string symbol; ///< of the text and of how it is compiled: also the key of the cache
  mlir::func::FuncOp first;
};

/// The kernels of a module.
struct KernelUnits {
  std::vector<KernelUnit> units;
  std::vector<std::pair<std::string, size_t>> functions; ///< name and unit, in order
};

/// Checks every function and finds those of equal text. `salt`: all that decides on the code beside
/// the text. Fails with a located diagnostic.
mlir::FailureOr<KernelUnits> collectUnits(mlir::ModuleOp kernels, llvm::StringRef salt);

/// Calls `compile` with each of `count` numbers once, on `threads` threads (0: one a core). A
/// thread's context is made when `compile` first asks for it: interning is then neither shared nor
/// locked.
void compileInParallel(
    size_t count, unsigned threads, const mlir::DialectRegistry &registry,
    llvm::function_ref<void(size_t, llvm::function_ref<mlir::MLIRContext &()>)> compile);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELUNITS_H
