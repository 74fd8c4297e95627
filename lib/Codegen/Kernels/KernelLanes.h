//===- KernelLanes.h - Bodies on several elements at once -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op of a linalg.generic's body on scalars becomes the same op on vectors, an element a lane.
// What is the same in all lanes stays scalar.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::codegen {

/// Writes the indices that fusion and tiling have mapped as arithmetic, which has a vector form.
void expandIndices(mlir::OpBuilder &b, mlir::linalg::GenericOp op);

/// Whether every op of the body has a form on vectors; else `reason` names the first that has not.
bool hasLaneForm(mlir::linalg::GenericOp op, std::string &reason);

/// `value` in `width` lanes; itself when it is a vector already or `width` is 0.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, int64_t width);

/// `op`, of one result, with operands from `mapping`: on vectors of `width` when any of them is
/// one. Loads at computed indices are done once a lane.
mlir::Value cloneInLanes(mlir::OpBuilder &b, mlir::Operation &op, mlir::IRMapping &mapping,
                         int64_t width);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H
