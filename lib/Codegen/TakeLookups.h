//===- TakeLookups.h - Look-ups instead of sums over tables -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_TAKELOOKUPS_H
#define TESSERA_LIB_CODEGEN_TAKELOOKUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Rewrites reductions of which one iteration counts (Dialect/Dist/Rules/Selection.h) so that they
/// read that one: time no longer grows with the table.
void takeLookups(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_TAKELOOKUPS_H
