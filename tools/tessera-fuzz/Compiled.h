//===- Compiled.h - Local views through compiled kernels --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_FUZZ_COMPILED_H
#define TESSERA_TOOLS_TESSERA_FUZZ_COMPILED_H

#include "tessera/Interpreter/Tensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace tessera::fuzz {

/// Compiles a module of the local view like `tessera compile`, writes and reads the artifact, and
/// runs it `steps` times on the `threads` backend. Inputs (of the first step) and results (of the
/// last) are global. `cacheDirectory` is that of compiled kernels, empty for the user's. Fails
/// after an error at the module.
mlir::FailureOr<llvm::SmallVector<interpreter::Tensor>>
runCompiled(mlir::ModuleOp local, llvm::ArrayRef<interpreter::Tensor> inputs, int64_t steps,
            const std::string &cacheDirectory);

} // namespace tessera::fuzz

#endif // TESSERA_TOOLS_TESSERA_FUZZ_COMPILED_H
