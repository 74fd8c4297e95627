//===- GpuAttention.h - Attention as one launch -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUATTENTION_H
#define TESSERA_CODEGEN_CUDA_GPUATTENTION_H

#include "../GpuStages.h"
#include "GpuAttentionTiles.h"

namespace tessera::codegen {

/// A kernel that is one attention, or one derivative of an attention.
struct AttentionKernel {
  mlir::Operation *op;
  /// The kernel's argument of each operand and result of the op.
  llvm::SmallVector<unsigned> operands, results;
};
/// None if the kernel computes something else, or if there is no fused launch for it.
std::optional<AttentionKernel> matchAttention(mlir::func::FuncOp kernel);

/// Adds the launches of an attention to a module. Memory is linear in the sequence length: scores
/// stay in registers, for one tile of keys at a time (FlashAttention-2, arXiv 2307.08691).
void emitAttention(mlir::func::FuncOp kernel, const AttentionKernel &attention,
                   mlir::ModuleOp launches, llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias,
                   const GpuLaunchLimits &limits, runtime::GpuKernel &result, GpuKernelInfo &info);

/// The tile of a block in an attention: warps of one or two times 16 rows each, and columns.
struct TileSizes {
  int64_t warps, columns, rowBlocks = 1;
  int64_t steps = 1;       ///< tiles of columns that are copied at once
  bool keepsLeft = false;  ///< the left operands of products with several tiles, in registers
  bool warpgroups = false; ///< products are those of warpgroups
  int64_t resident = 1;    ///< blocks that share a multiprocessor
  int64_t rows() const { return warps * rowBlocks * AttentionTiles::kRows; }
};
TileSizes forwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth);

/// The same for the derivatives, which have two tiles of rows; `byKey`: and sums of both.
TileSizes backwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth, bool byKey);

/// Query i attends to at most keys i + first to i + last.
struct KeyRange {
  int64_t first, last;
};
/// None if a query may attend to any key.
std::optional<KeyRange> visibleKeys(const AttentionTiles &tiles);
/// The range [begin, end) of keys that `count` queries from `first` on attend to, and of queries
/// that attend to such keys. The begin is a multiple of `tile`.
std::pair<mlir::Value, mlir::Value> keysOf(AttentionTiles &tiles, KeyRange range, mlir::Value first,
                                           int64_t count, int64_t tile);
std::pair<mlir::Value, mlir::Value> queriesOf(AttentionTiles &tiles, KeyRange range,
                                              mlir::Value first, int64_t count, int64_t tile);

/// Which of `others` batches, heads or parts, and which of `tiles` tiles, a block has. If tiles
/// differ in their work, those with one number are started together, so that a launch does not end
/// with a few blocks of much work.
std::pair<mlir::Value, mlir::Value> blockOf(AttentionTiles &tiles, int64_t numTiles, int64_t others,
                                            bool differ);

/// How the keys of an attention with few queries (decoding) are split over blocks, so that they
/// occupy the GPU: the partial results of each part of the keys are combined by a second launch, in
/// order.
struct KeySplit {
  int64_t parts = 1;
  int64_t keys = 0; ///< of a part, a multiple of the tile's
  int64_t rows = 0; ///< of all queries
};
KeySplit splitKeys(const AttentionTiles &tiles);
/// The number of elements of the partial results: f32 sums of each row, then its greatest score and
/// the sum of its weights.
int64_t elementsOfParts(const AttentionTiles &tiles, const KeySplit &split);

/// Emits the work of one block: a tile of queries with all keys that they attend to, or with a part
/// of them, whose results are written to `partial`. Returns the grid.
GpuShape emitAttentionForward(AttentionTiles &tiles, llvm::ArrayRef<mlir::Value> results,
                              const KeySplit &split, mlir::Value partial);
/// Emits the combination of the parts, with some elements of a row per thread.
GpuShape emitCombination(AttentionTiles &tiles, llvm::ArrayRef<mlir::Value> results,
                         const KeySplit &split, mlir::Value partial);
/// Emit the gradient by query with a tile of queries per block, and those by key and value with a
/// tile of keys per block.
GpuShape emitQueryGradient(AttentionTiles &tiles, mlir::Value result);
GpuShape emitKeyGradients(AttentionTiles &tiles, mlir::Value byKey, mlir::Value byValue);

/// Whether one launch computes all gradients: it has five products in place of seven, but reads and
/// writes the gradient by query for each tile of keys. That is less time where FMA multiplies.
bool hasJointGradients(const AttentionTiles &tiles);
/// The number of blocks that share the keys of one batch. Each has a partial gradient by query.
int64_t jointParts(const AttentionTiles &tiles);
GpuShape emitJointGradients(AttentionTiles &tiles, llvm::ArrayRef<mlir::Value> results,
                            mlir::Value partial, int64_t parts);
/// Emits the sum of the partial gradients by query.
GpuShape emitQuerySum(AttentionTiles &tiles, mlir::Value result, mlir::Value partial,
                      int64_t parts);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUATTENTION_H
