//===- BodyReverse.h - The reverse of a linalg body -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_BODYREVERSE_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_BODYREVERSE_H

#include "LoopNest.h"
#include "Reverse.h"

#include "mlir/IR/IRMapping.h"

namespace tessera::dist {

/// The position of an element of a tensor, or of its cotangent: per dimension a function of the
/// loops, or an index that the body computes.
struct Place {
  mlir::AffineExpr expr; ///< null if `index` is set
  mlir::Value index;
  int64_t shift = 0;     ///< elements of padding before the tensor; `expr` counts them
  bool isPadded = false; ///< whether the reader sees padding before or behind the tensor
};

/// A value outside of an op's body on which the body depends, and its cotangent in each iteration.
struct BodyTarget {
  mlir::Value value;
  mlir::Value scalar; ///< in the nest's body
  llvm::SmallVector<Place> places;
  mlir::Location loc; ///< of its reader
};

/// The forward body of a linalg op, copied into a nest of its loops, followed by its reverse.
class BodyReverse {
public:
  /// Copies the forward body. With `reuseResults` the yielded values are read from the op's results
  /// instead of recomputed: every iteration must write a distinct element.
  BodyReverse(Reverse &reverse, mlir::linalg::LinalgOp op, bool reuseResults);

  /// The copy of a forward value.
  mlir::Value copyOf(mlir::Value value) const { return copies.lookupOrDefault(value); }
  /// Adds to the cotangent of a forward value of the body.
  void seed(mlir::Value value, mlir::Value cotangent);
  /// Appends the reverse of the body.
  mlir::LogicalResult run();
  /// Whether the cotangent of any target depends on the value of an accumulator.
  bool readsAccumulators();
  /// The cotangent of a forward value of the body, or null.
  mlir::Value cotangentOf(mlir::Value value) const { return cotangents.lookup(value); }

  /// Emits the cotangents of all active operands and captured values; those of accumulators only
  /// `withInits`.
  mlir::LogicalResult emitTargets(bool withInits);

  LoopNest nest;

private:
  llvm::SmallVector<BodyTarget> targets(bool withInits);

  Reverse &reverse;
  mlir::linalg::LinalgOp op;
  mlir::IRMapping copies;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents; // looked up, never iterated
  llvm::SmallVector<BodyTarget> extracts;
};

/// The cotangent of a target in gather form: every element sums over the iterations that access it.
/// Windows are inverted by padding and flipping, computed indices are compared with the element's
/// own. Fails with a located error at places without a rule.
mlir::FailureOr<mlir::Value> emitGathered(LoopNest &nest, const BodyTarget &target);

/// The result of unwindWindows for a target's dimensions.
struct Unwound {
  struct Dim {
    llvm::SmallVector<mlir::AffineExpr, 2> loops; ///< none if the place is not a window
    llvm::SmallVector<int64_t, 2> extents;
  };
  llvm::SmallVector<Dim> dims;
  /// Converts the tensor with the dimensions above to the target's cotangent.
  std::function<mlir::Value(mlir::Value)> finish;
};
/// Whether windows of a padded tensor can be unwound as those of its source.
bool skipsPadding(const LoopNest &nest, const BodyTarget &target);
/// Replaces loops so that every place of the form `stride * o + dilation * k + c` becomes one or
/// two loops that enumerate the target's elements.
mlir::FailureOr<Unwound> unwindWindows(LoopNest &nest, mlir::Value &scalar,
                                       const BodyTarget &target);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_BODYREVERSE_H
