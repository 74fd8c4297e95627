//===- Contraction.h - Sums of products along strided indices ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions, their derivatives and other sums of products with operands at affine
// indices are one step on CPUs instead of a kernel. The code generator builds these
// steps; Liveness excludes their ops from kernels and their unread results from memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_CONTRACTION_H
#define TESSERA_PLANNING_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// A tensor whose element at indices i is that of the dense `base` at start + sum i * strides.
struct StridedView {
  mlir::Value base;
  int64_t start = 0;
  llvm::SmallVector<int64_t> strides;
};

/// A tensor in its row-major buffer.
StridedView denseView(mlir::Value value);
/// A view of `view` indexed by the loops of `map`; empty if the map is not linear.
std::optional<StridedView> through(const StridedView &view, mlir::AffineMap map);

/// An op as a sum of products over loops: the trip counts, and by loop the strides of every
/// operand.
struct ContractionForm {
  llvm::SmallVector<int64_t> extents;   ///< by loop
  llvm::SmallVector<StridedView> views; ///< of the operands, by loop; of inputs through copies
  /// The only slice of the result that is read, if any: elements around it need not be computed.
  /// Example: the derivative with respect to a padded input.
  mlir::tensor::ExtractSliceOp slice;
};

/// Whether an op sums products of two tensors of f32, f16 or bf16 in f32. With `narrow` the result
/// may be of 16 bits, too: a sum that is rounded once.
bool isSumOfProducts(mlir::linalg::LinalgOp op, bool narrow = false);

/// The form of an op that is worth a step; empty for other ops and for matrix products (Gemm.h).
std::optional<ContractionForm> matchContraction(mlir::linalg::LinalgOp op, bool narrow = false);

/// Whether an op reorders elements only for contractions, which read its operand instead.
bool isTakenByContractions(mlir::linalg::LinalgOp op);

} // namespace tessera::dist

#endif // TESSERA_PLANNING_CONTRACTION_H
