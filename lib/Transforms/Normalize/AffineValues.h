//===- AffineValues.h - Integers as functions of loops ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINEVALUES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINEVALUES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::dist {

/// Integers of a body as affine functions of the loops of its op. If tensors are computed from
/// iotas and constants, their elements are functions of their indices: ranges decide comparisons
/// and clamps, all other ops are arithmetic on functions.
class AffineValues {
public:
  struct Interval {
    int64_t low, high; ///< both inclusive
  };

  explicit AffineValues(mlir::linalg::GenericOp op) : AffineValues(op, kMostSteps) {}

  /// Null if the value is not known to be affine. A condition that is always true is 1, one that is
  /// always false 0.
  mlir::AffineExpr of(mlir::Value value);
  /// The same for an index that is compared with numbers from 0 to `extent`: if it selects between
  /// a function and a constant outside of this range, the function.
  mlir::AffineExpr ofIndex(mlir::Value value, int64_t extent);
  /// Empty if the range is unknown or too large.
  std::optional<Interval> rangeOf(mlir::AffineExpr expr) const;

private:
  /// Limit on the ops that compute a value.
  static constexpr int kMostSteps = 24;

  AffineValues(mlir::linalg::GenericOp op, int steps)
      : op(op), context(op.getContext()), steps(steps), extents(op.getStaticLoopRanges()) {}

  /// The elements of a tensor as a function of their indices; null if there is no such function.
  static mlir::AffineExpr elementsOf(mlir::Value tensor, int steps);
  static mlir::AffineExpr elementsOfMoved(mlir::Value tensor, int steps);
  mlir::AffineExpr compute(mlir::Value value);
  mlir::AffineExpr compare(mlir::arith::CmpIOp compare);
  /// The function if the type can represent all of its values; else null.
  mlir::AffineExpr within(mlir::AffineExpr expr, mlir::Type type) const;
  mlir::AffineExpr constant(int64_t value) const {
    return mlir::getAffineConstantExpr(value, context);
  }

  mlir::linalg::GenericOp op;
  mlir::MLIRContext *context;
  int steps;
  llvm::SmallVector<int64_t> extents;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> known; ///< looked up only
};

/// Emits a function of the loops, by sums, products and quotients, in the body of an op.
mlir::Value writeAffine(mlir::OpBuilder &b, mlir::Location loc, mlir::AffineExpr expr);

/// The part of a tensor that an op of these loops reads by a map: where a result of the map is a
/// loop of smaller extent than the dimension, its first elements. linalg requires equal extents.
mlir::Value readPart(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                     mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINEVALUES_H
