//===- DeadInit.h - Whether an op reads its init ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELS_DEADINIT_H
#define TESSERA_CODEGEN_KERNELS_DEADINIT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::codegen {

/// Whether `op` does not use the value of its output operand `init`: the body does not read it, and
/// the op overwrites every element.
///
///   output map        tensor<3x4>             dead
///   (i, j) -> (j, i)  extents 4, 3            yes
///   (i, j) -> (j)     of tensor<3>, i reduced yes, unless i has no iteration
///   (i)    -> (0, i)  of tensor<1x4>          yes
///   (i)    -> (0, i)  of tensor<3x4>          no: rows 1 and 2 stay
///   (i)    -> (i, i)  of tensor<3x3>          no: only the diagonal is written
///   (i)    -> (2 * i)                         no
bool isInitDead(mlir::linalg::LinalgOp op, mlir::OpOperand &init);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_DEADINIT_H
