//===- AttentionReverse.h - Reverse of attention ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_AUTODIFF_ATTENTIONREVERSE_H
#define TESSERA_LIB_TRANSFORMS_AUTODIFF_ATTENTIONREVERSE_H

#include "LoopNest.h"
#include "Reverse.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Transforms/Recognize.h"

namespace tessera::dist {

/// Recomputes the scores from the log-sum-exp, which the op returns after `prepareAttention`.
mlir::LogicalResult reverseAttention(Reverse &reverse, ext::AttentionOp op,
                                     llvm::ArrayRef<mlir::Value> cotangents);

/// Replaces an op by one that also returns its log-sum-exp.
ext::AttentionOp addLogsumexp(ext::AttentionOp op);

struct DerivedAttention {
  ext::AttentionBackwardOp op;
  mlir::Operation *without = nullptr; ///< the op of the region without a derivative; `op` is null
};
/// Emits the derivative of an attention with log-sum-exp at `b`, with results of `types`. The
/// gradient of its output is indexed by the loops of `gradientMap`.
DerivedAttention deriveAttention(mlir::OpBuilder &b, ext::AttentionOp op, mlir::Value gradient,
                                 mlir::AffineMap gradientMap, mlir::TypeRange types);

/// Recognizes attention with at least that many bytes of scores, and expands attentions without a
/// derivative into other ops: those whose bias depends on `inputs`, those whose log-sum-exp is
/// differentiated, and derivatives that are differentiated again. Results `of` are differentiated.
void prepareAttention(mlir::func::FuncOp function, mlir::ValueRange inputs,
                      llvm::ArrayRef<unsigned> of, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_ATTENTIONREVERSE_H
