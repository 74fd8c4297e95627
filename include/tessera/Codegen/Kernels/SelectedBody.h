//===- SelectedBody.h - The iteration that a selection selects --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELS_SELECTEDBODY_H
#define TESSERA_CODEGEN_KERNELS_SELECTEDBODY_H

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/IR/IRMapping.h"

namespace tessera::codegen {

/// Writes the body of an op once more, for the one iteration of each selected loop that counts:
/// clamp(index - offsets, 0, extent - 1). The comparison stays and is false where the index lies
/// outside.
class SelectedBody {
public:
  SelectedBody(mlir::linalg::GenericOp op, llvm::ArrayRef<dist::SelectedLoop> selected)
      : op(op), selected(selected) {}

  /// `loops`: by loop, null for the selected ones, which are filled in. `known`: arguments of the
  /// body that are there; other operands are extracted. Returns what the body yields.
  mlir::Value write(mlir::OpBuilder &b, llvm::SmallVectorImpl<mlir::Value> &loops,
                    mlir::IRMapping known);
  /// Where an operand is accessed, when `loops` are complete.
  llvm::SmallVector<mlir::Value> placeOf(mlir::OpBuilder &b, mlir::OpOperand &operand,
                                         mlir::ValueRange loops);
  /// Fills in the selected ones of `loops`. A part of `write`; values that it needs stay in `known`.
  void writeIterations(mlir::OpBuilder &b, llvm::SmallVectorImpl<mlir::Value> &loops,
                       mlir::IRMapping &known);

private:
  mlir::Value asIndex(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value computed(mlir::OpBuilder &b, mlir::Value value, mlir::ValueRange loops,
                       mlir::IRMapping &known);
  void copy(mlir::OpBuilder &b, mlir::Operation *inner, mlir::ValueRange loops,
            mlir::IRMapping &known);
  mlir::Value elementOf(mlir::OpBuilder &b, mlir::OpOperand &operand, mlir::ValueRange loops);

  mlir::linalg::GenericOp op;
  llvm::ArrayRef<dist::SelectedLoop> selected;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_SELECTEDBODY_H
