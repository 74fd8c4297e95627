//===- MatchAttention.h - Match attention patterns --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H
#define TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H

#include "ElementExpressions.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>

namespace tessera::dist {

/// A tensor and the indices of the element that an iteration reads.
struct Access {
  mlir::Value tensor;
  Indices indices;
};

/// An attention as written by a program.
struct AttentionMatch {
  std::shared_ptr<Loops> loops; ///< also those of `expressions`
  unsigned keyLoop = 0;         ///< the loop over keys
  Access query, key, value;
  Indices output; ///< of the root's result
  std::unique_ptr<ElementExpressions> expressions;
  int score = ElementExpressions::kNone;
  int product = ElementExpressions::kNone; ///< of query and key, in the score
  /// Their softmax, or their exponential if the output is divided by the sum.
  int shares = ElementExpressions::kNone;
  bool isDividedBehind = false;
  /// The factors of the values in the output, linear in `shares`: these, or dropped ones.
  int weights = ElementExpressions::kNone;
  mlir::linalg::LinalgOp scores;   ///< the product of query and key
  mlir::Operation *root = nullptr; ///< the op that the attention replaces
  llvm::SetVector<mlir::Operation *> replaced;
};

/// Whether an op is a sum of products of two tensors, from zero.
bool isProduct(mlir::linalg::LinalgOp op);

/// Whether the initial value of a sum is zero.
bool isZero(mlir::Value init);

/// Matches the attention whose product with values is `product`. Unless `mayBeRead`, the scores and
/// the values computed from them have no other readers. Products too small to be scores of
/// `leastScoreBytes` are rejected early; a match may still have slightly fewer bytes
/// (`scoreBytes`).
std::optional<AttentionMatch> matchAttention(mlir::linalg::LinalgOp product, bool mayBeRead = false,
                                             int64_t leastScoreBytes = 0);

/// Moves an access through transposes, broadcasts and reshapes to their source. `wanted` is set to
/// a loop that would have to be split.
void lookThrough(const Loops &loops, Access &access, std::optional<Split> &wanted);
/// Whether the indices are sums of loops that a reshape can split, each loop once.
bool isReadable(const Loops &loops, mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

/// Whether a derivative should recompute the scores: they take at least that many bytes, or the
/// sequence is cut and only a window of keys is exchanged.
bool isWorthRecomputing(AttentionMatch &match, int64_t leastScoreBytes);
/// The score bytes below which no match in a function is worth recomputing.
int64_t leastBytesOfMatch(mlir::func::FuncOp function, int64_t leastScoreBytes);
/// Whether reshapes can give every tensor one dimension per loop.
bool canBuild(const AttentionMatch &match);
/// Maps the loops of the op to those of the match.
using LoopNumbers = std::map<unsigned, unsigned>;

struct WrittenAttention {
  ext::AttentionOp op;
  mlir::Value output; ///< with the type of the value that it replaces
  LoopNumbers numbers;
};
/// Emits the op, and reshapes of its operands and result.
WrittenAttention writeAttention(mlir::OpBuilder &b, AttentionMatch &match);
/// Replaces the result of `root` and erases dead ops, users before producers.
void replaceWithAttention(mlir::Operation *root, mlir::Value output,
                          llvm::ArrayRef<mlir::Operation *> replaced);
/// Makes the chunks of a sequence batches where a mask of indices limits queries to their own
/// chunk.
void splitChunks(mlir::func::FuncOp function);
/// Erases tensor ops without readers, such as producers of masks.
void eraseDeadTensorOps(mlir::func::FuncOp function);
/// A tensor with one dimension per loop of an access, and the map from the op's loops to these.
std::pair<mlir::Value, mlir::AffineMap> asOperand(mlir::OpBuilder &b, mlir::Location loc,
                                                  const Loops &loops, const LoopNumbers &numbers,
                                                  const Access &access);
/// A tensor with one dimension per loop of the op, as a tensor at `indices` in loops of the match.
mlir::Value atIndices(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                      mlir::AffineMap map, const LoopNumbers &numbers,
                      llvm::ArrayRef<mlir::AffineExpr> indices, mlir::RankedTensorType wanted);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H
