//===- RoundResults.cpp - Attention that rounds its results ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoundResults.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera;

linalg::GenericOp codegen::roundingOf(Value value) {
  auto generic = value.hasOneUse() ? dyn_cast<linalg::GenericOp>(*value.getUsers().begin())
                                   : linalg::GenericOp();
  if (!generic || generic.getNumDpsInputs() != 1 || generic.getNumResults() != 1 ||
      generic.getNumParallelLoops() != generic.getNumLoops() ||
      generic.getDpsInputs()[0] != value ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return {};
  auto rounding = dyn_cast<arith::TruncFOp>(generic.getBody()->front());
  bool alone = rounding && rounding->getNextNode() == generic.getBody()->getTerminator() &&
               rounding.getIn() == generic.getBody()->getArgument(0) &&
               generic.getBody()->getTerminator()->getOperand(0) == rounding.getResult();
  return alone && rounding.getType().getIntOrFloatBitWidth() == 16 ? generic : linalg::GenericOp();
}

void codegen::roundAttention(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (!isa<ext::AttentionOp, ext::AttentionBackwardOp>(op))
      return;
    for (OpResult result : op->getResults())
      if (linalg::GenericOp rounding = roundingOf(result)) {
        result.setType(rounding.getResult(0).getType());
        rounding.replaceAllUsesWith(ValueRange(result));
        rounding.erase();
      }
  });
}
