//===- RoundResults.h - Attention that rounds its results -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_ROUNDRESULTS_H
#define TESSERA_LIB_CODEGEN_ROUNDRESULTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::codegen {

/// The only reader of a value, if it rounds each element to 16 bits and does nothing else.
mlir::linalg::GenericOp roundingOf(mlir::Value value);

/// Lets attention and its derivative write results that are only rounded to 16 bits as such: their
/// sums are f32 in registers, so nothing else changes. After partitioning, since contributions of
/// devices are added in f32.
void roundAttention(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_ROUNDRESULTS_H
