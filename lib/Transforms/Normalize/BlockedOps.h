//===- BlockedOps.h - Ops of several blocks of iterations -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_BLOCKEDOPS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_BLOCKEDOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::dist {

/// Writes ops of a loop's body for several blocks of iterations at once. A value that differs
/// between them has a leading dimension, the blocks; others are the same for all.
///
///   %y = linalg.generic (d0) ins(%x : tensor<4xf32>)
///   %y = linalg.generic (d0, d1) ins(%x : tensor<8x4xf32>)        of 8 blocks
class BlockedOps {
public:
  BlockedOps(mlir::OpBuilder &b, int64_t blocks) : b(b), blocks(blocks) {}

  /// Whether an op of which operands differ between blocks can be written.
  static bool supports(mlir::Operation *op);

  /// `to` takes the place of `value`, with the leading dimension if it differs between blocks.
  void replace(mlir::Value value, mlir::Value to, bool isBlocked);
  bool isBlocked(mlir::Value value) const { return blocked.contains(value); }
  /// What takes the place of a value.
  mlir::Value of(mlir::Value value) const { return map.lookupOrDefault(value); }
  /// The same with the leading dimension; copies of what is the same for all blocks.
  mlir::Value forAll(mlir::Value value);
  /// Writes an op of the body.
  void write(mlir::Operation *op);

  /// The type of a tensor with the leading dimension.
  mlir::RankedTensorType typeForAll(mlir::Type type) const;
  /// `map` behind the loop over the blocks, which an operand with the leading dimension reads.
  static mlir::AffineMap mapForAll(mlir::AffineMap map, bool isBlocked);

private:
  mlir::Value initForAll(mlir::linalg::LinalgOp op, mlir::OpOperand &init);
  mlir::Operation *writeLinalg(mlir::linalg::LinalgOp op);
  mlir::Operation *writeBlocked(mlir::Operation *op);

  mlir::OpBuilder &b;
  int64_t blocks;
  mlir::IRMapping map;
  llvm::DenseSet<mlir::Value> blocked; ///< looked up only
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_BLOCKEDOPS_H
