//===- ValueFlow.h - Values forwarded by control flow -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop or branch forwards its operands to its regions, and the yielded values of
// regions to regions and to its results. Passes that only need to know which value
// becomes which use these functions over MLIR's RegionBranchOpInterface, without
// knowledge of the ops.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_IR_VALUEFLOW_H
#define TESSERA_DIALECT_DIST_IR_VALUEFLOW_H

#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace tessera::dist {

/// Whether an op is a loop or branch: it computes nothing itself, and its values come from other
/// ops.
inline bool isControlFlow(mlir::Operation *op) {
  return mlir::isa<mlir::RegionBranchOpInterface>(op);
}
/// Whether an op terminates a region of a loop or branch, and forwards values.
inline bool isControlFlowEnd(mlir::Operation *op) {
  return op->hasTrait<mlir::OpTrait::IsTerminator>() && op->getParentOp() &&
         isControlFlow(op->getParentOp());
}

/// Calls `visit` with every use by which a loop or branch forwards a value, and with the region
/// argument or result that receives it: first the operands of regions, then their yielded values,
/// in the order of regions. A use may have several receivers: a value yielded by a loop becomes its
/// argument and its result.
void forEachForwardedUse(
    mlir::RegionBranchOpInterface op,
    llvm::function_ref<void(mlir::OpOperand &use, mlir::Value receiver)> visit);

/// The values that receive the value of a use by a loop or branch or its terminator; empty for
/// every other use, such as a condition or a bound.
llvm::SmallVector<mlir::Value, 2> receiversOf(mlir::OpOperand &use);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_IR_VALUEFLOW_H
