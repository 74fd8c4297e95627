//===- GpuAttentionTiles.h - Tiles of an attention --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp computes 16 rows of a product. Its results are fragments of 16 rows by 8 columns, which
// lie in registers as mma.sync.m16n8 leaves them (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//
//   lane l, g = l / 4, t = l % 4:   (g, 2t)   (g, 2t + 1)   (g + 8, 2t)   (g + 8, 2t + 1)
//
// Products of f32 have the same layout, so that what follows a product is written once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H
#define TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H

#include "GpuEmitter.h"
#include "GpuLaunchBuilder.h"
#include "tessera/Dialect/Ext/IR/AttentionDomain.h"
#include "tessera/Dialect/Ext/IR/ConvertFloat.h"

namespace tessera::codegen {

/// Rows of a matrix in shared memory, `pitch` elements apart. `depth` is that of the operand,
/// rounded up to what a product takes at once; what is added is zero.
struct SharedTile {
  mlir::Value memory;
  mlir::Type element;
  int64_t rows = 0, depth = 0, pitch = 0;
};

/// 16 rows by 8 columns of a product: what a lane has of it.
using Fragment = std::array<mlir::Value, 4>;
using Fragments = llvm::SmallVector<Fragment>;
/// What a lane has of the left operand of one step of a product.
using LeftFragments = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

/// What the launches of an attention are written with.
class AttentionTiles {
public:
  /// `roots`: the kernel's arguments by operand of the op.
  AttentionTiles(GpuLaunchBuilder &launch, const ext::AttentionParts &parts,
                 llvm::ArrayRef<mlir::Value> roots, GpuLaunchInfo &info);

  /// Of a product: rows that a warp computes, columns of a fragment, products that are added at
  /// once.
  static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16;

  /// Says how many warps a block has.
  void setWarps(int64_t count);
  int64_t warps() const { return numWarps; }
  /// The loop over the positions of queries: the longest of those over queries; none where the op
  /// has no such loop.
  std::optional<unsigned> queryLoop() const { return query; }
  llvm::SmallVector<unsigned> otherQueryLoops() const;
  int64_t extent(std::optional<unsigned> loop) const {
    return loop ? parts.domain.extents[*loop] : 1;
  }
  /// Fixes the index of a loop for what follows.
  void fix(unsigned loop, mlir::Value index) { fixed[loop] = index; }
  /// Fixes loops by digits of `number`, the last loop fastest.
  void fixDigits(llvm::ArrayRef<unsigned> loops, mlir::Value number);

  // Tiles.
  SharedTile makeTile(mlir::Type element, int64_t rows, int64_t depth);
  /// Loads the rows of an operand from index `begin` of `loop` on into registers; then from there
  /// into a tile. What lies beyond the operand is zero.
  llvm::SmallVector<mlir::Value> fetch(const SharedTile &tile, unsigned operand,
                                       std::optional<unsigned> loop, mlir::Value begin);
  void put(const SharedTile &tile, mlir::ValueRange fetched);
  /// Stores fragments as rows of `root`, by way of a tile that nobody needs any more (or of
  /// another, where its rows do not fit).
  void store(SharedTile tile, llvm::ArrayRef<Fragment> fragments, mlir::Value root,
             mlir::AffineMap map, std::optional<unsigned> loop, mlir::Value begin);
  void barrier();

  // Products.
  bool usesMma() const { return !element().isF32(); }
  mlir::Type element() const;
  /// The warp's rows of a tile, as the left operand of products with several tiles; nothing where a
  /// product loads them by itself.
  LeftFragments leftOf(const SharedTile &tile);
  /// The warp's rows of `left`, each times every row of `right`.
  Fragments multiply(const SharedTile &left, const LeftFragments &kept, const SharedTile &right);
  /// sums += weights * right; `scratch` is a tile of f32 that products of f32 go through.
  void accumulate(Fragments &sums, llvm::ArrayRef<Fragment> weights, const SharedTile &right,
                  const SharedTile &scratch);
  Fragments zeros(int64_t columns);
  /// Rows and columns of a fragment that the lane has: `row` from the warp's first, 0 or 1.
  mlir::Value rowOf(unsigned which);
  mlir::Value columnOf(size_t fragment, unsigned which);

  // Scores.
  /// A region of the op on one element.
  mlir::Value evaluate(mlir::Region &region, mlir::Value product, mlir::Value queryIndex,
                       mlir::Value keyIndex, mlir::Value derivative = {});
  mlir::Value convert(mlir::Value x, mlir::Type type) { return ext::convertFloat(b, loc, x, type); }
  /// Combines a value of all lanes that have the same rows.
  mlir::Value acrossColumns(mlir::Value x,
                            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> body);
  mlir::Value exponential(mlir::Value x);

  // Memory, by elements.
  mlir::Value offsetOf(mlir::AffineMap map, mlir::Value root, std::optional<unsigned> loop,
                       mlir::Value index, bool clamp = true);
  mlir::Value loadElement(unsigned operand, std::optional<unsigned> loop, mlir::Value index);
  void note(mlir::Value root, bool store, int64_t bytes, llvm::StringRef why);
  void count(mlir::Value root, bool store, int64_t times = 1);

  // Arithmetic.
  mlir::Value constant(int64_t value);
  mlir::Value real(double value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value multiply(mlir::Value a, int64_t b);
  mlir::Value divide(mlir::Value a, int64_t b);
  mlir::Value remainder(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value least(mlir::Value a, mlir::Value b);
  mlir::Value greatest(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// A loop of `begin`, `begin + step`, … below `end`, with what it carries.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  GpuLaunchBuilder &launch;
  mlir::OpBuilder &b;
  mlir::Location loc;
  const ext::AttentionParts &parts;
  llvm::SmallVector<mlir::Value> roots;
  GpuLaunchInfo &info;

private:
  /// Elements that a thread accesses at once in rows of a tensor.
  int64_t widthOf(mlir::AffineMap map, mlir::Value root, std::optional<unsigned> loop, bool store);
  mlir::Value loadVector(const SharedTile &tile, mlir::Value row, mlir::Value column,
                         int64_t width);
  llvm::SmallVector<mlir::Value> matrices(const SharedTile &tile, mlir::Value row,
                                          mlir::Value column, bool transposed);
  llvm::SmallVector<mlir::Value> leftOf(const SharedTile &tile, int64_t step);
  Fragments multiplyByMma(const SharedTile &left, const LeftFragments &kept,
                          const SharedTile &right);
  void accumulateByMma(Fragments &sums, llvm::ArrayRef<Fragment> weights, const SharedTile &right);
  Fragment mma(mlir::ValueRange left, mlir::ValueRange right, const Fragment &sum);

  std::optional<unsigned> query;
  llvm::SmallVector<mlir::Value> fixed; ///< by loop
  int64_t numWarps = 0;
  mlir::Value lane, warp, group, quad; ///< of the thread; its row and its columns in a fragment
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

#endif // TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H
