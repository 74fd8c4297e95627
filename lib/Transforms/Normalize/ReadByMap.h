//===- ReadByMap.h - Look-ups at computable indices -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Replaces look-ups at indices that are affine in the iteration by reads through an indexing map:
/// windows by `x[arange(n)[:, None] + arange(k)]`, every second row, and the like. The elements
/// that a device needs are then static.
void readByMap(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H
