//===- PaddedView.h - Tensors behind the zeros around them ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that is padded to whole phases and an operand that is dilated hold zeros
// at places that are known. A contraction need not multiply them: this says where an
// element of an operand lies in the tensor that was padded, and when it is a zero.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PADDEDVIEW_H
#define TESSERA_LIB_CODEGEN_PADDEDVIEW_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::codegen {

/// (constant + sum of terms[loop] * loop) / divisor.
struct Place {
  int64_t constant = 0;
  llvm::SmallVector<int64_t> terms; ///< a coefficient a loop
  int64_t divisor = 1;

  explicit Place(unsigned loops, int64_t constant = 0) : constant(constant), terms(loops, 0) {}
  /// Adds a multiple of another place.
  void add(const Place &other, int64_t factor = 1);
  /// Divides it by a positive number.
  void divide(int64_t by);
};

/// Holds where `place` is an integer in [0, extent).
struct Bound {
  Place place;
  int64_t extent = 0;

  /// Whether it holds wherever `inner` does.
  bool followsFrom(const Bound &inner) const;
};

/// An element of an operand is that of `value` at `places` where all bounds hold, else zero.
struct PaddedView {
  mlir::Value value;
  llvm::SmallVector<Place> places; ///< a dimension of `value`
  llvm::SmallVector<Bound> bounds;
};

/// The views of an operand that `map` reads over `map`'s loops: the first is of the operand itself,
/// each next one looks through one more op.
llvm::SmallVector<PaddedView> paddedViews(mlir::Value operand, mlir::AffineMap map);

/// Where the elements of a result go that is reshaped and then cut: the bounds say which are kept.
/// `value` is the last of these values; that of the result itself where nothing cuts it.
PaddedView cutView(mlir::Value result, mlir::AffineMap map);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PADDEDVIEW_H
