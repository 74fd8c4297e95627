//===- GpuContractionTiles.h - Tiles of a contraction -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCONTRACTIONTILES_H
#define TESSERA_CODEGEN_CUDA_GPUCONTRACTIONTILES_H

#include "GpuContraction.h"

namespace tessera::codegen {

/// An operand's tile in one step: `lines` rows or columns of the product, `depth` summed elements.
struct OperandTile {
  unsigned operand = 0; ///< 0: A, 1: B
  const LoopGroup *group = nullptr;
  int64_t lines = 0, depth = 0;
  int64_t width = 1;       ///< elements that a thread loads at once
  bool alongSums = false;  ///< these elements are adjacent in the sum, not in the lines
  bool linesFirst = false; ///< the tile is [line][depth], otherwise [depth][line]
  SharedTile shared;
};

/// The partition of a contraction into blocks.
struct ContractionShape {
  int64_t rows = 0, columns = 0, depth = 0; ///< of a block's tile
  int64_t rowTiles = 1, columnTiles = 1, batches = 1;
  int64_t parts = 1;     ///< of the sum, each in a block of its own
  int64_t partDepth = 0; ///< a multiple of depth
  int64_t threads = 256;
  int64_t blocks() const { return rowTiles * columnTiles * batches * parts; }
};

/// The offset of a group's index in A, B or C.
mlir::Value offsetOf(TileWriter &t, const LoopGroup &group, unsigned operand, mlir::Value index);

/// Emits the launch that computes the tiles of a contraction and stores them to its result or to
/// parts.
class ContractionTiles : public TileWriter {
public:
  /// `roots`: A and B of `loops`, and the output buffer: C, or the parts in order.
  ContractionTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const ContractionLoops &loops,
                   const ContractionShape &shape, std::array<mlir::Value, 3> roots,
                   bool accumulates);
  void emit();

  static bool usesMma(mlir::Type element) { return !element.isF32(); }
  static ContractionShape shapeOf(const ContractionLoops &loops, mlir::Type element);
  /// The largest access width, `most` halved as often as needed, at which vectors along the
  /// innermost loop of `group` are contiguous and aligned.
  static int64_t widthOf(const ContractionLoops &loops, const LoopGroup &group, unsigned operand,
                         int64_t most);

private:
  void describe(OperandTile &tile, unsigned operand);
  llvm::SmallVector<mlir::Value> fetch(const OperandTile &tile, mlir::Value firstLine,
                                       mlir::Value firstSum);
  void put(const OperandTile &tile, mlir::ValueRange fetched);
  using TileWriter::put;

  // A thread's sums: fragments, or vectors of 16 x 16 threads.
  llvm::SmallVector<mlir::Value> zeroSums();
  using TileWriter::multiply;
  llvm::SmallVector<mlir::Value> multiply(mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> multiplyByMma(mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> multiplyByFma(mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> leftWords(int64_t block, int64_t step);
  llvm::SmallVector<mlir::Value> rightWords(int64_t fragment, int64_t step);
  void store(mlir::ValueRange sums);
  void storeRow(mlir::Value row, llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> columns);
  mlir::Value resultOffset(const LoopGroup &group, mlir::Value index);

  const ContractionLoops &loops;
  const ContractionShape &shape;
  std::array<mlir::Value, 3> roots;
  bool accumulates;
  mlir::Type element;
  OperandTile left, right;
  std::array<mlir::Value, 3> bases; ///< offsets of the block's batch in A, B and C
  mlir::Value part, firstRow, firstColumn;
  int64_t rowBlocks = 1;                    ///< blocks of 16 rows per warp
  int64_t storeWidth = 1;                   ///< elements
  int64_t lineVector = 1, columnVector = 1; ///< of f32: elements of a thread's vectors
};

/// Emits C (+)= the sum of the parts, with some elements per thread.
GpuShape emitPartSums(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const ContractionLoops &loops,
                      const ContractionShape &shape, mlir::Value parts, mlir::Value result,
                      bool accumulates);
/// Emits the zeroing of a buffer.
GpuShape emitZeros(GpuLaunchBuilder &launch, GpuLaunchInfo &info, mlir::Value result);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCONTRACTIONTILES_H
