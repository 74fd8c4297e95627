//===- BlockReshapes.h - Reshapes that move equal blocks --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reshape between a dimension and its k equal blocks may cut both over the same axes:
// the dimension into contiguous parts, and each block.
//
//   tensor.expand_shape %w [[0], [1, 2]] {dist.blocks} : tensor<64x192> into tensor<64x3x64>
//
// Over 4 devices, device 0 has columns 0 to 47 of %w, and columns 0 to 15 of each
// block of the result. The devices exchange missing elements.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_BLOCKRESHAPES_H
#define TESSERA_DIALECT_DIST_RULES_BLOCKRESHAPES_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// Marks a `tensor.expand_shape` or `tensor.collapse_shape` between a dimension and its blocks.
/// `dist-normalize` writes it.
inline constexpr llvm::StringLiteral kBlocks = "dist.blocks";

/// The dimensions that such a reshape relates.
struct BlockReshape {
  mlir::Operation *op;
  bool expands;   ///< from the dimension to blocks
  int64_t dim;    ///< of the tensor with fewer dimensions; the other has the blocks there,
  int64_t blocks; ///< this many, and in the dimension behind it their
  int64_t extent; ///< elements
};

/// The block reshape of an op that has the mark or would be correct with it; empty for others.
std::optional<BlockReshape> blockReshapeOf(mlir::Operation *op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_BLOCKRESHAPES_H
