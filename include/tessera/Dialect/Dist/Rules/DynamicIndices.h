//===- DynamicIndices.h - Indices known when a program runs -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index outside of its tensor is clamped to the nearest one inside, as StableHLO's dynamic_slice
// and gather do (docs/numerics.md). It is a dimension of the global tensor that counts: rules never
// cut one that a dynamic index runs over.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_DYNAMICINDICES_H
#define TESSERA_DIALECT_DIST_RULES_DYNAMICINDICES_H

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace tessera::dist {

/// The indices that a slice may begin at in a dimension, both included.
struct OffsetBounds {
  int64_t least, greatest;
};

/// Of a slice of `size` elements, `stride` apart, in a dimension of `extent`, which holds them.
OffsetBounds offsetBounds(int64_t extent, int64_t size, int64_t stride);

/// The values that an integer or index scalar can have, read off the ops that compute it, the
/// constant bounds of loops, and the extents behind `linalg.index`.
mlir::ConstantIntRanges rangeOf(mlir::Value value);

/// Clamps `index` (of type index) to the bounds. Returns the value itself if `rangeOf` proves that
/// it is within the bounds.
mlir::Value clampIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index,
                       OffsetBounds bounds);
/// The same for an element of a dimension.
inline mlir::Value clampIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index,
                              int64_t extent) {
  return clampIndex(b, loc, index, offsetBounds(extent, 1, 1));
}

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_DYNAMICINDICES_H
