//===- AttentionReverse.h - The reverse of attention ------------*- C++ -*-===//
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

/// Computes the scores again from the log-sum-exp, which `prepareAttention` has the op return.
mlir::LogicalResult reverseAttention(Reverse &reverse, ext::AttentionOp op,
                                     llvm::ArrayRef<mlir::Value> cotangents);

/// Replaces an op by one that returns its log-sum-exp, too.
ext::AttentionOp addLogsumexp(ext::AttentionOp op);

struct DerivedAttention {
  ext::AttentionBackwardOp op;
  mlir::Operation *without = nullptr; ///< the op of the region that has no derivative; `op` is null
};
/// Writes the derivative of an attention with log-sum-exp at `b`, with results of `types`. The
/// gradient of its output runs over the loops of `gradientMap`.
DerivedAttention deriveAttention(mlir::OpBuilder &b, ext::AttentionOp op, mlir::Value gradient,
                                 mlir::AffineMap gradientMap, mlir::TypeRange types);

/// Recognises attention whose scores take at least so many bytes, and writes as other ops what has
/// no derivative: an attention whose bias depends on `inputs` or whose log-sum-exp is
/// differentiated, and a derivative that is differentiated again. Results `of` are differentiated.
void prepareAttention(mlir::func::FuncOp function, mlir::ValueRange inputs,
                      llvm::ArrayRef<unsigned> of, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_ATTENTIONREVERSE_H
