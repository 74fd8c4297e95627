//===- MatchAttentionBackward.h - Where attention is derived ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H

#include "MatchAttention.h"

namespace tessera::dist {

/// An attention and its derivative in the spelling of a program that arrived differentiated.
struct AttentionBackwardMatch {
  AttentionMatch forward;
  Access gradient; ///< of the output
  /// What computes the derivative by query, key or value; null where the program has none.
  struct Target {
    mlir::Operation *op = nullptr;
    Indices indices; ///< of its result
  };
  Target targets[3];
  llvm::SetVector<mlir::Operation *> replaced;
};

/// The attention whose product with values is `product`, where all else that reads its scores, or
/// what they become, is its derivative. `leastScoreBytes`: as of `matchAttention`.
std::optional<AttentionBackwardMatch> matchAttentionBackward(mlir::linalg::LinalgOp product,
                                                             int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTIONBACKWARD_H
