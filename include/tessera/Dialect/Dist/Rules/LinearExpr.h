//===- LinearExpr.h - Indices that are sums of loops ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_LINEAREXPR_H
#define TESSERA_DIALECT_DIST_RULES_LINEAREXPR_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera::dist {

/// constant + sum of coefficient * loop, such as `2 * i + j - 1` in a convolution.
struct LinearExpr {
  llvm::SmallVector<std::pair<unsigned, int64_t>, 2> terms; ///< (loop, coefficient), in order
  int64_t constant = 0;
};

/// Empty if the expression has a symbol, a division or a product of loops.
std::optional<LinearExpr> linearExprOf(mlir::AffineExpr expr);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_LINEAREXPR_H
