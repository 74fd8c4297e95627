//===- KernelVectorise.cpp - Loops over vectors -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

using namespace mlir;

namespace tessera::codegen {

LogicalResult vectoriseKernel(func::FuncOp kernel, const KernelTarget &, KernelInfo &) {
  return kernel.emitError("vectors are not implemented yet");
}

} // namespace tessera::codegen
