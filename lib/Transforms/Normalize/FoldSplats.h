//===- FoldSplats.h - Values of one number ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLDSPLATS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLDSPLATS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Replaces elementwise ops and broadcasts all of whose results have one known element, such as a
/// choice between equal constants, by splat constants: each use then has its own, in any sharding,
/// where the data of the choice tied it to one.
void foldSplats(mlir::func::FuncOp function);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_FOLDSPLATS_H
