//===- SortVectors.h - Sort lines in vectors --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A network sorts the columns of a table whose rows are vectors of 64 bytes: each comparator
// orders two rows. A comparator keeps the lesser element in the lower row, so rows beyond a
// line's end, which would be greatest, are left out with their comparators. Blocks of 16 rows are
// sorted in registers (K. Batcher's odd-even merge sort); bitonic merges double them, their last
// four layers in registers again.
//
//   lanes    each column is a line: for many lines that are not long
//   merges   a long line fills tables of columns. Sorted columns become runs in memory, which are
//            merged, some vectors a step: of those loaded the lesser half is written, and the next
//            come from the run with the lesser head.
//
// Words are those of SortWords.h, but elements of a single operand are sorted by their keys alone
// and computed from these. Equal keys of different bits, -0 and NaN, are then written again in
// the order of the line, if there are any.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_SORTVECTORS_H
#define TESSERA_LIB_CODEGEN_KERNELS_SORTVECTORS_H

#include "SortWords.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tessera::codegen {

using Comparators = llvm::SmallVector<std::pair<int64_t, int64_t>>;

/// A table of rows in one buffer for each word.
struct Rows {
  int64_t extent;
  llvm::function_ref<LoopWriter::Values(LoopWriter, mlir::Value row)> place;
};

/// What is not yet read of two runs: [left, middle) and [right, stop).
struct Heads {
  mlir::Value left, middle, right, stop;
};

/// Some lines side by side, from (o, j) on: along `inner`, or along `outer` if that has extent 1.
/// Its tables have elements x lines, or the elements of one line.
struct Tile {
  mlir::Value o, j;
  int64_t lines;
  bool isFlat = false;
};

class VectorSort {
public:
  using Values = LoopWriter::Values;

  explicit VectorSort(const SortLines &words);
  bool usesLanes() const;
  bool usesMerges() const { return numWords == 1 && extent > 128; }
  Values lanesOf(LoopWriter at, Values results) const;
  Values mergesOf(LoopWriter at, Values results) const;

private:
  // The network. The state is the buffers.
  void exchange(LoopWriter at, Values &x, Values &y) const;
  Values readRow(LoopWriter at, const Rows &rows, mlir::ValueRange state, mlir::Value row) const;
  void writeRow(LoopWriter at, const Rows &rows, Values &state, mlir::Value row,
                Values words) const;
  Values inRegisters(LoopWriter at, const Rows &rows, Values state, mlir::Value first,
                     int64_t count, const Comparators &comparators) const;
  Values inBlocks(LoopWriter at, const Rows &rows, Values state,
                  llvm::function_ref<Comparators(int64_t)> network) const;
  Values exchangeRows(LoopWriter at, const Rows &rows, Values state, mlir::Value lower,
                      mlir::Value upper) const;
  Values sortColumns(LoopWriter at, const Rows &rows, Values state) const;

  // Merges of runs in a buffer of two halves.
  mlir::Value transposeTable(LoopWriter at, mlir::Value buffer, mlir::Value base,
                             int64_t rows) const;
  void sortBitonic(LoopWriter at, llvm::MutableArrayRef<mlir::Value> vectors) const;
  Values readChunk(LoopWriter at, mlir::Value source, mlir::Value row, mlir::Value begin) const;
  mlir::Value writeChunk(LoopWriter at, mlir::Value buffer, mlir::Value row, mlir::Value begin,
                         llvm::ArrayRef<mlir::Value> vectors) const;
  Values withNext(LoopWriter at, llvm::ArrayRef<mlir::Value> held,
                  llvm::ArrayRef<mlir::Value> next) const;
  /// Writes merged chunks to [begin, end) of a row of `into`; a null `from` is `into`. Returns
  /// that and the chunk that is left.
  Values mergeChunks(LoopWriter at, mlir::Value from, mlir::Value row, const Heads &heads,
                     llvm::ArrayRef<mlir::Value> held, mlir::Value into, mlir::Value intoRow,
                     mlir::Value begin, mlir::Value end) const;
  mlir::Value mergePass(LoopWriter at, mlir::Value buffer, mlir::Value from, mlir::Value width,
                        mlir::Value begin, int64_t extent) const;
  /// Merges runs of `width` elements, the first time from half `from`.
  mlir::Value mergeRuns(LoopWriter at, mlir::Value buffer, int64_t from, int64_t width,
                        mlir::Value begin, int64_t extent) const;

  // Elements.
  mlir::Type elementType(size_t operand = 0) const {
    return mlir::getElementTypeOrSelf(words.inputs[operand].getType());
  }
  mlir::Value sliceOf(LoopWriter at, mlir::Value tensor, const Tile &tile, int64_t count) const;
  mlir::Value inserted(LoopWriter at, mlir::Value slice, mlir::Value tensor, const Tile &tile,
                       int64_t count) const;
  bool isAlongOuter() const { return words.lines.inner == 1; }
  /// Identity on the loops over a table, and where an element is in the slice of a tensor.
  llvm::SmallVector<mlir::AffineMap> mapsOf(LoopWriter at, const Tile &tile) const;
  llvm::SmallVector<mlir::utils::IteratorType> loopsOf(const Tile &tile,
                                                       mlir::utils::IteratorType type) const {
    return llvm::SmallVector<mlir::utils::IteratorType>(tile.isFlat ? 1 : 2, type);
  }
  /// One word of each element of a tile in a table.
  mlir::Value wordsOf(LoopWriter at, size_t number, const Tile &tile, mlir::Value into) const;
  /// Words from `begin` on of a buffer's row, and such in a buffer.
  mlir::Value partOf(LoopWriter at, mlir::Value buffer, mlir::OpFoldResult row,
                     mlir::OpFoldResult begin, int64_t number) const;
  mlir::Value withPart(LoopWriter at, mlir::Value part, mlir::Value buffer, mlir::OpFoldResult row,
                       mlir::OpFoldResult begin, int64_t number) const;
  /// Fills half 0 from `number` to `end` with words that sort last.
  mlir::Value padded(LoopWriter at, mlir::Value buffer, int64_t number, int64_t end) const;
  /// Sorts the table at `base` of half 0 into half `size.half`.
  mlir::Value sortTable(LoopWriter at, mlir::Value buffer, mlir::Value base) const;
  Tile lineAt(LoopWriter at, mlir::Value line) const;
  Values
  placed(LoopWriter at, const Tile &tile, Values results, mlir::Value sorted,
         llvm::function_ref<Values(LoopWriter, mlir::Value i, mlir::Value lane)> wordsAt) const;
  mlir::Value restoreEqual(LoopWriter at, const Tile &tile, mlir::Value result) const;

  static constexpr int64_t kVectorBytes = 64;
  static constexpr int64_t kMerged = 4; ///< vectors merged in one step

  const SortLines &words;
  int64_t extent, count;
  bool isPlain; ///< keys suffice
  size_t numWords;
  mlir::Type word;
  int64_t lanes;
  int64_t block; ///< rows sorted in registers

  /// The tables of a long line, with equally many rows.
  struct {
    int64_t tables, rows, table, padded; ///< a number, of rows, of words in a table and in all
    int64_t half;                        ///< of a buffer with the sorted elements of a table
  } size;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_SORTVECTORS_H
