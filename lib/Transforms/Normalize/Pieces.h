//===- Pieces.h - Tensors as segments of others -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op that moves elements along one dimension does, and what several do one
// after the other. `formRearrangements` writes it as one op.
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
  mlir::TypedAttr fill; ///< of what no segment writes; null where there is nothing
};

/// Reads an op; no segments where it moves nothing, or along several dimensions.
Pieces readPieces(mlir::Operation *op);
/// Whether segments write each of the `extent` elements of a result.
bool coversResult(const Pieces &pieces, int64_t extent);
/// Replaces segments of values that are made of segments themselves. Whether any was.
bool compose(Pieces &pieces, int64_t extent);
/// Joins segments that continue each other.
void join(Pieces &pieces);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PIECES_H
