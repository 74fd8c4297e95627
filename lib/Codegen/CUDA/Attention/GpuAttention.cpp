//===- GpuAttention.cpp - Attention as one launch -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuAttention.h"
#include "../Tiles/GpuTileKernel.h"

#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

using namespace mlir;

namespace tessera::codegen {

std::optional<AttentionKernel> matchAttention(func::FuncOp kernel) {
  AttentionKernel match{nullptr, {}, {}};
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<ext::AttentionOp, ext::AttentionBackwardOp>(op) && !match.op)
      match.op = &op;
    else if (!isa<linalg::CopyOp, arith::ConstantOp>(op)) // constants of the region are allowed
      return std::nullopt;
  }
  if (!match.op || !ext::isFusedOnGpu(match.op))
    return std::nullopt;
  for (Value operand : match.op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument)
      return std::nullopt;
    match.operands.push_back(argument.getArgNumber());
  }
  // A copy stores each result to its destination.
  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  Operation *ret = kernel.getBody().front().getTerminator();
  match.results.assign(match.op->getNumResults(), 0);
  for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
    auto copy = value.getDefiningOp<linalg::CopyOp>();
    if (!copy || copy.getInputs()[0].getDefiningOp() != match.op ||
        copy.getOutputs()[0] != kernel.getArgument(reads + i))
      return std::nullopt;
    match.results[cast<OpResult>(copy.getInputs()[0]).getResultNumber()] = reads + i;
  }
  if (llvm::is_contained(match.results, 0u))
    return std::nullopt;
  return match;
}

/// Products of longer rows reload their left operand, which would take the registers of the sums.
static constexpr int64_t kMostKept = 64;

/// Whether warps of 32 rows of 16-bit floats, which load half as much from shared memory for the
/// same products, leave no multiprocessor of an H100 without a block.
static bool hasManyRows(const AttentionTiles &tiles, int64_t rows) {
  constexpr int64_t kMultiprocessors = 132, kRowsOfBlock = 128;
  const ext::AttentionDomain &domain = tiles.parts.domain;
  int64_t outer = domain.sizeOf(domain.batch) * domain.sizeOf(tiles.otherQueryLoops());
  return rows > kRowsOfBlock / 2 &&
         outer * llvm::divideCeil(rows, kRowsOfBlock) >= kMultiprocessors;
}

/// The tile of a forward launch whose products are those of warpgroups, which need 64 rows and
/// copied tiles; none where they are not used.
static std::optional<TileSizes> warpgroupTiles(const AttentionTiles &tiles, int64_t rows) {
  constexpr int64_t kFewestRows = 33, kColumns = 64, kManyColumns = 128, kWide = 64;
  if (!tiles.hasWarpgroups || tiles.element().isF32() || rows < kFewestRows || !tiles.canCopy(1) ||
      !tiles.canCopy(2))
    return std::nullopt;
  const ext::AttentionDomain &domain = tiles.parts.domain;
  int64_t depth = llvm::alignTo(domain.sizeOf(domain.features), AttentionTiles::kDepth);
  int64_t width = llvm::alignTo(domain.sizeOf(domain.outputFeatures), AttentionTiles::kDepth);
  TileSizes sizes{hasManyRows(tiles, rows) ? 8 : 4, kColumns};
  sizes.warpgroups = true;
  // Other regions take registers of their own.
  bool isPlain = tiles.formOf(tiles.parts.score()).isPlain && !tiles.parts.weights();
  if (isPlain && std::max(depth, width) <= kMostKept && sizes.warps == 8)
    sizes.resident = 2;
  // One block takes the multiprocessor anyway.
  if (isPlain && depth > kMostKept && depth % kWide == 0 && width == depth &&
      tiles.extent(domain.key) % kManyColumns == 0)
    sizes.columns = kManyColumns;
  int64_t padded = std::max(depth, width) + kAccessBytes;
  int64_t bytes =
      bytesOf(tiles.element()) * (sizes.rows() * padded + 2 * sizes.columns * (depth + width));
  if (bytes + 3 * AttentionTiles::kSwizzleAlignment > tiles.sharedLimit)
    return std::nullopt;
  return sizes;
}

TileSizes forwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth) {
  if (std::optional<TileSizes> sizes = warpgroupTiles(tiles, rows))
    return *sizes;
  TileSizes sizes{4, depth <= kMostKept && !tiles.element().isF32() ? 64 : 32};
  sizes.keepsLeft = depth <= kMostKept;
  if (hasManyRows(tiles, rows)) {
    sizes.rowBlocks = 2;
    // Long rows of f32 in larger tiles would leave no shared memory for a second block.
    sizes.columns = depth > kMostKept && tiles.element().isF32() ? 16 : 32;
  }
  while (sizes.warps > 1 && sizes.rows() / 2 >= rows)
    sizes.warps /= 2;
  return sizes;
}

/// Shared memory of a launch of gradients: two tiles of rows, and two of columns that are copied
/// while two others are read. Rows are padded by 16 bytes.
static int64_t gradientBytes(const AttentionTiles &tiles, const TileSizes &sizes, int64_t depth) {
  return (2 * sizes.rows() + 4 * sizes.columns) * (depth * bytesOf(tiles.element()) + 16);
}

/// The same for the derivatives.
static std::optional<TileSizes> warpgroupGradients(const AttentionTiles &tiles, int64_t rows,
                                                   bool byKey) {
  constexpr int64_t kFewestRows = 33, kColumns = 64, kFewColumns = 32;
  constexpr unsigned kQuery = 0, kKey = 1, kValue = 2, kGradient = 3;
  bool copies = byKey ? tiles.canCopy(kQuery) && tiles.canCopy(kGradient)
                      : tiles.canCopy(kKey) && tiles.canCopy(kValue);
  if (!tiles.hasWarpgroups || tiles.element().isF32() || rows < kFewestRows || !copies)
    return std::nullopt;
  const ext::AttentionDomain &domain = tiles.parts.domain;
  int64_t depth = llvm::alignTo(domain.sizeOf(domain.features), AttentionTiles::kDepth);
  int64_t width = llvm::alignTo(domain.sizeOf(domain.outputFeatures), AttentionTiles::kDepth);
  TileSizes sizes{hasManyRows(tiles, rows) ? 8 : 4, kColumns};
  // Two sums of long rows take half of the registers.
  if (byKey && std::max(depth, width) > kMostKept)
    sizes.columns = kFewColumns;
  sizes.warpgroups = true;
  int64_t bytes = bytesOf(tiles.element()) * (sizes.rows() * (depth + width + 2 * kAccessBytes) +
                                              2 * sizes.columns * (depth + width));
  int64_t perColumn = 4 * bytesOf(Float32Type::get(tiles.parts.op->getContext()));
  bytes += byKey ? sizes.columns * perColumn : 0;
  if (bytes + 4 * AttentionTiles::kSwizzleAlignment > tiles.sharedLimit)
    return std::nullopt;
  return sizes;
}

TileSizes backwardTiles(const AttentionTiles &tiles, int64_t rows, int64_t depth, bool byKey) {
  if (std::optional<TileSizes> sizes = warpgroupGradients(tiles, rows, byKey))
    return *sizes;
  TileSizes sizes{4, 32};
  // Long rows of f32: four tiles of 64 need more shared memory than some GPUs have, and scores of
  // 32 columns need too many registers.
  if (depth > kMostKept && tiles.element().isF32())
    sizes = {2, 16};
  sizes.keepsLeft = depth <= kMostKept;
  if (!tiles.element().isF32() && hasManyRows(tiles, rows) && (depth <= kMostKept || !byKey)) {
    sizes.rowBlocks = 2;
    sizes.keepsLeft &= !byKey; // the sums take the registers
    if (gradientBytes(tiles, sizes, depth) > tiles.sharedLimit)
      sizes.rowBlocks = 1;
  } else if (!tiles.element().isF32() && byKey && depth > kMostKept &&
             tiles.extent(tiles.queryLoop()) % sizes.columns == 0) {
    // Scores of 16 columns, without checks of bounds, leave registers for the left operands.
    sizes.columns = 16;
    sizes.steps = 2;
    sizes.keepsLeft = true;
  }
  while (sizes.warps > 1 && sizes.rows() / 2 >= rows)
    sizes.warps /= 2;
  return sizes;
}

std::pair<Value, Value> keysOf(AttentionTiles &t, KeyRange range, Value first, int64_t count,
                               int64_t tile) {
  Value keys = t.constant(t.extent(t.parts.domain.key)), zero = t.constant(0);
  Value begin = t.least(t.greatest(t.add(first, range.first), zero), keys);
  Value last = t.least(t.add(first, count), t.constant(t.extent(t.queryLoop())));
  return {t.multiply(t.divide(begin, tile), tile), t.least(t.add(last, range.last), keys)};
}

std::pair<Value, Value> queriesOf(AttentionTiles &t, KeyRange range, Value first, int64_t count,
                                  int64_t tile) {
  Value queries = t.constant(t.extent(t.queryLoop())), zero = t.constant(0);
  Value begin = t.least(t.greatest(t.add(first, -range.last), zero), queries);
  Value last = t.least(t.add(first, count), t.constant(t.extent(t.parts.domain.key)));
  return {t.multiply(t.divide(begin, tile), tile), t.least(t.add(last, -range.first), queries)};
}

std::pair<Value, Value> blockOf(AttentionTiles &t, int64_t numTiles, int64_t others, bool differ) {
  Value block = t.launch.blockIndex();
  if (differ)
    return {t.remainder(block, others), t.divide(block, others)};
  return {t.divide(block, numTiles), t.remainder(block, numTiles)};
}

std::optional<KeyRange> visibleKeys(const AttentionTiles &tiles) {
  std::optional<unsigned> query = tiles.queryLoop();
  std::optional<ext::KeyBand> band = query ? ext::visibleKeysOf(tiles.parts, *query) : std::nullopt;
  bool seesAll = band && band->first <= 1 - tiles.extent(query) &&
                 band->last >= tiles.extent(tiles.parts.domain.key) - 1;
  if (!band || seesAll)
    return std::nullopt;
  return KeyRange{band->first, band->last};
}

/// Adds the launches of an attention or of its derivative, each by a call of `launchOf`.
static void addLaunches(const AttentionKernel &attention, TileKernel &tileKernel,
                        function_ref<void(function_ref<GpuShape(AttentionTiles &)>)> launchOf) {
  SmallVector<Value> results = tileKernel.roots(attention.results);
  if (isa<ext::AttentionOp>(attention.op)) {
    KeySplit split;
    Value partial;
    launchOf([&](AttentionTiles &tiles) {
      split = splitKeys(tiles);
      if (split.parts > 1)
        partial = tileKernel.workspace(Float32Type::get(attention.op->getContext()),
                                       elementsOfParts(tiles, split));
      return emitAttentionForward(tiles, results, split, partial);
    });
    if (partial)
      launchOf(
          [&](AttentionTiles &tiles) { return emitCombination(tiles, results, split, partial); });
    return;
  }
  int64_t numParts = 0; // of the keys, if one launch computes all gradients
  Value partial = results[0];
  launchOf([&](AttentionTiles &tiles) {
    if (!hasJointGradients(tiles))
      return emitQueryGradient(tiles, results[0]);
    numParts = jointParts(tiles);
    auto type = cast<MemRefType>(results[0].getType());
    if (numParts > 1)
      partial = tileKernel.workspace(type.getElementType(), numParts * type.getNumElements());
    return emitJointGradients(tiles, results, partial, numParts);
  });
  if (numParts > 1)
    launchOf(
        [&](AttentionTiles &tiles) { return emitQuerySum(tiles, results[0], partial, numParts); });
  if (numParts > 0)
    return;
  launchOf([&](AttentionTiles &tiles) { return emitKeyGradients(tiles, results[1], results[2]); });
}

void emitAttention(func::FuncOp kernel, const AttentionKernel &attention, ModuleOp launches,
                   StringRef symbol, ArrayRef<bool> mayAlias, const GpuLaunchLimits &limits,
                   runtime::GpuKernel &result, GpuKernelInfo &info) {
  TileKernel tileKernel(kernel, launches, symbol, mayAlias, result, info);
  ext::AttentionParts parts = ext::partsOf(attention.op);
  auto launchOf = [&](function_ref<GpuShape(AttentionTiles &)> emit) {
    tileKernel.launch(attention.op->getLoc(), GpuScheme::attention,
                      [&](GpuLaunchBuilder &builder, GpuLaunchInfo &launchInfo) {
                        AttentionTiles tiles(builder, parts, tileKernel.roots(attention.operands),
                                             launchInfo, limits);
                        return emit(tiles);
                      });
  };
  if (getElementTypeOrSelf(attention.op->getOperand(0).getType()).isF32()) {
    tileKernel.setPrecision(runtime::GpuPrecision::highest);
    addLaunches(attention, tileKernel, launchOf);
    tileKernel.setPrecision(runtime::GpuPrecision::high);
  }
  addLaunches(attention, tileKernel, launchOf);
}

} // namespace tessera::codegen
