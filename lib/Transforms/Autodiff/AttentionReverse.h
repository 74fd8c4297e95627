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

/// Recognises attention whose scores take at least so many bytes, and writes as other ops what has
/// no derivative: an attention whose bias depends on `inputs` or whose log-sum-exp is
/// differentiated, and a derivative that is differentiated again. Results `of` are differentiated.
void prepareAttention(mlir::func::FuncOp function, mlir::ValueRange inputs,
                      llvm::ArrayRef<unsigned> of, int64_t leastScoreBytes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_AUTODIFF_ATTENTIONREVERSE_H
