//===- LinearExpr.cpp - Indices that are sums of loops --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/Rules/LinearExpr.h"

using namespace mlir;
using namespace tessera::dist;

/// Adds scale * expr; false if it is not linear.
static bool addScaled(AffineExpr expr, int64_t scale, LinearExpr &to) {
  if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
    to.terms.push_back({loop.getPosition(), scale});
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    to.constant += scale * constant.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addScaled(binary.getLHS(), scale, to) && addScaled(binary.getRHS(), scale, to);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && factor &&
         addScaled(binary.getLHS(), scale * factor.getValue(), to);
}

std::optional<LinearExpr> tessera::dist::linearExprOf(AffineExpr expr) {
  LinearExpr result;
  if (!addScaled(expr, 1, result))
    return std::nullopt;
  return result;
}
