//===- GpuAttentionTiles.h - Tiles of an attention --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H
#define TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H

#include "../GpuLimits.h"
#include "../Tiles/GpuTileWriter.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/ConvertFloat.h"

namespace tessera::codegen {

/// A lane's fragments of the left operand, of each step of a product, the blocks of 16 rows of one
/// step after another.
using LeftFragments = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

/// The stride of a loop in elements; 0 if the tensor lacks the loop.
int64_t strideOf(mlir::AffineMap map, mlir::Value root, unsigned loop);

/// Emits the building blocks of attention launches.
class AttentionTiles : public TileWriter {
public:
  /// `roots`: the kernel's arguments by operand of the op. `info.tf32`: products of f32 round
  /// their operands, for tensor cores.
  AttentionTiles(GpuLaunchBuilder &launch, const ext::AttentionParts &parts,
                 llvm::ArrayRef<mlir::Value> roots, GpuLaunchInfo &info,
                 const GpuLaunchLimits &limits);

  /// Sets the number of warps per block, and of 16 rows per warp: the fragments of a product are
  /// those of the first 16 rows, then of the next.
  void setWarps(int64_t count, int64_t rowBlocks = 1);
  int64_t warps() const { return numWarps; }
  int64_t rowBlocks() const { return numRowBlocks; }
  /// Of a block, and of a lane.
  int64_t rows() const { return numWarps * numRowBlocks * kRows; }
  unsigned laneRows() const { return 2 * numRowBlocks; }
  mlir::Value rowOf(unsigned which);
  /// The lane's row of element `i` of a fragment among `count`, and the number of its columns.
  unsigned laneRowOf(size_t number, unsigned i, size_t count) const {
    return 2 * (number / (count / numRowBlocks)) + i / 2;
  }
  size_t acrossOf(size_t number, size_t count) const { return number % (count / numRowBlocks); }
  /// The loop over the positions of queries: the longest of those over queries; none if the op has
  /// no such loop.
  std::optional<unsigned> queryLoop() const { return query; }
  llvm::SmallVector<unsigned> otherQueryLoops() const;
  int64_t extent(std::optional<unsigned> loop) const {
    return loop ? parts.domain.extents[*loop] : 1;
  }
  /// Fixes the index of a loop for the code that follows.
  void fix(unsigned loop, mlir::Value index) { fixed[loop] = index; }
  /// Fixes the indices of loops as the digits of `number`, the last loop fastest.
  void fixDigits(llvm::ArrayRef<unsigned> loops, mlir::Value number);

  // Tiles.
  SharedTile makeTile(mlir::Type element, int64_t rows, int64_t depth, int64_t count = 1);
  /// The same in the layout of warpgroups' products, if those are used.
  SharedTile makeOperand(int64_t rows, int64_t depth, int64_t count = 1);
  /// Some rows of a tile.
  SharedTile rowsOf(SharedTile tile, int64_t first, int64_t count);
  /// `fetch` loads the rows of an operand from index `begin` of `loop` on into registers; `put`
  /// stores these into a tile. Elements beyond the operand are zero.
  llvm::SmallVector<mlir::Value> fetch(const SharedTile &tile, unsigned operand,
                                       std::optional<unsigned> loop, mlir::Value begin);
  using TileWriter::put;
  void put(const SharedTile &tile, mlir::ValueRange fetched);
  /// An operand whose rows a loop walks, a tile at a time.
  struct Walked {
    SharedTile &tile;
    unsigned operand;
    int64_t depth;
    bool isAhead = false; ///< the tile is the next one, if `copiesTiles`
  };
  /// Makes tiles of `rows` rows for `walk`: two of each for tensor cores, which wait for memory
  /// otherwise, so that copies fill one while the other is multiplied.
  void makeWalked(llvm::ArrayRef<Walked> walked, std::optional<unsigned> loop, int64_t rows);
  bool copiesTiles() const { return copiesAhead; }
  /// Whether rows of an operand of 16-bit floats can be copied by 4 bytes or more.
  bool canCopy(unsigned operand) const;
  /// Which half of the buffers has the current tiles.
  mlir::Value half() const { return currentHalf; }
  /// Other shared memory for the tiles at a row: `stage` fills it, or `copy` begins to copy to one
  /// of two halves, if `copiesTiles`.
  struct Staging {
    llvm::function_ref<void(mlir::Value at)> stage;
    llvm::function_ref<void(mlir::Value at, mlir::Value half)> copy;
    /// Called while the first tiles are copied; returns more loop-carried values. Operands that are
    /// ahead have their first tile after `waitForCopies` and a barrier.
    llvm::function_ref<llvm::SmallVector<mlir::Value>()> begin;
  };
  /// A loop over the tiles from row `begin` to `end` of `loop`.
  llvm::SmallVector<mlir::Value>
  walk(llvm::ArrayRef<Walked> walked, std::optional<unsigned> loop, mlir::Value begin,
       mlir::Value end, mlir::ValueRange carried, const Staging &staging,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  /// Stores fragments as rows of `root` through a tile that is no longer in use (or through another
  /// one if its rows do not fit).
  void store(SharedTile tile, llvm::ArrayRef<Fragment> fragments, mlir::Value root,
             mlir::AffineMap map, std::optional<unsigned> loop, mlir::Value begin);

  // Products.
  /// Products are those of warpgroups from here on: `multiply` and `accumulate` only begin them,
  /// `finish` waits for all but the last `groups`. Without them they are complete at once.
  void useWarpgroups() { byWarpgroups = true; }
  bool usesWarpgroups() const { return byWarpgroups; }
  Fragments finish(Fragments products, int64_t groups = 0) {
    return byWarpgroups ? waitForProducts(products, groups) : products;
  }
  /// Precedes a barrier behind which products read what the thread has written.
  void publish() {
    if (byWarpgroups)
      fenceProxy();
  }
  static constexpr int64_t kSwizzleAlignment = 1024; ///< of tiles
  bool usesMma() const { return info.tf32 || !element().isF32(); }
  /// The depth of one multiplication by tensor cores.
  int64_t stepDepth() const { return element().isF32() ? kWideDepth : kDepth; }
  mlir::Type element() const;
  /// The warp's rows of a tile, as the left operand of products with several tiles; empty for FMA.
  /// A product without it loads the rows itself.
  LeftFragments leftOf(const SharedTile &tile);
  using TileWriter::multiply;
  /// Multiplies the warp's rows of `left` with every row of `right`, and adds `sums`, if any.
  Fragments multiply(const SharedTile &left, const LeftFragments &kept, const SharedTile &right,
                     Fragments sums = {});
  /// sums += weights * right; `scratch` is a tile of f32 for the weights of f32 products.
  void accumulate(Fragments &sums, llvm::ArrayRef<Fragment> weights, const SharedTile &right,
                  const SharedTile &scratch);

  // Scores.
  /// How a region is evaluated.
  struct RegionForm {
    /// 16-bit floats are computed in f32 and not rounded.
    bool inF32 = false;
    /// A multiplication by a constant that is left out: the result is that of `evaluate` times
    /// `scale`.
    mlir::Operation *factor = nullptr;
    double scale = 1;
    /// The result is the product or the derivative times `scale`, or masked: -inf or zero.
    bool isPlain = false;
  };
  const RegionForm &formOf(mlir::Region &region) const { return forms[region.getRegionNumber()]; }
  /// Evaluates a region of the op for one element.
  mlir::Value evaluate(mlir::Region &region, mlir::Value product, mlir::Value queryIndex,
                       mlir::Value keyIndex, mlir::Value derivative = {});
  /// The index of an element of a tile that begins at `first`, computed in 32 bits, which takes
  /// half of the instructions.
  mlir::Value position(mlir::Value first, mlir::Value offset);
  /// A tile of queries and keys.
  struct TilePlace {
    mlir::Value firstQuery, firstKey;
    int64_t numQueries, numKeys;
    bool checksQueries = false, checksKeys = false; ///< whether it may end beyond the operands
  };
  /// Computes `count` fragments for the elements of a tile. `body` is called twice where the launch
  /// chooses, for each tile, between code for those where all elements are inside the operands and
  /// the conditions of the mask are known, and code for others. Its argument: whether elements may
  /// be outside of the operands. Within `body` other calls do not choose again.
  Fragments forTile(const TilePlace &place, size_t count, llvm::function_ref<Fragments(bool)> body);
  /// The weight of a share of the softmax, or the derivative by the share from that by the weight.
  mlir::Value weigh(mlir::Value share, mlir::Value queryIndex, mlir::Value keyIndex);
  mlir::Value convert(mlir::Value x, mlir::Type type) { return ext::convertFloat(b, loc, x, type); }
  /// Combines a value across all lanes that have the same rows.
  mlir::Value acrossColumns(mlir::Value x,
                            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> body);
  mlir::Value exponential(mlir::Value x);
  /// 2^x.
  mlir::Value power(mlir::Value x);
  mlir::Value greater(mlir::Value x, mlir::Value y);

  /// The elements that a thread accesses at once in rows of a tensor.
  int64_t widthOf(mlir::AffineMap map, mlir::Value root, std::optional<unsigned> loop, bool store);

  // Memory, by elements.
  mlir::Value offsetOf(mlir::AffineMap map, mlir::Value root, std::optional<unsigned> loop,
                       mlir::Value index, bool clamp = true);
  mlir::Value loadElement(unsigned operand, std::optional<unsigned> loop, mlir::Value index);

  const ext::AttentionParts &parts;
  const int64_t sharedLimit; ///< bytes of a block
  const bool hasWarpgroups;
  llvm::SmallVector<mlir::Value> roots;

private:
  /// An access of a thread to the rows of an operand. `number` counts those of the block; `inside`
  /// is null or whether the operand has these elements.
  struct Chunk {
    mlir::Value number, offset, inside;
    int64_t width = 1;
  };
  llvm::SmallVector<Chunk> chunksOf(const SharedTile &tile, unsigned operand,
                                    std::optional<unsigned> loop, mlir::Value begin);
  /// Begins to copy the rows, to be waited for (`waitForCopies`).
  void copy(const SharedTile &tile, unsigned operand, std::optional<unsigned> loop,
            mlir::Value begin);
  /// Calls `body` for each of `count` chunks of a tile with its place in shared memory, if the
  /// tile has it.
  void forChunks(const SharedTile &tile, int64_t width, size_t count,
                 llvm::function_ref<void(size_t, mlir::Value)> body);
  llvm::SmallVector<mlir::Value> leftOf(const SharedTile &tile, int64_t step, int64_t block);
  Fragments multiplyByMma(const SharedTile &left, const LeftFragments &kept,
                          const SharedTile &right, Fragments sums);
  /// Matrices as operands of a product: TF32 if they are f32.
  llvm::SmallVector<mlir::Value> operandsOf(const SharedTile &tile, mlir::Value row,
                                            mlir::Value column);
  void accumulateByMma(Fragments &sums, llvm::ArrayRef<Fragment> weights, const SharedTile &right);
  /// The weights of a step, two fragments for each block of rows, as left operands.
  LeftFragments wordsOf(llvm::ArrayRef<Fragment> weights, size_t step);
  void accumulateByTf32(Fragments &sums, llvm::ArrayRef<Fragment> weights, const SharedTile &right);

  /// Stores fragments of f32 from the registers.
  void storePairs(const SharedTile &tile, llvm::ArrayRef<Fragment> fragments, mlir::Value root,
                  mlir::AffineMap map, std::optional<unsigned> loop, mlir::Value begin);
  RegionForm readForm(mlir::Region &region) const;
  /// A bound of an integer of a region, which is below 2^31; none if it may have another value.
  std::optional<int64_t> mostOf(mlir::Value value) const;
  /// Compares indices in 32 bits if these suffice: half of the instructions and registers.
  mlir::Value compare(mlir::arith::CmpIOp op, mlir::Value left, mlir::Value right);
  /// Whether the scores of a tile are inside of the operands and not masked; null if some never
  /// are, or if all always are (`isAlways`).
  mlir::Value isInner(const TilePlace &place, bool &isAlways);

  std::optional<unsigned> query;
  llvm::SmallVector<mlir::Value> fixed; ///< by loop
  llvm::SmallVector<RegionForm> forms;  ///< by region
  std::optional<ext::KnownConditions> known;
  /// In the code that `forTile` emits: for tiles where `known` holds, or for others.
  bool isDecided = false, isInnerTile = false;
  int64_t numWarps = 0, numRowBlocks = 1;
  mlir::Value currentHalf;
  bool byWarpgroups = false;
  bool copiesAhead = false; ///< walked tiles are filled by copies
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUATTENTIONTILES_H
