//===- KernelLanes.h - Bodies on several elements at once -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scalar op of a linalg.generic's body becomes the same op on vectors, one element per lane.
// Values equal in all lanes stay scalar.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::codegen {

/// Expands the index maps of fusion and tiling into arithmetic, which has a vector form.
void expandIndices(mlir::OpBuilder &b, mlir::linalg::GenericOp op);

/// Whether every op of the body has a vector form; else `reason` names the first one without.
bool hasLaneForm(mlir::linalg::GenericOp op, std::string &reason);

/// `value` in `width` lanes; itself if it is already a vector or `width` is 0.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, int64_t width);

/// `op`, of one result, with operands from `mapping`: on vectors of `width` if any operand is a
/// vector. Loads at computed indices run once per lane.
mlir::Value cloneInLanes(mlir::OpBuilder &b, mlir::Operation &op, mlir::IRMapping &mapping,
                         int64_t width);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELLANES_H
