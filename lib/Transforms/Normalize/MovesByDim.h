//===- MovesByDim.h - Moves along several dimensions ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stencils read slices along several dimensions of a grid that was continued along each
// of them: by wrapping around, reflection, or its edges. Moves along different dimensions
// commute, so such a slice is one move of the grid for each dimension.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_MOVESBYDIM_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_MOVESBYDIM_H

#include "Pieces.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// A tensor as moves of another one, one for each dimension along which elements move.
struct MovesByDim {
  mlir::Value source;
  llvm::SmallVector<Pieces> moves; ///< by dimension, ascending; of segments of `source`
};

/// Reads a slice, and the moves that made what it is a slice of. No source if there are none, or
/// all are along one dimension.
MovesByDim readMovesByDim(mlir::tensor::ExtractSliceOp slice);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_MOVESBYDIM_H
