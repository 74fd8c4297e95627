//===- LoopNest.h - Loop nests from which linalg ops are built --*- C++ -*-===//
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

/// Loops over tensors with a scalar body, from which several linalg ops are built: each computes
/// one scalar of the body, summed over the loops that its target lacks, and contains only the
/// backward slice of that scalar.
class LoopNest {
public:
  /// An input: a tensor under a map of the loops, or a scalar under the map without results.
  struct Input {
    mlir::Value value;
    mlir::AffineMap map;
  };
  enum class Combine { sum, product, least };

  LoopNest(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> extents)
      : b(b), loc(loc), extents(extents), block(std::make_unique<mlir::Block>()) {}

  mlir::BlockArgument addInput(mlir::Value value, mlir::AffineMap map);
  /// The same, but a constant splat is not read.
  mlir::Value addInputOrConstant(mlir::Value value, mlir::AffineMap map);
  /// Adds a loop and returns its number; the maps of all inputs get it as well.
  unsigned addLoop(int64_t extent);
  mlir::AffineMap identityMap() const;

  /// A builder at the end of the body.
  mlir::OpBuilder bodyEnd() const {
    mlir::OpBuilder body(b.getContext()); // the block is in no region, which would have a context
    body.setInsertionPointToEnd(block.get());
    return body;
  }
  mlir::Value index(unsigned loop) const;

  /// The tensor (or scalar) of `type` whose element at `target` of an iteration is `scalar`,
  /// combined over all loops that are not in `target`: a projected permutation, but for constants
  /// at dimensions of extent 1. Sums of 16-bit floats are computed in f32. Creates no linalg op if
  /// the result is an input or a constant.
  mlir::Value emit(mlir::Value scalar, mlir::AffineMap target, mlir::Type type,
                   Combine combine = Combine::sum);

  /// A separate nest with the backward slice of `scalars`; sets them to their copies.
  LoopNest restrictedTo(llvm::MutableArrayRef<mlir::Value> scalars) const;
  /// The inputs on which a scalar depends.
  llvm::SmallBitVector inputsOf(mlir::Value scalar) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<Input> inputs; ///< in the order of the arguments of `block`
  std::unique_ptr<mlir::Block> block;
  llvm::SmallBitVector resultLoops; ///< loops of the forward op's results, if known

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
