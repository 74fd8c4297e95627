//===- MergeSums.h - Sums of sums over mesh axes ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_MERGESUMS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_MERGESUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Whether an op adds up the elements of one tensor, from zero, over some of its loops.
bool isPlainSum(mlir::linalg::LinalgOp op);

/// Makes a sum of a constrained sum, which nothing else reads, one sum:
///
///   a = sum of g over y, constrained to be complete      s = sum of g over y and x
///   s = sum of a over x
///
/// Local views of shard_map (psum over "y", then psum_scatter over "x") constrain the result of
/// each collective. Without the constraint the contributions of all axes are reduced together:
/// scattered over x first, the sum over y is one of parts.
void mergeSums(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_MERGESUMS_H
