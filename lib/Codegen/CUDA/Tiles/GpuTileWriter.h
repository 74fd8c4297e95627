//===- GpuTileWriter.h - Products of tiles ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp computes 16 rows of a product. Its results are fragments of 16 rows by 8 columns, with the
// register layout of mma.sync.m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//
//   lane l, g = l / 4, t = l % 4:   (g, 2t)   (g, 2t + 1)   (g + 8, 2t)   (g + 8, 2t + 1)
//
// Products of f32 can have the same layout, so that both share the code of the consumers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H
#define TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H

#include "../Emit/GpuEmitState.h"
#include "../Emit/GpuIndexWriter.h"
#include "../Emit/GpuLaunchBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tessera::codegen {

/// Rows of a matrix in shared memory, `pitch` elements apart. `depth` is that of the operand,
/// rounded up to a multiple of a product's depth and padded with zeros.
struct SharedTile {
  mlir::Value memory;
  mlir::Type element;
  int64_t rows = 0, depth = 0, pitch = 0;
  mlir::Value start = {}; ///< its first element in `memory`; none: 0
  /// Bytes of a row in the swizzled layout of warpgroups' products, 128, 64 or 32; 0: another
  /// layout. A tile of longer rows is a sequence of tiles of such rows. `pitch` is `depth`.
  int64_t swizzle = 0;
};

/// A lane's part of 16 rows by 8 columns of a product.
using Fragment = std::array<mlir::Value, 4>;
using Fragments = llvm::SmallVector<Fragment>;

/// The parts of a sum of `steps` by `blocks` blocks: two blocks for each multiprocessor of an H100
/// if there would be less than one. A part has `fewest` steps: less would be bound by memory
/// latency.
int64_t partsOfSum(int64_t blocks, int64_t steps, int64_t fewest);

/// Emits launches whose blocks multiply tiles in shared memory.
class TileWriter : public IndexWriter {
public:
  TileWriter(GpuLaunchBuilder &launch, GpuLaunchInfo &info);

  /// Of a product: rows per warp, columns of a fragment, depth of one multiplication of 16-bit
  /// floats, which is 32 bytes of a row. That of TF32 is as many bytes.
  static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16, kWideDepth = 8;

  // Arithmetic.
  mlir::Value real(double value);
  mlir::Value minus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value least(mlir::Value a, mlir::Value b);
  mlir::Value greatest(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// A loop over `begin`, `begin + step`, … below `end`, with loop-carried values.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  void onlyIf(mlir::Value condition, llvm::function_ref<void()> body);
  /// The value of another lane of the warp, all of which execute this: `operand` lanes before this
  /// one (`up`; the own value if there is none), or lane `operand` (`idx`).
  mlir::Value shuffle(mlir::Value value, int64_t operand, mlir::gpu::ShuffleMode mode);

  /// Calls `body` with the index of each thread below `count`; returns the grid.
  GpuShape forEach(int64_t count, llvm::function_ref<void(mlir::Value)> body);

  // Memory.
  /// A vector, or a scalar if the width is 1.
  mlir::Value load(mlir::Value memory, mlir::Value offset, mlir::Type element, int64_t width);
  void put(mlir::Value value, mlir::Value memory, mlir::Value offset);
  /// Copies `width` elements to shared memory without registers, or zeros if `inside` (if any) is
  /// false. The copies since the previous `commitCopies` are a group; `waitForCopies` waits for the
  /// thread's groups, not for those of other threads.
  void copyAsync(mlir::Value from, mlir::Value offset, mlir::Value to, mlir::Value toOffset,
                 int64_t width, mlir::Value inside);
  void commitCopies();
  void waitForCopies();
  /// A sum of f32 as it is stored at `offset`: added to what is there if it accumulates, and
  /// rounded to the type of `memory`.
  mlir::Value rounded(mlir::Value sum, mlir::Value memory, mlir::Value offset, bool accumulates);
  /// Loads a vector from a row of a tile.
  mlir::Value loadVector(const SharedTile &tile, mlir::Value row, mlir::Value column,
                         int64_t width);
  /// Adds up the vectors at `first` of parts with `total` elements each, in order.
  mlir::Value sumOfParts(mlir::Value memory, mlir::Value first, int64_t total, int64_t parts,
                         mlir::Type element, int64_t width);
  /// The place of an element of a tile in its memory.
  mlir::Value placeOf(const SharedTile &tile, mlir::Value row, mlir::Value column);
  void barrier();
  /// Orders the accesses of the lanes of a warp to memory; all of them execute it.
  void warpBarrier();
  /// The lanes of the warp for which `condition` is true, as the bits of a word.
  mlir::Value ballot(mlir::Value condition);
  /// `note` records why an access is narrow; `count` adds the bytes of a tensor to those that the
  /// launch moves.
  void note(mlir::Value root, bool store, int64_t bytes, llvm::StringRef why);
  void count(mlir::Value root, bool store, int64_t times = 1);

  // Tensor cores.
  /// Packs two elements into a word, the register type of tensor cores.
  mlir::Value toWord(mlir::Value pair);
  /// Loads four matrices of eight rows of 16 bytes; each lane provides the address of a row.
  llvm::SmallVector<mlir::Value> matrices(const SharedTile &tile, mlir::Value row,
                                          mlir::Value column, bool transposed);
  /// Rounds an f32 to TF32, in a word.
  mlir::Value toTf32(mlir::Value x);
  /// `element`: f16, bf16, or f32 for words that are TF32.
  Fragment mma(mlir::ValueRange left, mlir::ValueRange right, const Fragment &sum,
               mlir::Type element);
  // Products of warpgroups (GpuWarpgroups.h). Sums are valid after a wait.
  /// Multiplies the warpgroup's rows of `left` with every row of `right`, both swizzled, and adds
  /// `sums`, if any.
  Fragments beginScores(const SharedTile &left, const SharedTile &right,
                        llvm::ArrayRef<Fragment> sums = {});
  /// sums += weights * right, which is swizzled.
  Fragments beginSums(llvm::ArrayRef<Fragment> sums,
                      llvm::ArrayRef<llvm::SmallVector<mlir::Value>> weights,
                      const SharedTile &right);
  /// Waits for all products but the last `groups` groups.
  Fragments waitForProducts(llvm::ArrayRef<Fragment> sums, int64_t groups);
  /// Products that follow read these registers.
  Fragments fenceSums(llvm::ArrayRef<Fragment> sums);
  /// Products read what the thread has written to shared memory before.
  void fenceProxy();
  Fragments zeros(int64_t columns);
  /// The lane's rows and columns in a fragment: `row` from the warp's first, 0 or 1.
  mlir::Value rowOf(unsigned which);
  mlir::Value columnOf(size_t fragment, unsigned which);

  GpuLaunchBuilder &launch;
  GpuLaunchInfo &info;

  /// Reads the thread's index again, for the code after a loop (`readIndicesAgain`).
  void readThreadAgain();

protected:
  /// The descriptor of a swizzled tile from its row `row` on. `transposed`: its rows are summed.
  mlir::Value descriptor(const SharedTile &tile, mlir::Value row, bool transposed);
  /// Computes the lane's place from the index of the thread.
  void useThread(mlir::Value thread);

  mlir::Value lane, warp, group, quad; ///< of the thread; its row and columns in a fragment
};

inline llvm::SmallVector<mlir::Value> flatten(llvm::ArrayRef<Fragment> fragments) {
  llvm::SmallVector<mlir::Value> result;
  for (const Fragment &fragment : fragments)
    result.append(fragment.begin(), fragment.end());
  return result;
}
inline Fragments unflatten(mlir::ValueRange values) {
  Fragments result;
  for (size_t i = 0; i + 4 <= values.size(); i += 4)
    result.push_back({values[i], values[i + 1], values[i + 2], values[i + 3]});
  return result;
}

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUTILEWRITER_H
