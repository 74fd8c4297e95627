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

/// Where one element of a tensor is read from, or a cotangent goes to: per dimension a function of
/// the loops, or an index that the body computes.
struct Place {
  mlir::AffineExpr expr; ///< null where `index` says it
  mlir::Value index;
};

/// A value outside that an op's body depends on, and what flows back to it at each iteration.
struct BodyTarget {
  mlir::Value value;
  mlir::Value scalar; ///< in the nest's body
  llvm::SmallVector<Place> places;
  mlir::Location loc; ///< of what reads it
};

/// The forward body of a linalg op, copied into a nest of its loops, and its reverse behind it.
class BodyReverse {
public:
  /// Copies the forward body. With `reuseResults` what the body yields is read from the op's
  /// results rather than computed again: every iteration must write an element of its own.
  BodyReverse(Reverse &reverse, mlir::linalg::LinalgOp op, bool reuseResults);

  /// The copy of a forward value.
  mlir::Value copyOf(mlir::Value value) const { return copies.lookupOrDefault(value); }
  /// Adds to what flows back to a forward value of the body.
  void seed(mlir::Value value, mlir::Value cotangent);
  /// Goes back through the body.
  mlir::LogicalResult run();
  /// Whether what flows back to any target depends on the value of an accumulator.
  bool readsAccumulators();
  /// What flows back to a forward value of the body, or null.
  mlir::Value cotangentOf(mlir::Value value) const { return cotangents.lookup(value); }

  /// Writes the cotangents of all active operands and of what the body reads from outside; those of
  /// accumulators only `withInits`.
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

/// The tensor that a target's scalars add up to, in gather form: every element of it collects the
/// iterations that lead to it. Windows are undone by padding and flipping, computed indices are
/// compared with the element's own. Fails with a located error at places without a rule.
mlir::FailureOr<mlir::Value> emitGathered(LoopNest &nest, const BodyTarget &target);

/// What unwindWindows makes of a target's dimensions.
struct Unwound {
  struct Dim {
    llvm::SmallVector<mlir::AffineExpr, 2> loops; ///< none where the place was no window
    llvm::SmallVector<int64_t, 2> extents;
  };
  llvm::SmallVector<Dim> dims;
  /// Makes the target's cotangent of the tensor that has the dimensions above.
  std::function<mlir::Value(mlir::Value)> finish;
};
/// Replaces loops so that every place of the form `stride * o + dilation * k + c` becomes one loop
/// or two, which together count the target's elements.
mlir::FailureOr<Unwound> unwindWindows(LoopNest &nest, mlir::Value &scalar,
                                       const BodyTarget &target);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_BODYREVERSE_H
