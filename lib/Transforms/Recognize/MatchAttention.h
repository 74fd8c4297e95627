//===- MatchAttention.h - Where a program attends ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H

#include "ElementExpressions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>

namespace tessera::dist {

/// A tensor and the indices of the element that an iteration reads.
struct Access {
  mlir::Value tensor;
  Indices indices;
};

/// An attention in the spelling of a program.
struct AttentionMatch {
  std::unique_ptr<Loops> loops;
  Access query, key, value;
  Indices output; ///< of the root's result
  std::unique_ptr<ElementExpressions> expressions;
  int score = ElementExpressions::kNone;
  mlir::Operation *root = nullptr; ///< what the attention replaces
  llvm::SetVector<mlir::Operation *> replaced;
};

/// Whether an op is a sum of products of two tensors, from zero.
bool isProduct(mlir::linalg::LinalgOp op);

/// The attention whose product with values is `product`.
std::optional<AttentionMatch> matchAttention(mlir::linalg::LinalgOp product);

/// The bytes of all scores.
int64_t scoreBytes(const AttentionMatch &match);
/// Whether reshapes give every tensor a dimension a loop.
bool canBuild(const AttentionMatch &match);
/// Writes the op, and reshapes of its operands and result.
mlir::Value writeAttention(mlir::OpBuilder &b, AttentionMatch &match);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H
