//===- PrepareTensors.h - Tensor ops as generics and slices -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PREPARETENSORS_H
#define TESSERA_LIB_CODEGEN_PREPARETENSORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Rewrites `tensor`, `linalg` and elementwise `arith`/`math` ops on tensors as `linalg.generic`,
/// contractions, windowed ops, fills and slices; ext ops into groups with loops, or with `parallel`
/// into steps of parallel nests.
mlir::LogicalResult prepareTensors(mlir::func::FuncOp function, bool parallel);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PREPARETENSORS_H
