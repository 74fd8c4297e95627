//===- DimensionOps.h - One dimension seen otherwise ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `d` is the dimension. Pads and flips of several dimensions of one tensor are one
// op; where there is nothing to do there is none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H

#include "mlir/IR/Builders.h"

namespace tessera::dist {

/// Zeros before and behind, `low` and `high` of them.
mlir::Value padDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                   int64_t low, int64_t high);

/// `size` elements from `offset` on.
mlir::Value sliceDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                     int64_t offset, int64_t size);

/// Zeros between neighbours, which are `step` apart then.
mlir::Value spreadDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                      int64_t step);

/// [outer * inner] -> [outer, inner]
mlir::Value splitDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d,
                     int64_t inner);

/// Last element first.
mlir::Value flipDim(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, int64_t d);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_DIMENSIONOPS_H
