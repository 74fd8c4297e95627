//===- NarrowSums.cpp - Wide sums of 16-bit floats ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/NarrowSums.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;

SmallVector<dist::NarrowSum> dist::narrowSums(linalg::LinalgOp op) {
  SmallVector<NarrowSum> found;
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0)
    return found;
  for (OpResult result : op->getResults()) {
    unsigned output = result.getResultNumber();
    Type element = getElementTypeOrSelf(result.getType());
    SmallVector<Operation *> combiners;
    if ((!element.isBF16() && !element.isF16()) ||
        !matchReduction(op.getRegionOutputArgs(), output, combiners) || combiners.size() != 1 ||
        !isa<arith::AddFOp, arith::MulFOp>(combiners[0]))
      continue;
    BlockArgument accumulator = op.getRegionOutputArgs()[output];
    Operation *combiner = combiners[0];
    bool second = combiner->getOperand(1) == accumulator;
    auto product = combiner->getOperand(second ? 0 : 1).getDefiningOp<arith::MulFOp>();
    bool isExact = isa<arith::AddFOp>(combiner) && product && product->hasOneUse();
    found.push_back({output, combiner, isExact ? product.getOperation() : nullptr});
  }
  return found;
}
