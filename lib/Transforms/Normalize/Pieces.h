//===- Pieces.h - Tensors as segments of others -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The effect of one op that moves elements along one dimension, or of several in
// sequence. `formRearrangements` emits it as one op.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PIECES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PIECES_H

#include "tessera/Sharding/ShardingRule.h"

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/Operation.h"

namespace tessera::dist {

/// A tensor as segments of others along one dimension.
struct Pieces {
  int64_t dim = -1;
  llvm::SmallVector<std::pair<mlir::Value, sharding::Segment>> segments;
  mlir::TypedAttr fill; ///< of elements outside of all segments; null if there are none
};

/// Reads an op; no segments if it moves nothing, or moves along several dimensions.
Pieces readPieces(mlir::Operation *op);
/// Whether segments write each of the `extent` elements of a result.
bool coversResult(const Pieces &pieces, int64_t extent);
/// The value that all segments read; null if there are several.
mlir::Value onlySource(const Pieces &pieces);
/// The elements that `inner` writes among those that `outer` reads, as a segment from what `inner`
/// reads to what `outer` writes. Empty if there are none.
sharding::Segment through(const sharding::Segment &outer, const sharding::Segment &inner);
/// Replaces segments of values that consist of segments themselves. Returns whether any was
/// replaced.
bool compose(Pieces &pieces, int64_t extent);
/// Joins segments that continue each other.
void join(Pieces &pieces);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PIECES_H
