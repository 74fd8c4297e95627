//===- MatchAttentionBackward.h - Match attention derivatives ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H

#include "MatchAttention.h"

namespace tessera::dist {

/// An attention and its derivative as written by a program that was differentiated by its source.
struct AttentionBackwardMatch {
  AttentionMatch forward;
  Access gradient; ///< of the output
  /// The op that computes the derivative by query, key or value; null if the program has none.
  struct Target {
    mlir::Operation *op = nullptr;
    Indices indices; ///< of its result
  };
  Target targets[3];
  llvm::SetVector<mlir::Operation *> replaced;
};

/// Matches the attention whose product with values is `product`, if all other readers of the
/// scores, or of values computed from them, belong to its derivative. `leastScoreBytes`: as in
/// `matchAttention`.
std::optional<AttentionBackwardMatch> matchAttentionBackward(mlir::linalg::LinalgOp product,
                                                             int64_t leastScoreBytes);

/// Adds products of shares and values that derivatives imply, where they are missing and the shares
/// have at least `leastBytes`. They have no readers. Returns whether there are any.
bool addForwardProducts(mlir::Block &block, int64_t leastBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H
