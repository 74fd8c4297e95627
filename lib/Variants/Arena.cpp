//===- Arena.cpp - Planned memory of a program ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Variants/Arena.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

using namespace mlir;

int64_t tessera::peakMemory(ModuleOp module) {
  int64_t peak = 0;
  module.walk([&](rt::ProgramOp program) {
    peak = std::max<int64_t>(peak, program.getPeakBytes().value_or(0));
  });
  return peak;
}

FailureOr<int64_t> tessera::arenaOf(ModuleOp localView) {
  OwningOpRef<ModuleOp> copy = localView.clone();
  if (failed(codegen::lowerToRt(*copy)))
    return failure();
  return peakMemory(*copy);
}
