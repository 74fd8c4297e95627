//===- HoistInvariants.cpp - Hoist loop-invariant ops ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/HoistInvariants.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace tessera;

/// Whether an op may be executed speculatively: it has no side effects, and neither it nor its body
/// can divide by zero or read out of bounds.
static bool isHarmless(Operation *op) {
  if (!isMemoryEffectFree(op) || isa<LoopLikeOpInterface>(op))
    return false;
  return !op->walk([](Operation *inner) {
              bool safe = isSpeculatable(inner) || inner->hasTrait<OpTrait::IsTerminator>();
              return safe && !isa<tensor::ExtractOp>(inner) ? WalkResult::advance()
                                                            : WalkResult::interrupt();
            }).wasInterrupted();
}

void dist::hoistInvariants(func::FuncOp function) {
  // Inner loops first, so that an op leaves all loops in which it is invariant.
  function.walk([](LoopLikeOpInterface loop) {
    moveLoopInvariantCode(
        loop.getLoopRegions(),
        [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
        [](Operation *op, Region *) { return isHarmless(op); },
        [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
  });
}
