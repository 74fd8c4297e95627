//===- PartOrder.h - Rows of several parts in turn --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension that consists of parts, one behind the other, in another order: all parts in
// turn, a share of each at a time.
//
//   parts a, b of 4 rows        a0 a1 a2 a3 b0 b1 b2 b3   =>   a0 b0 a1 b1 a2 b2 a3 b3
//   of 2 and 4 rows             a0 a1 b0 b1 b2 b3         =>   a0 b0 b1 a1 b2 b3
//
// Over 2 devices, either has its rows of each part, in both orders of the parts' dimension.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTORDER_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTORDER_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// The groups of a reshape between a tensor of `rank` dimensions and one with dimension `dim` in
/// two.
llvm::SmallVector<mlir::ReassociationIndices> groupsOfSplit(int64_t rank, int64_t dim);

/// Parts of `counts[p] * rows` elements each. Methods with a dimension accept one of
/// size() * tail elements, of which runs of `tail` stay together.
struct PartOrder {
  llvm::SmallVector<int64_t> counts;
  int64_t rows = 1;

  int64_t total() const; ///< elements of all parts in a row
  int64_t size() const { return rows * total(); }
  int64_t offsetOf(size_t part) const; ///< of a part within a row
  bool isUniform() const;              ///< whether each part has one element in a row
  bool operator==(const PartOrder &) const = default;

  /// The part at elements [offset, offset + size) of the natural order.
  std::optional<size_t> partAt(int64_t offset, int64_t size) const;

  /// A tensor in the other order along dimension `dim`, in each of `lead` equal runs of it.
  mlir::Value convert(mlir::OpBuilder &b, mlir::Value value, int64_t dim, int64_t lead,
                      bool toTurns) const;
  /// Parts, joined in turn along `dim`. The type is that of their concatenation.
  mlir::Value join(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange parts,
                   int64_t dim) const;
  /// A part as a tensor in turn that is `padding` elsewhere.
  mlir::Value pad(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, size_t part,
                  int64_t dim, int64_t tail, mlir::Value padding) const;
  /// The part of a tensor in turn.
  mlir::Value partOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, size_t part,
                     int64_t dim) const;
  /// The natural index of an element, from that in turn.
  mlir::Value naturalIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index,
                           int64_t tail) const;
  /// The index in turn of an element, from the natural one; that of no element stays one of none.
  mlir::Value turnOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index, int64_t tail) const;
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PARTORDER_H
