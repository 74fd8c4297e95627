//===- SelectedBody.h - Body at the selected iteration ----------*- C++ -*-===//
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

/// Copies the body of an op for the selected iteration of each selected loop: clamp(index -
/// offsets, 0, extent - 1). The comparison is kept, and is false for an index out of bounds.
class SelectedBody {
public:
  SelectedBody(mlir::linalg::GenericOp op, llvm::ArrayRef<dist::SelectedLoop> selected)
      : op(op), selected(selected) {}

  /// `loops`: by loop, null for the selected ones, which are filled in. `known`: available
  /// arguments of the body; other operands are extracted. Returns the yielded value.
  mlir::Value write(mlir::OpBuilder &b, llvm::SmallVectorImpl<mlir::Value> &loops,
                    mlir::IRMapping known);
  /// The indices of an operand, given complete `loops`.
  llvm::SmallVector<mlir::Value> placeOf(mlir::OpBuilder &b, mlir::OpOperand &operand,
                                         mlir::ValueRange loops);
  /// Fills in the selected ones of `loops`. A part of `write`; values that it needs stay in
  /// `known`.
  void writeIterations(mlir::OpBuilder &b, llvm::SmallVectorImpl<mlir::Value> &loops,
                       mlir::IRMapping &known);

  /// The element of an operand at complete `loops`; a scalar as it is.
  mlir::Value elementOf(mlir::OpBuilder &b, mlir::OpOperand &operand, mlir::ValueRange loops);

private:
  mlir::Value asIndex(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value computed(mlir::OpBuilder &b, mlir::Value value, mlir::ValueRange loops,
                       mlir::IRMapping &known);
  void copy(mlir::OpBuilder &b, mlir::Operation *inner, mlir::ValueRange loops,
            mlir::IRMapping &known);

  mlir::linalg::GenericOp op;
  llvm::ArrayRef<dist::SelectedLoop> selected;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_SELECTEDBODY_H
