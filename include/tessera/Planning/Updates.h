//===- Updates.h - Products that update an argument -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_UPDATES_H
#define TESSERA_PLANNING_UPDATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// argument + factor * (a · b), whose result replaces the argument: a step of gradient descent. The
/// product may be added to the argument in its bytes, with one operand scaled; then the product is
/// not in memory.
struct Update {
  mlir::linalg::LinalgOp product;
  mlir::Value result;           ///< the new argument
  mlir::BlockArgument argument; ///< its last other reader is `after`
  double factor;
  unsigned scaled;        ///< the operand of the product that is scaled
  mlir::Operation *after; ///< the product or a later op: the argument may change then
  llvm::SmallVector<mlir::OpOperand *> reads; ///< from the product to the result, elementwise
};

/// Whether a scaled copy of an operand is worth a product that is not written: it takes memory,
/// too.
inline bool isWorthScaling(double operand, double product) {
  return 16 * operand <= product;
}

/// The updates of a function where the product is large against the scaled operand. All other
/// readers of the product and of the values up to the result have been excluded.
llvm::SmallVector<Update> updatesOf(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_UPDATES_H
