//===- AttentionWriter.h - What attentions are written with -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONWRITER_H
#define TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONWRITER_H

#include "AttentionLoops.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/ConvertFloat.h"

namespace tessera::ext {

using ScalarBody =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// Writes the parts of an attention, forward or backward, as linalg ops over loops of its domain.
/// A tensor over loops has a dimension for each, in their order.
class AttentionWriter {
public:
  /// `limits` says of some loops how many global iterations they have: the scores of others are
  /// left out, operands are zero there.
  AttentionWriter(mlir::OpBuilder &b, mlir::Operation *op, GlobalIndex globalIndex,
                  llvm::ArrayRef<std::pair<unsigned, int64_t>> limits);
  virtual ~AttentionWriter() = default;

  /// What `write` returns: a tensor over the results of a map.
  struct Result {
    mlir::AffineMap map;
    mlir::Type element;
  };
  /// The results of the whole, computed in blocks of rows where the scores are large. A result that
  /// lacks a loop that is walked in blocks is the sum over them.
  llvm::SmallVector<mlir::Value> writeInBlocks(llvm::ArrayRef<mlir::Value> operands,
                                               llvm::ArrayRef<Result> results);

protected:
  /// Writes one block: `offsets` says by loop where it begins (null: at 0).
  virtual llvm::SmallVector<mlir::Value> write(llvm::ArrayRef<mlir::Value> operands,
                                               llvm::ArrayRef<mlir::Value> offsets) = 0;

  unsigned numOperands() const { return parts.op->getNumOperands(); }
  mlir::AffineMap operandMap(unsigned index) const {
    return index < numOperands() ? parts.maps[index] : before[index - numOperands()];
  }
  /// The map's loops in the order of its results.
  static llvm::SmallVector<unsigned> loopsOf(mlir::AffineMap map);
  /// The map of a tensor over loops.
  mlir::AffineMap mapOf(llvm::ArrayRef<unsigned> loops) const;
  /// A map of the domain as one of the given loops alone.
  mlir::AffineMap over(llvm::ArrayRef<unsigned> loops, mlir::AffineMap map) const;

  /// The products of query and key, and the scores that the region makes of them: tensors over
  /// `scoreLoops`.
  mlir::Value writeProducts(llvm::ArrayRef<mlir::Value> operands);
  mlir::Value writeScores(mlir::Value products, llvm::ArrayRef<mlir::Value> operands,
                          llvm::ArrayRef<mlir::Value> offsets);
  /// Copies a region of scores into the body of a generic op over `loops`; `arguments` are its
  /// first arguments.
  mlir::Value writeRegion(mlir::OpBuilder &body, mlir::Location loc, mlir::Region &region,
                          mlir::ValueRange arguments, llvm::ArrayRef<mlir::Value> offsets,
                          llvm::ArrayRef<unsigned> loops);
  /// The index of a loop in the body of a generic op over `loops`.
  mlir::Value indexOf(mlir::OpBuilder &body, mlir::Location loc, unsigned loop,
                      llvm::ArrayRef<mlir::Value> offsets, llvm::ArrayRef<unsigned> loops);
  mlir::Value elementwise(mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> inputMaps,
                          llvm::ArrayRef<unsigned> loops, mlir::Type element, ScalarBody body);
  /// Reduces a tensor over `loops` to one over `rows`; `body` combines an element and what is.
  mlir::Value reduceKeys(
      mlir::Value x, llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<unsigned> rows,
      llvm::APFloat init,
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value, mlir::Value)>
          body);
  /// The product of two tensors, summed over the loops that the result lacks.
  mlir::Value contract(mlir::Value lhs, mlir::AffineMap lhsMap, mlir::Value rhs,
                       mlir::AffineMap rhsMap, mlir::AffineMap resultMap, mlir::Type element);
  /// `sum` with `part` added to it, of one shape.
  mlir::Value addTo(mlir::Value sum, mlir::Value part);
  mlir::Value convert(mlir::Value x, llvm::ArrayRef<unsigned> loops, mlir::Type element);
  mlir::Value zeros(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  llvm::SmallVector<int64_t> shapeOver(llvm::ArrayRef<unsigned> loops) const;
  llvm::SmallVector<int64_t> shapeOf(mlir::AffineMap map) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  AttentionParts parts;
  AttentionDomain &domain;                ///< of `parts`, with the extents of the block in hand
  llvm::ArrayRef<unsigned> rows;          ///< of `parts`
  llvm::SmallVector<unsigned> scoreLoops; ///< the rows, then the keys
  /// Of one turn of several: blocks are small, and always a loop, so that the kernels of a turn
  /// stay apart from those of others. Operands behind those of the op are results of the turns
  /// before.
  bool isTurn = false;
  llvm::SmallVector<mlir::AffineMap> before; ///< of these

private:
  llvm::SmallVector<int64_t> chooseBlocks() const;
  std::optional<unsigned> longestQuery() const;
  llvm::SmallVector<mlir::Value> walk(llvm::ArrayRef<unsigned> order,
                                      llvm::ArrayRef<int64_t> blocks,
                                      llvm::ArrayRef<mlir::Value> operands,
                                      llvm::ArrayRef<mlir::Value> offsets,
                                      llvm::ArrayRef<Result> results);
  /// What a block of queries sees of the keys, where the mask and the walk say so.
  void findVisibleKeys();
  /// Blocks of a loop from `from` to `to`; `carries` are the results so far.
  llvm::SmallVector<mlir::Value>
  walkRange(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
            llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
            llvm::ArrayRef<Result> results, int64_t from, int64_t to, mlir::ValueRange carries);
  /// The same of blocks of queries, over the keys that they see alone.
  llvm::SmallVector<mlir::Value>
  walkVisible(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
              llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
              llvm::ArrayRef<Result> results, int64_t from, int64_t to, mlir::ValueRange carries);
  /// Dimension of a tensor over the results of a map that a loop runs over.
  unsigned dimOf(mlir::AffineMap map, unsigned loop) const;
  mlir::Value insert(mlir::Value part, mlir::Value whole, unsigned dim, mlir::OpFoldResult begin);

  llvm::SmallVector<mlir::Value>
  putBlock(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
           llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
           llvm::ArrayRef<Result> results, mlir::Value begin, int64_t size, mlir::ValueRange into);

  GlobalIndex globalIndex;
  std::optional<KeyBand> visible;
  llvm::SmallVector<std::pair<unsigned, int64_t>> limits;
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONWRITER_H
