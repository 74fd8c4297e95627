//===- MultiplyAdds.cpp - A product and a sum as one operation ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStages.h"

using namespace mlir;

namespace tessera::codegen {

void contractMultiplyAdds(linalg::GenericOp op) {
  IRRewriter rewriter(op.getContext());
  auto product = [](Value value) {
    auto mul = value.getDefiningOp<arith::MulFOp>();
    return mul && mul->hasOneUse() ? mul : arith::MulFOp();
  };
  for (Operation &inner : llvm::make_early_inc_range(op.getBody()->without_terminator())) {
    Type type = inner.getNumResults() == 1 ? inner.getResult(0).getType() : Type();
    if (!isa<arith::AddFOp, arith::SubFOp>(inner) || !(type.isF32() || type.isF64()))
      continue;
    Value left = inner.getOperand(0), right = inner.getOperand(1);
    bool subtract = isa<arith::SubFOp>(inner);
    rewriter.setInsertionPoint(&inner);
    Location loc = inner.getLoc();
    if (arith::MulFOp mul = product(left)) {
      if (subtract)
        right = arith::NegFOp::create(rewriter, loc, right);
      rewriter.replaceOpWithNewOp<math::FmaOp>(&inner, mul.getLhs(), mul.getRhs(), right);
      rewriter.eraseOp(mul);
    } else if (arith::MulFOp mul = product(right)) {
      Value factor = mul.getLhs();
      if (subtract)
        factor = arith::NegFOp::create(rewriter, loc, factor);
      rewriter.replaceOpWithNewOp<math::FmaOp>(&inner, factor, mul.getRhs(), left);
      rewriter.eraseOp(mul);
    }
  }
}

} // namespace tessera::codegen
