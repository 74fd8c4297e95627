//===- SplitLoops.h - Split loops of linalg ops -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Whether a loop of an op can be replaced by several.
bool canSplitLoop(mlir::linalg::LinalgOp op, int64_t loop);

/// Whether an op has annotations of the user.
bool isAnnotated(mlir::Operation *op);

/// Rewrites the op, in front of it, with each loop for which `isSplit` as one loop per entry of
/// `extents`, over tensors with equally split dimensions. These loops must be splittable.
mlir::Operation *splitLoops(mlir::linalg::LinalgOp op, llvm::function_ref<bool(int64_t)> isSplit,
                            llvm::ArrayRef<int64_t> extents, mlir::ValueRange inputs,
                            mlir::ValueRange inits);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITLOOPS_H
