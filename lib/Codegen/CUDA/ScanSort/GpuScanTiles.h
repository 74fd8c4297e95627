//===- GpuScanTiles.h - Scan lines in chunks --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUSCANTILES_H
#define TESSERA_CODEGEN_CUDA_GPUSCANTILES_H

#include "../../Kernels/LowerExt.h"
#include "../Tiles/GpuTileWriter.h"
#include "GpuScan.h"

namespace tessera::codegen {

/// The division of a scan among blocks and threads. A block walks over chunks of its lines; of a
/// chunk, a thread holds `rounds` times `lanes` elements:
///
///   position in a line = chunk + ((unit * rounds + round) * team + member) * lanes + lane
struct ScanShape {
  ScanShape(const Lines &lines, llvm::ArrayRef<mlir::Type> elements);

  Lines lines;
  int64_t lanes = 1;  ///< consecutive elements of an access
  int64_t rounds = 1; ///< accesses of a thread to a chunk
  int64_t team = 1;   ///< adjacent lanes of a warp that share a line
  int64_t units = 1;  ///< teams of a line
  int64_t linesOfBlock = 1;
  int64_t parts = 1; ///< of a line, in blocks of their own
  int64_t chunksOfPart = 1;
  std::string narrow; ///< why accesses have less than 128 bits; empty: they do not

  int64_t numLines() const { return lines.outer * lines.inner; }
  int64_t ofUnit() const { return lanes * rounds * team; }
  int64_t chunk() const { return ofUnit() * units; }
  int64_t wholeChunks() const { return lines.extent / chunk(); }
  bool hasRest() const { return lines.extent % chunk() != 0; }
  int64_t chunks() const { return wholeChunks() + (hasRest() ? 1 : 0); }
  int64_t threads() const;
  /// The blocks of `count` parts of every line.
  int64_t blocks(int64_t count) const;
};

/// Emits one launch of a scan.
class ScanTiles : TileWriter {
public:
  using Values = llvm::SmallVector<mlir::Value>; ///< one for each tensor
  /// How lines are read and written.
  struct Lists {
    Values inputs, results; ///< roots; null for results that nobody reads
    bool reverse = false;
    mlir::ArrayAttr identity = {}; ///< of an exclusive scan
  };

  /// `combiner`: the body of an ext.scan.
  ScanTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, mlir::Block &combiner,
            const ScanShape &shape, const Lists &tensors);

  /// Scans all lines. If they have parts, `totals` has what precedes each part but the first.
  GpuShape scan(mlir::ValueRange totals);
  /// Combines the elements of each part but the last to an element of `totals`.
  GpuShape reduce(mlir::ValueRange totals);

private:
  /// Elements that may be missing: none without values; those of all threads without a condition.
  struct Optional {
    Values values;
    mlir::Value exists = {};
  };

  Values combine(mlir::ValueRange before, mlir::ValueRange behind);
  Values choose(mlir::Value condition, mlir::ValueRange a, mlir::ValueRange b);
  Optional combine(const Optional &before, const Optional &behind);
  Values shuffled(mlir::ValueRange values, int64_t operand, mlir::gpu::ShuffleMode mode);
  mlir::Value isAtLeast(mlir::Value value, int64_t bound);

  /// Finds the thread's place; blocks count `parts` of each line.
  void place(int64_t parts);
  /// The place in memory of the elements of a round, and whether they are inside of the line.
  mlir::Value offsetOf(mlir::Value chunk, int64_t round, bool isWhole);
  mlir::Value positionOf(mlir::Value chunk, int64_t round);
  /// The elements of a chunk, one list for each round, or one of all rounds if a thread has a line.
  std::vector<std::vector<Values>> read(mlir::Value chunk, bool isWhole);
  void write(mlir::Value chunk, bool isWhole, llvm::ArrayRef<std::vector<Values>> runs);
  /// Scans the chunk, of which `before` precedes; returns what precedes the next one.
  Optional scanChunk(mlir::Value chunk, bool isWhole, const Optional &before, bool writes,
                     bool isLast);
  /// What precedes the thread's unit, and the total of all units.
  std::pair<Optional, Optional> overUnits(const Values &total, const Optional &before);
  /// Walks over the chunks from `begin` to `end` of a part, all of them whole.
  Values walk(mlir::Value begin, mlir::Value end, mlir::ValueRange before, mlir::Value first,
              bool writes);
  Values zeros();

  mlir::Block &combiner;
  ScanShape shape;
  Lists tensors;
  llvm::SmallVector<mlir::Type> elements;
  mlir::Value line, part, member, unit, which, base, isInLine;
  Values unitTotals; ///< in shared memory
  mlir::Value half;  ///< the half of them that this chunk uses
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUSCANTILES_H
