//===- LoopNest.h - linalg ops in the making --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_LOOPNEST_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_LOOPNEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallBitVector.h"

namespace tessera::dist {

/// Loops over tensors with a body of scalars, from which several linalg ops are made: each gives
/// one scalar of the body, summed over the loops that its target does not have, and holds only what
/// that scalar needs.
class LoopNest {
public:
  /// What is read: a tensor under a map of the loops, or a scalar under the map without results.
  struct Input {
    mlir::Value value;
    mlir::AffineMap map;
  };
  enum class Combine { sum, product, least };

  LoopNest(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> extents)
      : b(b), loc(loc), extents(extents), block(std::make_unique<mlir::Block>()) {}

  mlir::BlockArgument addInput(mlir::Value value, mlir::AffineMap map);
  /// The same where a tensor all of whose elements are one constant need not be read.
  mlir::Value addInputOrConstant(mlir::Value value, mlir::AffineMap map);
  /// Adds a loop and returns its number; the maps of all inputs get it as well.
  unsigned addLoop(int64_t extent);
  mlir::AffineMap identityMap() const;

  /// Where the body grows.
  mlir::OpBuilder bodyEnd() const {
    mlir::OpBuilder body(b.getContext()); // the block stands in no region, which has a context
    body.setInsertionPointToEnd(block.get());
    return body;
  }
  mlir::Value index(unsigned loop) const;

  /// The tensor (or scalar) of `type` whose element at `target` of an iteration is `scalar`,
  /// combined over all loops that are not in `target`: a projected permutation, but for constants
  /// at dimensions of extent 1. Sums of 16-bit floats are made in f32. No linalg op at all where an
  /// input is already it, or it is constant.
  mlir::Value emit(mlir::Value scalar, mlir::AffineMap target, mlir::Type type,
                   Combine combine = Combine::sum);

  /// A nest of its own with the part that `scalars` need; sets them to their copies there.
  LoopNest restrictedTo(llvm::MutableArrayRef<mlir::Value> scalars) const;
  /// The inputs that a scalar is made of.
  llvm::SmallBitVector inputsOf(mlir::Value scalar) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<Input> inputs; ///< in the order of the arguments of `block`
  std::unique_ptr<mlir::Block> block;
  llvm::SmallBitVector resultLoops; ///< loops of the forward op's results, where known

private:
  struct Slice;
  Slice sliceOf(llvm::ArrayRef<mlir::Value> scalars) const;
  mlir::Value emitDense(const Slice &slice, mlir::Value scalar, mlir::AffineMap target,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element, Combine combine);
};

/// A constant tensor, or scalar, of zeros.
mlir::Value zeros(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type);

/// The position of the loop that an expression is, or -1.
inline int64_t loopOf(mlir::AffineExpr expr) {
  auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr);
  return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
}

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_LOOPNEST_H
