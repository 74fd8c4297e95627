//===- GpuRadix.h - Sort long lines by digits -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPURADIX_H
#define TESSERA_CODEGEN_CUDA_GPURADIX_H

#include "../../Kernels/LowerExt.h"
#include "../Tiles/GpuTileWriter.h"
#include "GpuSort.h"

namespace tessera::codegen {

/// A pass of a sort by digits: moves elements to the order of `kBits` bits of one key.
struct RadixPass {
  unsigned key = 0;
  int64_t shift = 0;
  bool isFirst = false, isLast = false; ///< of all passes
  bool beginsKey = false, endsKey = false;
};

/// The division of a sort by digits among passes, blocks and threads.
struct RadixShape {
  static constexpr int64_t kBits = 8, kDigits = 1 << kBits;
  /// Of a block: a thread for each digit.
  static constexpr int64_t kThreads = kDigits, kWarps = kThreads / kWarp;

  explicit RadixShape(const SortKernel &sort);

  Lines lines;
  int64_t count; ///< first elements of a line that are results
  llvm::SmallVector<RadixPass> passes;
  llvm::SmallVector<mlir::Type> elements; ///< of the operands
  /// The operands that passes move, keys first. Without them they move one key and the index, and
  /// the last pass reads the operands at the indices.
  llvm::SmallVector<unsigned> moved;
  int64_t items = 0; ///< elements of a thread
  bool isPossible = true;

  int64_t tile() const { return items * kThreads; }
  int64_t numLines() const { return lines.outer * lines.inner; }
  int64_t blocksOfLine() const { return llvm::divideCeil(lines.extent, tile()); }
  int64_t blocks() const { return numLines() * blocksOfLine(); }
  int64_t launches() const { return 3 * static_cast<int64_t>(passes.size()); }
  /// The types of the values that a pass moves.
  llvm::SmallVector<mlir::Type> fieldsOf(const RadixPass &pass) const;
  /// Bytes of an element that all launches read and write.
  int64_t bytesOfElement() const;

private:
  const SortKernel &sort;
};

/// Bytes that a read of an operand at a random place moves at least.
inline constexpr int64_t kSectorBytes = 32;

/// Emits the launches of a sort by digits.
void emitRadixSort(const SortKernel &sort, const RadixShape &shape, TileKernel &kernel);

/// Emits one launch.
class RadixTiles : TileWriter {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  RadixTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const SortKernel &sort,
             const RadixShape &shape, const RadixPass &pass, TileKernel &kernel);

  /// Counts the digits of each block: `counts[(line * kDigits + digit) * blocksOfLine + block]`.
  /// `from`: the moved values of the previous pass. `shift` has the pass's shift; the first launch
  /// writes those of all passes to `table` instead.
  GpuShape count(mlir::ValueRange from, mlir::Value counts, mlir::Value shift, mlir::Value table);
  /// Moves the elements; `sums` are the inclusive sums of the counts of each digit. The last pass
  /// writes the results instead of `to`.
  GpuShape scatter(mlir::ValueRange from, mlir::Value sums, mlir::ValueRange to, mlir::Value shift);

  /// Words between the shifts of two passes in the table: 64 bytes.
  static constexpr int64_t kEntry = 16;

private:
  mlir::Value word(int64_t value);
  mlir::Value loadWord(mlir::Value memory, mlir::Value place);
  mlir::Value toIndex(mlir::Value word);
  /// The position in the line of an element of the thread.
  mlir::Value positionOf(int64_t item);
  mlir::Value offsetOf(mlir::Value position, int64_t extent);
  mlir::Value readOperand(unsigned number, mlir::Value position);
  /// The values of an element that the pass moves, or only its key.
  Values read(mlir::ValueRange from, mlir::Value position, bool onlyKey);
  void write(mlir::ValueRange to, mlir::Value position, mlir::ValueRange fields);
  unsigned keyField() const { return shape.moved.empty() ? 0 : pass.key; }

  /// The element as an unsigned integer in the order of the sort.
  mlir::Value keyOf(mlir::Value element);
  mlir::Value digitOf(mlir::Value element);
  /// Counts the digits of each warp in `counters`. Returns of each element of the thread its digit
  /// and, in the lower half of the word, the number of equal ones before it in the warp.
  Values rank(llvm::ArrayRef<Values> fields);
  /// Replaces the counters of the thread's digit by their exclusive sums; returns the total.
  mlir::Value sumCounters();
  /// The exclusive sums of the values over the threads.
  Values sumsBefore(Values values);
  /// Notes why accesses are narrow; returns the grid.
  GpuShape finish();

  const SortKernel &sort;
  const RadixShape &shape;
  const RadixPass &pass;
  TileKernel &kernel;
  mlir::Value line, part, counters, shiftBy;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPURADIX_H
