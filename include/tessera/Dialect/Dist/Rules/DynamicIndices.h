//===- DynamicIndices.h - Indices known when a program runs -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index out of bounds is clamped to the nearest valid one, as in StableHLO's
// dynamic_slice and gather (docs/numerics.md). The bounds are those of the global
// tensor: rules never cut a dimension with a dynamic index.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_DYNAMICINDICES_H
#define TESSERA_DIALECT_DIST_RULES_DYNAMICINDICES_H

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace tessera::dist {

/// The valid offsets of a slice in a dimension, both inclusive.
struct OffsetBounds {
  int64_t least, greatest;
};

/// For a slice of `size` elements with `stride` in a dimension of `extent`.
OffsetBounds offsetBounds(int64_t extent, int64_t size, int64_t stride);

/// The range of an integer or index scalar, derived from the ops that compute it, the constant
/// bounds of loops, and the extents of `linalg.index`.
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
