//===- ProductTerms.h - Elements as products of tensors ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PRODUCTTERMS_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PRODUCTTERMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace tessera::dist {

/// In place of a loop where a dimension is indexed by zero, as are those that a mean keeps.
constexpr int64_t kNoLoop = -1;

/// Elements of a tensor indexed by some loops of a sum, as a factor or divisor.
struct Factor {
  mlir::Value tensor;
  llvm::SmallVector<int64_t> loops; ///< by dimension of the tensor; `kNoLoop`: its first index
  bool divides = false;

  bool operator==(const Factor &) const = default;
  bool runsOver(int64_t loop) const { return llvm::is_contained(loops, loop); }
};

/// constant * product of factors, in no particular order.
struct Product {
  double constant = 1;
  llvm::SmallVector<Factor> factors;
};

/// The loops that index the results of a projected permutation; `loopsOf`: a loop for each
/// dimension.
llvm::SmallVector<int64_t> loopsIn(mlir::AffineMap map, llvm::ArrayRef<int64_t> loopsOf);

/// The addend of a sum over products for each iteration of its loops, through the elementwise
/// multiplications and divisions that compute its inputs. Nothing for other ops than a sum of f32
/// or f64 from zero.
std::optional<Product> termOf(mlir::linalg::GenericOp op);

/// The same as a sum of several products, through additions and negations before the sum.
llvm::SmallVector<Product> addendsOf(mlir::linalg::GenericOp op);

/// Elements of a tensor at loops, expanded in the same way.
std::optional<Product> elementsOf(mlir::Value tensor, llvm::ArrayRef<int64_t> loops);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PRODUCTTERMS_H
