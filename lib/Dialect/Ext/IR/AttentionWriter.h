//===- AttentionWriter.h - Write attentions as linalg ops -------*- C++ -*-===//
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

/// Writes the parts of an attention, forward or backward, as linalg ops over loops of its domain. A
/// tensor over loops has one dimension for each, in their order.
class AttentionWriter {
public:
  /// `limits` gives the number of global iterations of some loops: scores beyond them are skipped,
  /// and operands are zero there.
  AttentionWriter(mlir::OpBuilder &b, mlir::Operation *op, GlobalIndex globalIndex,
                  llvm::ArrayRef<std::pair<unsigned, int64_t>> limits);
  virtual ~AttentionWriter() = default;

  /// A result of `write`: a tensor over the results of a map.
  struct Result {
    mlir::AffineMap map;
    mlir::Type element;
  };
  /// The results of the whole attention, computed in blocks of rows if the scores are large. A
  /// result that lacks a blocked loop is the sum over its blocks.
  llvm::SmallVector<mlir::Value> writeInBlocks(llvm::ArrayRef<mlir::Value> operands,
                                               llvm::ArrayRef<Result> results);

protected:
  /// Writes one block; `offsets` are its begins by loop (null: 0).
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
  /// A map of the domain, restricted to the given loops.
  mlir::AffineMap over(llvm::ArrayRef<unsigned> loops, mlir::AffineMap map) const;

  /// Appends the extras and their maps over `scoreLoops`.
  void addExtras(llvm::SmallVectorImpl<mlir::Value> &inputs,
                 llvm::SmallVectorImpl<mlir::AffineMap> &maps,
                 llvm::ArrayRef<mlir::Value> operands) const;
  /// The products of query and key, and the scores that the region computes from them: tensors over
  /// `scoreLoops`.
  mlir::Value writeProducts(llvm::ArrayRef<mlir::Value> operands);
  mlir::Value writeScores(mlir::Value products, llvm::ArrayRef<mlir::Value> operands,
                          llvm::ArrayRef<mlir::Value> offsets);
  /// The weight of a share of the softmax, or the derivative by a share from that by its weight, in
  /// the body of a generic op over `scoreLoops`.
  mlir::Value weigh(mlir::OpBuilder &body, mlir::Location loc, mlir::Value share,
                    mlir::ValueRange extras, llvm::ArrayRef<mlir::Value> offsets,
                    mlir::Type element);
  /// The weights of shares, tensors over `scoreLoops`.
  mlir::Value writeWeights(mlir::Value shares, llvm::ArrayRef<mlir::Value> operands,
                           llvm::ArrayRef<mlir::Value> offsets, mlir::Type element);
  /// Copies a region of scores or weights into the body of a generic op over `loops`; `arguments`
  /// are its first arguments.
  mlir::Value writeRegion(mlir::OpBuilder &body, mlir::Location loc, mlir::Region &region,
                          mlir::ValueRange arguments, llvm::ArrayRef<mlir::Value> offsets,
                          llvm::ArrayRef<unsigned> loops);
  /// The index of a loop in the body of a generic op over `loops`.
  mlir::Value indexOf(mlir::OpBuilder &body, mlir::Location loc, unsigned loop,
                      llvm::ArrayRef<mlir::Value> offsets, llvm::ArrayRef<unsigned> loops);
  mlir::Value elementwise(mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> inputMaps,
                          llvm::ArrayRef<unsigned> loops, mlir::Type element, ScalarBody body);
  /// Reduces a tensor over `loops` to one over `rows`; `body` combines an element with the
  /// accumulator.
  mlir::Value reduceKeys(
      mlir::Value x, llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<unsigned> rows,
      llvm::APFloat init,
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value, mlir::Value)>
          body);
  /// The product of two tensors, summed over the loops that the result lacks.
  mlir::Value contract(mlir::Value lhs, mlir::AffineMap lhsMap, mlir::Value rhs,
                       mlir::AffineMap rhsMap, mlir::AffineMap resultMap, mlir::Type element);
  /// The sum of two tensors of one shape.
  mlir::Value addTo(mlir::Value sum, mlir::Value part);
  mlir::Value convert(mlir::Value x, llvm::ArrayRef<unsigned> loops, mlir::Type element);
  mlir::Value zeros(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  llvm::SmallVector<int64_t> shapeOver(llvm::ArrayRef<unsigned> loops) const;
  llvm::SmallVector<int64_t> shapeOf(mlir::AffineMap map) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  AttentionParts parts;
  AttentionDomain &domain;                ///< of `parts`, with the extents of the current block
  llvm::ArrayRef<unsigned> rows;          ///< of `parts`
  llvm::SmallVector<unsigned> scoreLoops; ///< the rows, then the keys
  /// Set for one turn of several: blocks are small and always in a loop, so that the kernels of a
  /// turn are not fused with others. Operands after those of the op are results of the previous
  /// turns.
  bool isTurn = false;
  llvm::SmallVector<mlir::AffineMap> before; ///< maps of these results

private:
  llvm::SmallVector<int64_t> chooseBlocks() const;
  std::optional<unsigned> longestQuery() const;
  /// Where the blocks of a result go: a tensor of an outer level, if there is one, which was made
  /// where `origin` were the offsets.
  struct Target {
    mlir::Value whole;
    llvm::SmallVector<mlir::Value> origin;
  };
  /// The results over the current block of the outer loops, or their targets with it.
  llvm::SmallVector<mlir::Value>
  walk(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
       llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
       llvm::ArrayRef<Result> results, llvm::ArrayRef<Target> targets);
  void markCached(mlir::Operation *before, llvm::ArrayRef<mlir::Value> results);
  /// Finds the keys that a block of queries sees, if the mask and the blocks determine them.
  void findVisibleKeys();
  /// The keys [first, second) that queries [from, to) see, in whole tiles.
  std::pair<int64_t, int64_t> visibleTo(int64_t from, int64_t to) const;
  /// Blocks of a loop from `from` to `to`; `carries` are the results so far.
  llvm::SmallVector<mlir::Value>
  walkRange(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
            llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
            llvm::ArrayRef<Result> results, llvm::ArrayRef<Target> targets, int64_t from,
            int64_t to, mlir::ValueRange carries);
  /// The same for blocks of queries, over only the keys that they see.
  llvm::SmallVector<mlir::Value>
  walkVisible(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
              llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
              llvm::ArrayRef<Result> results, llvm::ArrayRef<Target> targets, int64_t from,
              int64_t to, mlir::ValueRange carries);
  /// The dimension of a loop in a tensor over the results of a map.
  unsigned dimOf(mlir::AffineMap map, unsigned loop) const;
  /// Where the current block begins in a tensor that was made where `origin` were the offsets
  /// (empty: in the whole).
  llvm::SmallVector<mlir::OpFoldResult> beginsOf(mlir::AffineMap map,
                                                 llvm::ArrayRef<mlir::Value> offsets,
                                                 llvm::ArrayRef<mlir::Value> origin = {});
  /// Whether a tensor over the map's loops is cut into blocks by one of the loops `order`.
  bool isCutIn(mlir::AffineMap map, llvm::ArrayRef<unsigned> order,
               llvm::ArrayRef<int64_t> blocks) const;
  /// Slices the operands for the blocks of `loop` and of loops around it, once for all of these: an
  /// operand that the loops `later` cut is sliced there.
  void cut(llvm::MutableArrayRef<mlir::Value> operands, unsigned loop,
           llvm::ArrayRef<unsigned> later, llvm::ArrayRef<int64_t> blocks,
           llvm::ArrayRef<mlir::Value> offsets);
  mlir::Value insert(mlir::Value part, mlir::Value whole,
                     llvm::ArrayRef<mlir::OpFoldResult> begins);
  /// Inserts blocks into their targets.
  llvm::SmallVector<mlir::Value> put(llvm::SmallVector<mlir::Value> made,
                                     llvm::ArrayRef<Result> results, llvm::ArrayRef<Target> targets,
                                     llvm::ArrayRef<mlir::Value> offsets);
  /// One block of the first loop; `into` are the results so far.
  llvm::SmallVector<mlir::Value>
  putBlock(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> blocks,
           llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Value> offsets,
           llvm::ArrayRef<Result> results, llvm::ArrayRef<Target> targets, mlir::Value begin,
           int64_t size, mlir::ValueRange into);

  GlobalIndex globalIndex;
  std::optional<KeyBand> visible;
  llvm::SmallVector<std::pair<unsigned, int64_t>> limits;
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONWRITER_H
