//===- Memory.cpp - Memory of a planned program ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Memory.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

int64_t tessera::peakMemory(mlir::ModuleOp module) {
  int64_t peak = 0;
  module.walk([&](rt::ProgramOp program) {
    peak = std::max<int64_t>(peak, program.getPeakBytes().value_or(0));
  });
  return peak;
}
