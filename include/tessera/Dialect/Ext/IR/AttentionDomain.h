//===- AttentionDomain.h - The loops of an attention ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_ATTENTIONDOMAIN_H
#define TESSERA_DIALECT_EXT_IR_ATTENTIONDOMAIN_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tessera::ext {

/// The loops of an attention by their role, ascending.
struct AttentionDomain {
  llvm::SmallVector<int64_t> extents; ///< by loop
  llvm::SmallVector<unsigned> batch;  ///< in query, key, value and output
  llvm::SmallVector<unsigned> query;  ///< in query and output only
  unsigned key = 0;
  llvm::SmallVector<unsigned> features;       ///< in query and key only
  llvm::SmallVector<unsigned> outputFeatures; ///< in value and output only

  int64_t sizeOf(llvm::ArrayRef<unsigned> loops) const {
    int64_t size = 1;
    for (unsigned loop : loops)
      size *= extents[loop];
    return size;
  }
};

/// The common parts of the forward and the backward op, for a verified op.
struct AttentionParts {
  mlir::Operation *op;
  llvm::SmallVector<mlir::AffineMap> maps; ///< of the operands, then of the results
  mlir::AffineMap output;                  ///< of the forward output
  llvm::SmallVector<unsigned> rows; ///< batch and query loops, in the order of the log-sum-exp
  unsigned firstExtra;              ///< operands from here on are extras
  AttentionDomain domain;

  unsigned numExtras() const { return op->getNumOperands() - firstExtra; }
  mlir::Region &score() const { return op->getRegion(0); }
  /// The region of weights; null if a share of the softmax is the weight itself.
  mlir::Region *weights() const {
    mlir::Region &last = op->getRegion(op->getNumRegions() - 1);
    return last.empty() ? nullptr : &last;
  }
  /// The type of the softmax: that of the scores, at least f32.
  mlir::FloatType scoreType() const {
    auto yielded =
        mlir::cast<mlir::FloatType>(score().front().getTerminator()->getOperand(0).getType());
    return yielded.getWidth() < 32 ? mlir::Float32Type::get(op->getContext()) : yielded;
  }
  /// The factor of each loop in the sharding rule; -1: a feature, which is never sharded.
  llvm::SmallVector<int64_t> factors() const;
};
/// The parts of an ext.attention or ext.attention_backward.
AttentionParts partsOf(mlir::Operation *op);

/// Whether a scalar is linear in another, and zero where that is zero, as far as arith ops show.
bool isLinearIn(mlir::Value value, mlir::Value share);

/// Whether a GPU computes the op, forward or backward, by launches that keep scores in registers:
/// query, key, value and gradient have one type, f32, f16 or bf16, and there are at most 128
/// features, which are contiguous.
bool isFusedOnGpu(mlir::Operation *op);

/// Whether the loop is a result of a map, which must be a projected permutation.
inline bool hasLoop(mlir::AffineMap map, unsigned loop) {
  return map.isFunctionOfDim(loop);
}

/// The extent of every loop, from the shapes of the tensors of the maps; -1 for a loop that no map
/// has.
llvm::SmallVector<int64_t> loopExtents(llvm::ArrayRef<mlir::AffineMap> maps, mlir::TypeRange types);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONDOMAIN_H
