//===- ValueFlow.h - Values that control flow hands on ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop or branch gives its operands to its regions, its regions give what they
// yield to each other and to its results. Passes that only need to know which
// value becomes which ask here, through MLIR's RegionBranchOpInterface, and need
// not know the ops.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_VALUEFLOW_H
#define TESSERA_DIALECT_DIST_IR_VALUEFLOW_H

#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace tessera::dist {

/// Whether an op is a loop or branch: it computes nothing itself, and its values are those that
/// other ops make.
inline bool isControlFlow(mlir::Operation *op) {
  return mlir::isa<mlir::RegionBranchOpInterface>(op);
}
/// Whether an op ends a region of one, and hands values on.
inline bool isControlFlowEnd(mlir::Operation *op) {
  return op->hasTrait<mlir::OpTrait::IsTerminator>() && op->getParentOp() &&
         isControlFlow(op->getParentOp());
}

/// Calls with every use by which a loop or branch hands a value on, and with the region argument or
/// result that the value becomes: first what enters regions, then what they yield, in the order of
/// regions. A use may have several receivers: what a loop yields is its argument and its result.
void forEachHandover(mlir::RegionBranchOpInterface op,
                     llvm::function_ref<void(mlir::OpOperand &use, mlir::Value receiver)> visit);

/// What the value of a use becomes, for a use by a loop or branch or by the end of one; empty for
/// every other use, as of a condition or of a bound.
llvm::SmallVector<mlir::Value, 2> receiversOf(mlir::OpOperand &use);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_VALUEFLOW_H
