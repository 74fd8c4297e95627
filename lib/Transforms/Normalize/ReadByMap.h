//===- ReadByMap.h - Look-ups at indices that follow a rule -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Reads tables by an indexing map where the program looks them up at indices that are affine in
/// the iteration: windows by `x[arange(n)[:, None] + arange(k)]`, every second row, and the like.
/// Then what a device needs is known, and no row is searched for.
void readByMap(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_READBYMAP_H
