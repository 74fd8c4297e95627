//===- PaddedView.h - Views through zero padding ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel padded to whole phases and a dilated operand have zeros at known
// positions, which a contraction need not multiply. A view maps an element of an
// operand to its position in the tensor before padding, with bounds outside of which
// it is zero.
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
  llvm::SmallVector<int64_t> terms; ///< one coefficient per loop
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

/// An element of an operand equals that of `value` at `places` if all bounds hold, else zero.
struct PaddedView {
  mlir::Value value;
  llvm::SmallVector<Place> places; ///< by dimension of `value`
  llvm::SmallVector<Bound> bounds;
};

/// The views of an operand indexed by `map`, over `map`'s loops: the first is of the operand
/// itself, each next one looks through one more op.
llvm::SmallVector<PaddedView> paddedViews(mlir::Value operand, mlir::AffineMap map);

/// The positions of a result's elements after reshapes and slices; the bounds select the remaining
/// ones. `value` is the last of these values, or the result itself.
PaddedView cutView(mlir::Value result, mlir::AffineMap map);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_PADDEDVIEW_H
