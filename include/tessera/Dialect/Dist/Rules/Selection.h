//===- Selection.h - Loops of which one iteration counts --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A look-up is a reduction over the rows of its table of which one counts:
//
//   y[i, j] = sum over v of select(index[i] == v, x[v, j], 0)
//
// As such it has a sharding rule like any other sum, and a derivative. What is
// computed is one iteration of v, which those who generate code and who price it
// find here. Spellings do not matter: another conjunct beside the comparison, an
// offset of the loop (a device's part of the rows), other combiners, an
// accumulator that is kept where nothing is selected.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_SELECTION_H
#define TESSERA_DIALECT_DIST_RULES_SELECTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// A loop `l` of which one iteration at most changes the result: l + offsets == index.
struct SelectedLoop {
  unsigned loop;
  mlir::Value index; ///< in the body; an integer or an index that no selected loop changes
  llvm::SmallVector<mlir::Value, 2> offsets; ///< added to the loop; the same
};

/// The selected loops of an op with one result; each loop once.
llvm::SmallVector<SelectedLoop, 2> selectedLoops(mlir::linalg::GenericOp op);
/// Those that have enough iterations: of a few, a vector compares all faster than it gathers one.
/// Kernels compute the selected iteration of these alone.
llvm::SmallVector<SelectedLoop, 2> replaceableLoops(mlir::linalg::GenericOp op);
/// Those of them that are reductions: the op becomes a look-up without them.
llvm::SmallVector<SelectedLoop, 2> lookedUpLoops(mlir::linalg::GenericOp op);
/// Whether a look-up extracts elements of an operand, by its index.
bool isLookedUp(mlir::linalg::GenericOp op, mlir::OpOperand &operand);
/// Whether one of them is parallel, and more than a few terms are added up: a kernel of its own
/// writes each where its index says. (Fewer are compared with every row, in whatever kernel needs
/// the sums.)
bool isScatter(mlir::linalg::GenericOp op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_SELECTION_H
