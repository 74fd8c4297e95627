//===- KernelFuse.cpp - Elementwise fusion ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

using namespace mlir;

namespace tessera::codegen {

void fuseKernel(func::FuncOp kernel) {}

} // namespace tessera::codegen
