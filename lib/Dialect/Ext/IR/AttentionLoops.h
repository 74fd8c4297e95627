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

/// The index that an iteration of a loop has in the global view.
using GlobalIndex = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, unsigned loop,
                                                   mlir::Value local)>;

/// What an attention leaves of its rows.
enum class RowResults {
  output,       ///< the output
  logsumexp,    ///< the output, then the log-sum-exp
  accumulators, ///< sum_n exp(score - largest) * value, then the largest score, then sum_n exp(…)
};

/// Iterations that some loops have in the global view; their indices may also be negative.
using LoopLimits = llvm::ArrayRef<std::pair<unsigned, int64_t>>;

/// Writes an attention on tensors that may be parts of those of the op as products and a softmax.
/// Where the scores are large, blocks of rows are computed one after the other, so that memory is
/// linear in the sequence. What has an element a row is over the rows of `partsOf`. Scores beyond
/// the limits are left out; operands must be zero there.
llvm::SmallVector<mlir::Value> writeAttention(mlir::OpBuilder &b, AttentionOp op,
                                              llvm::ArrayRef<mlir::Value> operands,
                                              RowResults results, LoopLimits limits,
                                              GlobalIndex globalIndex);
/// One turn of an attention whose keys come in blocks: accumulators, merged with those of the turns
/// before, which are none in the first one.
llvm::SmallVector<mlir::Value> writeTurn(mlir::OpBuilder &b, AttentionOp op,
                                         llvm::ArrayRef<mlir::Value> operands,
                                         llvm::ArrayRef<mlir::Value> before, LoopLimits limits,
                                         GlobalIndex globalIndex);
/// The derivative.
llvm::SmallVector<mlir::Value> writeAttentionBackward(mlir::OpBuilder &b, AttentionBackwardOp op,
                                                      llvm::ArrayRef<mlir::Value> operands,
                                                      LoopLimits limits, GlobalIndex globalIndex);
/// One turn of it, in f32 at least: the gradient by the query, added to that of the turns before
/// (null in the first one), and what the turn contributes to those by key and value.
llvm::SmallVector<mlir::Value> writeTurn(mlir::OpBuilder &b, AttentionBackwardOp op,
                                         llvm::ArrayRef<mlir::Value> operands, mlir::Value before,
                                         LoopLimits limits, GlobalIndex globalIndex);

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONLOOPS_H
