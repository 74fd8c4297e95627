//===- DeadInit.cpp - Whether an op reads its init ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Kernels/DeadInit.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

bool tessera::codegen::isInitDead(linalg::LinalgOp op, OpOperand &init) {
  if (op.payloadUsesValueFromOperand(&init))
    return false;
  ArrayRef<int64_t> shape = op.getShape(&init);
  if (llvm::is_contained(shape, 0))
    return true;
  // A loop that the output lacks may have no iterations: then nothing is written.
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  llvm::SmallBitVector seen(op.getNumLoops());
  for (auto [expr, extent] :
       llvm::zip_equal(op.getMatchingIndexingMap(&init).getResults(), shape)) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (constant && constant.getValue() == 0 && extent == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || seen.test(dim.getPosition()))
      return false;
    seen.set(dim.getPosition());
  }
  return !llvm::is_contained(extents, 0);
}
