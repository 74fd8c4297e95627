//===- MatchAttention.h - Where a program attends ---------------*- C++ -*-===//
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

/// An attention in the spelling of a program.
struct AttentionMatch {
  std::shared_ptr<Loops> loops; ///< those of `expressions`, too
  unsigned keyLoop = 0;         ///< the loop over keys
  Access query, key, value;
  Indices output; ///< of the root's result
  std::unique_ptr<ElementExpressions> expressions;
  int score = ElementExpressions::kNone;
  int product = ElementExpressions::kNone; ///< of query and key, in the score
  /// Their softmax; kNone where the output is divided by the sum of exponentials.
  int shares = ElementExpressions::kNone;
  mlir::linalg::LinalgOp scores;   ///< the product of query and key
  mlir::Operation *root = nullptr; ///< what the attention replaces
  llvm::SetVector<mlir::Operation *> replaced;
};

/// Whether an op is a sum of products of two tensors, from zero.
bool isProduct(mlir::linalg::LinalgOp op);

/// Whether a tensor that results are summed into is zero.
bool isZero(mlir::Value init);

/// The attention whose product with values is `product`. Unless `mayBeRead`, nothing else reads the
/// scores, nor what is made of them. Products that are too small to be scores of `leastScoreBytes`
/// are passed over early; what is found may still have a little less (`scoreBytes`).
std::optional<AttentionMatch> matchAttention(mlir::linalg::LinalgOp product, bool mayBeRead = false,
                                             int64_t leastScoreBytes = 0);

/// Moves an access through transposes, broadcasts and reshapes to what they read. A loop that would
/// have to be split is `wanted`.
void lookThrough(const Loops &loops, Access &access, std::optional<Split> &wanted);
/// Whether elements are read by sums of loops that a reshape takes apart, each loop once.
bool isReadable(const Loops &loops, mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> indices);

/// Whether a derivative should compute the scores again: they take at least so many bytes, or a
/// window of keys is exchanged where the sequence is cut.
bool isWorthRecomputing(AttentionMatch &match, int64_t leastScoreBytes);
/// The bytes below which no match in a function is worth that.
int64_t leastBytesOfMatch(mlir::func::FuncOp function, int64_t leastScoreBytes);
/// Whether reshapes give every tensor a dimension a loop.
bool canBuild(const AttentionMatch &match);
/// Loops of a match by the loop of the op that they are.
using LoopNumbers = std::map<unsigned, unsigned>;

struct WrittenAttention {
  ext::AttentionOp op;
  mlir::Value output; ///< as what the attention replaces
  LoopNumbers numbers;
};
/// Writes the op, and reshapes of its operands and result.
WrittenAttention writeAttention(mlir::OpBuilder &b, AttentionMatch &match);
/// Replaces the result of `root` and erases what is no longer read, users before producers.
void replaceWithAttention(mlir::Operation *root, mlir::Value output,
                          llvm::ArrayRef<mlir::Operation *> replaced);
/// Erases tensor ops that nobody reads, such as what masks were made of.
void eraseDeadTensorOps(mlir::func::FuncOp function);
/// A tensor with a dimension for each loop that an access reads by, and which loops of the op.
std::pair<mlir::Value, mlir::AffineMap> asOperand(mlir::OpBuilder &b, mlir::Location loc,
                                                  const Loops &loops, const LoopNumbers &numbers,
                                                  const Access &access);
/// What a tensor over loops of the op (one a dimension) is at indices in loops of the match.
mlir::Value atIndices(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                      mlir::AffineMap map, const LoopNumbers &numbers,
                      llvm::ArrayRef<mlir::AffineExpr> indices, mlir::RankedTensorType wanted);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_RECOGNIZE_MATCHATTENTION_H
