//===- DimensionOps.h - Ops on one dimension --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `d` is the dimension. Pads and flips of several dimensions of one tensor become
// one op; identities become none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H

#include "mlir/IR/Builders.h"

namespace tessera::dist {

/// Pads with `low` zeros before and `high` after.
mlir::Value padDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                   int64_t low, int64_t high);

/// `size` elements from `offset`.
mlir::Value sliceDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                     int64_t offset, int64_t size);

/// Inserts zeros between elements, which are then `step` apart.
mlir::Value spreadDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                      int64_t step);

/// [outer * inner] -> [outer, inner]
mlir::Value splitDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                     int64_t inner);

/// Reverses the elements.
mlir::Value flipDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H
