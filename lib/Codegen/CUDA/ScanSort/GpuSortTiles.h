//===- GpuSortTiles.h - Sort and merge tiles in shared memory ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSORTTILES_H
#define TESSERA_CODEGEN_CUDA_GPUSORTTILES_H

#include "../../Kernels/SortWords.h"
#include "../Tiles/GpuTileWriter.h"
#include "GpuSort.h"

namespace tessera::codegen {

/// The elements that a launch reads or leaves: in each line, runs of `length` in sorted order, of
/// which the last has `last`. They are contiguous.
struct SortRuns {
  int64_t number = 0, length = 0, last = 0;
  int64_t total() const { return (number - 1) * length + last; }
};

/// The division of a sort among blocks and threads.
struct SortShape {
  SortShape(ext::SortOp op, const SortWords &words);

  Lines lines;
  int64_t count;   ///< first elements of a line that are results
  int64_t words;   ///< of an element
  int64_t items;   ///< consecutive elements of a thread
  int64_t threads; ///< of a block
  int64_t tile() const { return items * threads; }
  int64_t numLines() const { return lines.outer * lines.inner; }

  /// Short lines: `slots` elements of a tile, which `items` divides, belong to a line, and
  /// `linesPerTile` lines to a tile. Otherwise a tile is a part of a line.
  int64_t slots, linesPerTile = 1;
  bool isShort() const { return lines.extent <= slots; }

  /// The runs of sorted tiles of `total` elements a line, and of merged pairs.
  SortRuns tilesOf(int64_t total) const;
  SortRuns mergedFrom(const SortRuns &runs) const;
  /// Whether so few elements of a tile are results that tiles of candidates are sorted again.
  bool selects() const { return count * 4 <= tile(); }
  /// The blocks of a launch that sorts tiles, and of one that merges pairs into `to`.
  int64_t blocksOfTiles(int64_t total) const;
  int64_t blocksOfPairs(const SortRuns &to) const;
};

/// Emits one launch of a sort.
class SortTiles : TileWriter {
public:
  /// Words of elements in the workspace: word w of position x of a line is element
  /// (w * lines + line) * pitch + x of `memory`, a root.
  struct Stored {
    mlir::Value memory, pitch;
  };
  /// The sizes of one merge of pairs: constants, or read from a table in the workspace, so that one
  /// function does all merges but the last.
  struct Merge {
    mlir::Value length, total; ///< of the runs
    mlir::Value nextLength, nextNumber, nextTotal;
    mlir::Value chunks; ///< tiles of a merged run
  };
  static constexpr int64_t kEntry = 8; ///< words of the table for one merge: 64 bytes

  SortTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const SortKernel &sort,
            TileKernel &kernel);

  /// Sorts tiles of the operands, or of `total` stored elements a line, and keeps the first ones in
  /// `to`; without `to` they are the results.
  /// The first launch of several writes a `table`, if any, of the sizes of `merges` merges.
  GpuShape sortTiles(mlir::Value from, int64_t total, mlir::Value to, mlir::Value table = {},
                     int64_t merges = 0);
  /// Merges pairs of runs, of which the first elements are kept; without `to` they are the results.
  /// With a `table` the launch has sizes from there.
  GpuShape mergePairs(mlir::Value from, const SortRuns &runs, mlir::Value to, mlir::Value table);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<void(mlir::Value)>;
  using Read = llvm::function_ref<Values(mlir::Value)>;

  LoopWriter at() { return {b, loc}; }
  /// `count` items of the block, one a thread at a time: calls `body` with the number of each.
  void forItems(int64_t count, Body body);

  Values shared(mlir::Value place);
  void setShared(mlir::Value place, mlir::ValueRange words);
  /// The index of word `word` of a stored element.
  mlir::Value placeOf(const Stored &stored, size_t word, mlir::Value line, mlir::Value position);
  Values stored(const Stored &stored, mlir::Value line, mlir::Value position);
  /// The words of an element of the operands.
  Values ofOperands(mlir::Value line, mlir::Value position);
  mlir::Value offsetOf(mlir::Value line, mlir::Value position, int64_t extent);
  /// Stores the element at `place` of the tile: its words, or the operands at its index.
  void put(const Stored *to, mlir::Value line, mlir::Value position, mlir::Value place);

  /// The number of elements of `a` among the first `diagonal` of the merged `a` and `b`, of
  /// `left` and `right` elements (merge path).
  mlir::Value splitAt(Read a, Read b, mlir::Value left, mlir::Value right, mlir::Value diagonal);
  /// The next `items` elements of two runs in the tile, from `begin` on, and from `middle` on.
  Values merged(mlir::Value begin, mlir::Value left, mlir::Value middle, mlir::Value right,
                mlir::Value diagonal);
  /// Sorts the elements of a thread.
  void sortOwn(llvm::MutableArrayRef<Values> own);
  /// Sorts the tile: runs of `slots` elements, of which the first `kept` are needed.
  void sortShared(int64_t kept);
  Merge sizesOf(const SortRuns &runs, mlir::Value table);
  void writeTable(mlir::Value table, const SortRuns &runs, int64_t merges);
  void countBytes(mlir::Value from, int64_t read, mlir::Value to, int64_t written);

  const SortKernel &sort;
  TileKernel &kernel;
  SortWords words;
  SortShape shape;
  Values tiles; ///< in shared memory, one for each word
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSORTTILES_H
