//===- PartIndices.h - Indices of parts that take turns ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTINDICES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTINDICES_H

#include "PartOrder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Whether the body of an op compares integers by their order.
bool comparesOrder(mlir::Operation *op);

/// Whether the positions along a loop may take another order, if the body computes the natural
/// indices: masks of bands, look-ups and groups of rows must stay recognizable.
bool canReorderLoop(mlir::linalg::GenericOp op, int64_t loop);

/// Rewrites the indices of loops whose positions are in turn now. A comparison of an index for
/// equality, which may select an iteration, compares the turn.
void reorderLoops(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> loops,
                  const PartOrder &order);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTINDICES_H
