//===- PartBorder.h - Where parts are joined and taken ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTBORDER_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTBORDER_H

#include "PartOrder.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

namespace tessera::dist {

/// A reshape at a dimension: the long dimensions that belong to it, major first.
struct ReshapedDim {
  mlir::Value large;
  int64_t small;
  llvm::SmallVector<int64_t> dims;

  int64_t extent(size_t at) const {
    return mlir::cast<mlir::RankedTensorType>(large.getType()).getDimSize(dims[at]);
  }
};

/// Of the dimension `dim` of the operand or result `value` of a reshape; empty for other ops.
std::optional<ReshapedDim> reshapedDimOf(mlir::Operation *op, mlir::Value value, int64_t dim);

/// The ops between parts in the natural order and tensors in which they take turns.
struct PartBorder {
  const PartOrder &order;

  /// Whether a concatenation or pad joins whole parts along a dimension, or a slice takes one.
  bool isJoin(mlir::Operation *op, int64_t dim) const;
  bool isExit(mlir::Operation *op, int64_t dim) const;
  /// Whether a rearrangement only moves whole parts along a dimension, of operands that are parts
  /// or have all of them.
  bool movesParts(RearrangeOp op, int64_t dim) const;
  /// The part that it takes of an operand that has all.
  std::optional<size_t> sourcePart(RearrangeOp op, unsigned index) const;

  /// In front of an op that joins parts, also by a reshape of a dimension of parts: its result with
  /// the parts in turn.
  mlir::Value join(mlir::Operation *op, int64_t dim) const;
  /// In front of an op that takes a part of an operand in turn, or makes parts a dimension: its
  /// result.
  mlir::Value exit(mlir::Operation *op, int64_t dim) const;

private:
  std::optional<size_t> partAt(int64_t offset, int64_t size, int64_t extent) const;
  std::optional<size_t> padded(mlir::tensor::PadOp op, int64_t dim) const;
  std::optional<size_t> sliced(mlir::tensor::ExtractSliceOp op, int64_t dim) const;
  mlir::Value move(mlir::OpBuilder &b, RearrangeOp op, int64_t dim) const;
  llvm::SmallVector<mlir::ReassociationIndices>
  withRows(llvm::SmallVector<mlir::ReassociationIndices> groups, const ReshapedDim &reshaped) const;
  mlir::Value splitRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                        const ReshapedDim &reshaped) const;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTBORDER_H
