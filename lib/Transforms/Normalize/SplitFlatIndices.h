//===- SplitFlatIndices.h - Indices into merged dimensions ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITFLATINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITFLATINDICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Splits indices i[b] * T + j[b, m], with a known function i of the loops and j in [0, T), that
/// read or write a dimension of R * T elements, in row and column:
///
///   sum over v of select(index[b, m] == v, x[v], 0)
///   sum over r, c of select(i[b] == r and j[b, m] == c, x[r, c], 0)
///
/// `followLoops` then removes the search for the row. Without bounds on j another row may be meant.
void splitFlatIndices(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITFLATINDICES_H
