//===- SplitBlockedDims.h - Products with equal blocks ----------*- C++ -*-===//
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

/// If a product computes several blocks of equal size along one dimension, such as q, k and v of
/// one weight, splits the dimension in two, block and element. Each may then be cut.
///
///   contract (t, c) x (c, 192) -> (t, 192)        contract (t, c) x (c, 3, 64) -> (t, 3, 64)
///   extract_slice [0, 64 i] [t, 64]         =>    extract_slice [0, i, 0] [t, 1, 64]
///
/// Concatenations of equal blocks before a product, the derivatives of slices, become two
/// dimensions, too. Weights keep their dimension, and are exchanged if they are cut
/// (BlockReshapes.h). The rewrite applies where an annotation cuts the weight, or by the loops of
/// ops the blocks, and where this sends fewer bytes than the slices.
void splitBlockedDims(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_SPLITBLOCKEDDIMS_H
