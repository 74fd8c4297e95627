//===- TakeLookups.h - Turn sums over tables into look-ups ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_TAKELOOKUPS_H
#define TESSERA_LIB_CODEGEN_TAKELOOKUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Rewrites reductions that select one iteration (Dialect/Dist/Rules/Selection.h) as a read at its
/// index, in time independent of the table's size.
void takeLookups(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_TAKELOOKUPS_H
