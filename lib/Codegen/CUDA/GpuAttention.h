//===- GpuAttention.h - Attention as one launch -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUATTENTION_H
#define TESSERA_CODEGEN_CUDA_GPUATTENTION_H

#include "GpuAttentionTiles.h"
#include "GpuStages.h"

namespace tessera::codegen {

/// A kernel that is one attention, or one derivative of an attention.
struct AttentionKernel {
  mlir::Operation *op;
  /// Argument of the kernel, by operand and by result of the op.
  llvm::SmallVector<unsigned> operands, results;
};
/// Null where the kernel computes something else, or where no fused launch exists for it.
std::optional<AttentionKernel> matchAttention(mlir::func::FuncOp kernel);

/// Adds the launches of an attention to a module. Memory is linear in the sequence: scores exist in
/// registers, a tile of keys at a time (FlashAttention-2, arXiv 2307.08691).
void emitAttention(mlir::func::FuncOp kernel, const AttentionKernel &attention,
                   mlir::ModuleOp launches, llvm::StringRef symbol, llvm::ArrayRef<bool> mayAlias,
                   runtime::GpuKernel &result, GpuKernelInfo &info);

/// What a block has of an attention: warps of 16 rows each, and columns of a tile.
struct TileSizes {
  int64_t warps, columns;
};
TileSizes forwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth);

/// The same of its derivative, which has two tiles of rows and sums of both.
TileSizes backwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth);

/// Query i sees keys i + first to i + last at most.
struct KeyRange {
  int64_t first, last;
};
/// Nothing where a query may see any key.
std::optional<KeyRange> visibleKeys(const AttentionTiles &tiles);
/// The keys that `count` queries from `first` on see, and the queries that see such keys: where
/// they begin, at a tile of `tile`, and end.
std::pair<mlir::Value, mlir::Value> keysOf(AttentionTiles &tiles, KeyRange range, mlir::Value first,
                                           int64_t count, int64_t tile);
std::pair<mlir::Value, mlir::Value> queriesOf(AttentionTiles &tiles, KeyRange range,
                                              mlir::Value first, int64_t count, int64_t tile);

/// The work of one block, a tile of queries with all of the keys that they see. Returns the grid.
GpuShape emitAttentionForward(AttentionTiles &tiles, llvm::ArrayRef<mlir::Value> results);
/// The gradient by query, a tile of queries a block; those by key and value, a tile of keys a
/// block.
GpuShape emitQueryGradient(AttentionTiles &tiles, mlir::Value result);
GpuShape emitKeyGradients(AttentionTiles &tiles, mlir::Value byKey, mlir::Value byValue);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUATTENTION_H
