//===- SelectProducts.h - Products with one-hot operands --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_SELECTPRODUCTS_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_SELECTPRODUCTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Rewrites products with one-hot operands as sums that select
/// (Dialect/Dist/Rules/Selection.h).
void selectProducts(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_SELECTPRODUCTS_H
