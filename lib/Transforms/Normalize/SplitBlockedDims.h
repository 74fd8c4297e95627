//===- SplitBlockedDims.h - Products that make equal blocks -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITBLOCKEDDIMS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITBLOCKEDDIMS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::dist {

/// Where a product makes several things of one size along one dimension, as q, k and v of one
/// weight, lets it make them along two: which one, and the elements. Each may then be cut.
///
///   contract (t, c) x (c, 192) -> (t, 192)        contract (t, c) x (c, 3, 64) -> (t, 3, 64)
///   extract_slice [0, 64 i] [t, 64]         =>    extract_slice [0, i, 0] [t, 1, 64]
///
/// Concatenations of equal blocks in front of a product, which derivatives of slices are, become
/// two dimensions, too. Weights keep their dimension: what an argument is cut into parts for, is
/// exchanged (BlockReshapes.h). That is done where it is fewer bytes than the slices would be.
void splitBlockedDims(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITBLOCKEDDIMS_H
