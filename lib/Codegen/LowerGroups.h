//===- LowerGroups.h - Products of blocks of rows of one group --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_LOWERGROUPS_H
#define TESSERA_LIB_CODEGEN_LOWERGROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::codegen {

/// Replaces products of rows with the matrix of their group (GroupedProduct.h) by loops over
/// blocks of rows of one group. Small ones stay, as look-ups.
void lowerGroups(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_LOWERGROUPS_H
