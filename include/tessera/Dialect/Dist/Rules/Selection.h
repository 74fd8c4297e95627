//===- Selection.h - Loops with one nonzero iteration -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A look-up is a reduction over the rows of its table in which only one iteration
// contributes:
//
//   y[i, j] = sum over v of select(index[i] == v, x[v, j], 0)
//
// In this form it has a sharding rule and a derivative like any other sum. Code
// generation and cost model find the single iteration of v to compute here. Equivalent
// forms are recognized: another conjunct with the comparison, an offset of the loop (a
// device's part of the rows), other combiners, an accumulator that is kept if nothing
// is selected. With an index of the result it is a scatter, by any of the combiners, or
// with an accumulator that is replaced, in the order of the loops:
//
//   y[v, j] = x[v, j], then for each i: select(index[i] == v, u[i, j], y[v, j])
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_SELECTION_H
#define TESSERA_DIALECT_DIST_RULES_SELECTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// A loop `l` of which at most one iteration changes the result: l + offsets == index.
struct SelectedLoop {
  unsigned loop;
  mlir::Value index; ///< in the body; an integer or an index that no selected loop changes
  llvm::SmallVector<mlir::Value, 2> offsets; ///< added to the loop; the same
};

/// The selected loops of an op with one result; each loop once.
llvm::SmallVector<SelectedLoop, 2> selectedLoops(mlir::linalg::GenericOp op);
/// Those with enough iterations: a vector compares a few faster than it gathers one. Kernels
/// compute only the selected iteration of these.
llvm::SmallVector<SelectedLoop, 2> replaceableLoops(mlir::linalg::GenericOp op);
/// Those of them that are reductions: without them the op becomes a look-up.
llvm::SmallVector<SelectedLoop, 2> lookedUpLoops(mlir::linalg::GenericOp op);
/// Whether a look-up extracts elements of an operand, by its index.
bool isLookedUp(mlir::linalg::GenericOp op, mlir::OpOperand &operand);
/// Whether one of them is parallel, and more than a few terms are added or a tensor is updated: a
/// separate kernel adds each at its index, in order. (Fewer terms that are added to a constant are
/// compared with every row, in the kernel that reads the sums.)
bool isScatter(mlir::linalg::GenericOp op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_SELECTION_H
