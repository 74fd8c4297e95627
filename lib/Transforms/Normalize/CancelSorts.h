//===- CancelSorts.h - Compute in the order before a sort -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_CANCELSORTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_CANCELSORTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Computes rows in the order that they had before they were permuted by sorted indices, if the
/// permutation is undone, or the rows are only added up. Float sums may change their order. Returns
/// whether anything changed.
bool cancelSorts(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_CANCELSORTS_H
