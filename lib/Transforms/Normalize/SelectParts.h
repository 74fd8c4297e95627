//===- SelectParts.h - Sums of one element, and its places ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SELECTPARTS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SELECTPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// A sum over a dimension of which a mask, known at compile time, selects one index is a slice at
/// that index; its derivative, a value where the mask is set and zero elsewhere, is a pad:
///
///   sum over i of (i == 3 ? x[i] : 0)     x[3]
///   (i == 3 ? g : 0) for each i           pad of g
///
/// The last stage of a pipeline in shard_map gives its results to all as such a sum over stages.
void selectParts(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SELECTPARTS_H
