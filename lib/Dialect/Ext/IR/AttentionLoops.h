//===- AttentionLoops.h - Attention as products and softmax -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONLOOPS_H
#define TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONLOOPS_H

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

namespace tessera::ext {

/// The global index of an iteration of a loop.
using GlobalIndex = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, unsigned loop,
                                                   mlir::Value local)>;

/// The results of an attention for its rows.
enum class RowResults {
  output,       ///< the output
  logsumexp,    ///< the output, then the log-sum-exp
  accumulators, ///< sum_n exp(score - largest) * value, then the largest score, then sum_n exp(…)
};

/// Numbers of iterations of some loops in the global view; their indices may also be negative.
using LoopLimits = llvm::ArrayRef<std::pair<unsigned, int64_t>>;

/// Writes an attention as products and a softmax, on tensors that may be parts of those of the op.
/// If the scores are large, blocks of rows are computed sequentially, so that memory is linear in
/// the sequence. Tensors with one element per row are over the rows of `partsOf`. Scores beyond the
/// limits are skipped; operands must be zero there.
llvm::SmallVector<mlir::Value> writeAttention(mlir::OpBuilder &b, AttentionOp op,
                                              llvm::ArrayRef<mlir::Value> operands,
                                              RowResults results, LoopLimits limits,
                                              GlobalIndex globalIndex);
/// One turn of an attention whose keys arrive in blocks: accumulators, merged with those of the
/// previous turns (empty in the first one).
llvm::SmallVector<mlir::Value> writeTurn(mlir::OpBuilder &b, AttentionOp op,
                                         llvm::ArrayRef<mlir::Value> operands,
                                         llvm::ArrayRef<mlir::Value> before, LoopLimits limits,
                                         GlobalIndex globalIndex);
/// Writes the derivative.
llvm::SmallVector<mlir::Value> writeAttentionBackward(mlir::OpBuilder &b, AttentionBackwardOp op,
                                                      llvm::ArrayRef<mlir::Value> operands,
                                                      LoopLimits limits, GlobalIndex globalIndex);
/// One turn of the derivative, in f32 at least: the gradient by the query, added to that of the
/// previous turns (null in the first one), and the contributions of the turn to the gradients by
/// key and value.
llvm::SmallVector<mlir::Value> writeTurn(mlir::OpBuilder &b, AttentionBackwardOp op,
                                         llvm::ArrayRef<mlir::Value> operands, mlir::Value before,
                                         LoopLimits limits, GlobalIndex globalIndex);

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONLOOPS_H
