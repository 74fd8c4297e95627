//===- SplitLoops.h - Loops of linalg ops as several ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Whether an op just runs over a loop: it could as well run over several in its place.
bool canSplitLoop(mlir::linalg::LinalgOp op, int64_t loop);

/// Whether the user wrote something about an op, which stays with it.
bool isAnnotated(mlir::Operation *op);

/// The op with loops for which `isSplit`, which can be split, as one loop for each of `extents`,
/// over tensors whose dimensions are split alike. Stands in front of the op.
mlir::Operation *splitLoops(mlir::linalg::LinalgOp op, llvm::function_ref<bool(int64_t)> isSplit,
                            llvm::ArrayRef<int64_t> extents, mlir::ValueRange inputs,
                            mlir::ValueRange inits);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H
