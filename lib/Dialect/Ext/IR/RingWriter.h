//===- RingWriter.h - Write ring attention ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H
#define TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H

#include "AttentionPart.h"

namespace tessera::ext {

/// Writes a part of an attention whose keys are sharded like its queries, `part.ring`.
llvm::SmallVector<mlir::Value> writeRing(const Part &part, AttentionOp op);
llvm::SmallVector<mlir::Value> writeRing(const Part &part, AttentionBackwardOp op);
/// The same for an op with `balanced`.
llvm::SmallVector<mlir::Value> writeBalancedRing(const Part &part, AttentionOp op);
llvm::SmallVector<mlir::Value> writeBalancedRing(const Part &part, AttentionBackwardOp op);

/// Common parts of rings, forward and backward, balanced or not.
class RingWriter {
protected:
  RingWriter(const Part &part, mlir::Operation *op);

  /// The operands of one turn, and the begin of its keys.
  struct Block {
    llvm::SmallVector<mlir::Value> operands;
    mlir::Value begin;
    llvm::SmallVector<std::pair<unsigned, int64_t>> limits;
  };
  /// Slices the extras at the `size` keys of a block; blocks end at or before `room`.
  void sliceExtras(Block &made, int64_t size, int64_t room);

  /// Moves blocks of keys, or of a tensor with one element per key. `global` is the type of all
  /// blocks together.
  mlir::Value moveBlocks(mlir::Value blocks, mlir::RankedTensorType global,
                         const sharding::TensorSharding &sharding, unsigned dim, int64_t size,
                         int64_t distance);
  /// The result of `make` for the turn: of two blocks, each device has the existing one.
  mlir::Value choose(const RingTurn &turn, mlir::Value isBehind,
                     llvm::function_ref<mlir::Value(bool)> make);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

  mlir::Value isAtLeast(mlir::Value index, int64_t least);
  mlir::Value times(mlir::Value index, int64_t factor);
  unsigned keyDim(unsigned map) const { return dimOf(parts.maps[map], key); }

  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;
  /// Elementwise `body` over tensors of one shape; the result has type `element`, by default that
  /// of the first tensor.
  mlir::Value pointwise(mlir::ValueRange inputs, Body body, mlir::Type element = {});
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value convert(mlir::Value x, mlir::Type element);
  /// Elementwise `body` over two tensors, in a loop over parts, which becomes a separate kernel: a
  /// kernel fused with those of later turns would keep received blocks alive until then.
  mlir::Value inLoop(mlir::Value sum, mlir::Value received, Body body);
  /// Output and log-sum-exp of the op, from sum_n exp(score - largest) * value, the largest score
  /// and sum_n exp(score - largest).
  llvm::SmallVector<mlir::Value> finish(llvm::ArrayRef<mlir::Value> accumulators);

  const Part &part;
  mlir::Operation *op;
  dist::PartitionContext &context;
  mlir::OpBuilder &b;
  mlir::Location loc;
  Local write;
  const AttentionParts &parts;
  unsigned key;
  int64_t keys;
  const sharding::AxisList &axes;
  int64_t devices;
  mlir::Value device;
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_RINGWRITER_H
