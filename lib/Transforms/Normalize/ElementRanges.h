//===- ElementRanges.h - Ranges of the elements of tensors ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_ELEMENTRANGES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_ELEMENTRANGES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Ranges of the integers in tensors, whatever computes them: sorted indices are still those that
/// were sorted. Values are signed; a boolean is 0 or 1.
class ElementRanges {
public:
  struct Interval {
    int64_t low, high; ///< both inclusive
    bool operator==(const Interval &) const = default;
  };

  /// Nothing if the range is unknown.
  std::optional<Interval> of(mlir::Value tensor);
  /// Of a scalar of the body of an elementwise op.
  std::optional<Interval> rangeOf(mlir::linalg::GenericOp op, mlir::Value scalar) {
    return inBody(op, scalar);
  }
  /// The tensor with the same elements that the value is computed from by conversions and
  /// corrections without effect (of a negative index, of one out of range).
  mlir::Value sourceOf(mlir::Value tensor);
  /// Whether element i of a vector is i.
  bool isIota(mlir::Value tensor);
  /// c, if element i of a vector is i / c; else 1.
  int64_t repetitionsOf(mlir::Value tensor);
  /// The number that all elements are; null if unknown.
  mlir::TypedAttr constantOf(mlir::Value tensor);
  /// A scalar of the body of an elementwise op, without conversions and corrections that have no
  /// effect.
  mlir::Value strip(mlir::linalg::GenericOp op, mlir::Value scalar);

private:
  /// Limit on nested values.
  static constexpr int kMostSteps = 40;

  std::optional<Interval> compute(mlir::Value tensor);
  std::optional<Interval> ofGeneric(mlir::linalg::GenericOp op);
  std::optional<Interval> inBody(mlir::linalg::GenericOp op, mlir::Value scalar);

  llvm::DenseMap<mlir::Value, std::optional<Interval>> known; ///< looked up only
  int steps = 0;
};

/// Replaces tensors whose elements are all one number because ranges decide the choices that
/// compute them, such as a fill value of indices out of range.
void decideElements(mlir::Block &block, ElementRanges &ranges);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_ELEMENTRANGES_H
