//===- GpuMath.cpp - Functions that a GPU has no instruction for ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuStages.h"

using namespace mlir;

namespace tessera::codegen {

LogicalResult expandGpuMath(ModuleOp launches) {
  return success();
}

} // namespace tessera::codegen
