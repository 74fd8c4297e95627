//===- GpuSort.cpp - The launches of a sort -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line of n elements is sorted as words (SortWords.h) by 1 + log2(n / tile) launches: one sorts
// tiles in shared memory, the others merge pairs of runs between two buffers of the workspace. The
// last one reads the operands at the indices and writes the results; all merges before it are one
// function, whose sizes the first launch writes to the workspace. Several short lines are one tile
// and one launch.
//
// Long lines are sorted by digits instead (GpuRadix.cpp), if that moves fewer bytes.
//
// Of a sort with a limit k, runs have at most k elements. If k is small, tiles of such candidates
// are sorted again instead of merged, so that each launch divides their number by tile / k.
//
//===----------------------------------------------------------------------===//

#include "GpuRadix.h"
#include "GpuSortTiles.h"

using namespace mlir;

namespace tessera::codegen {

std::optional<SortKernel> matchSort(func::FuncOp kernel) {
  std::optional<SortKernel> match = matchOpKernel<ext::SortOp>(kernel);
  if (!match)
    return std::nullopt;
  SortShape shape(match->op, SortWords(match->op));
  bool fits = shape.lines.extent <= std::numeric_limits<int32_t>::max() &&
              std::max(shape.blocksOfTiles(shape.lines.extent), shape.numLines()) <= kMaxBlocks;
  return fits ? match : std::nullopt;
}

/// What each launch of a sort by merges leaves; elements only become fewer.
static SmallVector<SortRuns> stepsOf(const SortShape &shape) {
  SmallVector<SortRuns> steps{shape.tilesOf(shape.lines.extent)};
  while (steps.back().number > 1)
    steps.push_back(shape.selects() ? shape.tilesOf(steps.back().total())
                                    : shape.mergedFrom(steps.back()));
  return steps;
}

/// Whether fewer bytes and launches take less time by digits than by merges. A launch takes as long
/// as an H100 takes for 8 MB.
static bool isFasterByDigits(const SortKernel &sort, const SortShape &shape,
                             const RadixShape &radix) {
  constexpr int64_t kLaunchBytes = 8 << 20;
  SmallVector<SortRuns> steps = stepsOf(shape);
  int64_t bytes = 0, before = shape.lines.extent, wordBytes = 8 * shape.words;
  for (auto [step, runs] : llvm::enumerate(steps)) {
    if (step > 0)
      bytes += before * wordBytes;
    else
      for (Type key : ArrayRef(radix.elements).take_front(sort.op.getKeys()))
        bytes += before * bytesOf(key);
    before = runs.total();
    if (step + 1 < steps.size())
      bytes += before * wordBytes;
  }
  for (auto [result, element] : llvm::zip_equal(sort.results, radix.elements))
    if (result)
      bytes += before * (std::max(kSectorBytes, bytesOf(element)) + bytesOf(element));
  auto costOf = [&](int64_t bytesOfLine, int64_t launches) {
    return shape.numLines() * bytesOfLine + launches * kLaunchBytes;
  };
  return costOf(radix.bytesOfElement() * shape.lines.extent, radix.launches()) <
         costOf(bytes, static_cast<int64_t>(steps.size()));
}

void emitSort(func::FuncOp kernel, const SortKernel &sort, ModuleOp launches, StringRef symbol,
              ArrayRef<bool> mayAlias, bool byDigits, runtime::GpuKernel &result,
              GpuKernelInfo &info) {
  TileKernel tileKernel(kernel, launches, symbol, mayAlias, result, info);
  SortShape shape(sort.op, SortWords(sort.op));
  auto launchOf = [&](function_ref<GpuShape(SortTiles &)> emit) {
    return tileKernel.launch(sort.op.getLoc(), GpuScheme::sort,
                             [&](GpuLaunchBuilder &builder, GpuLaunchInfo &about) {
                               SortTiles tiles(builder, about, sort, tileKernel);
                               return emit(tiles);
                             });
  };
  int64_t extent = shape.lines.extent;
  RadixShape radix(sort);
  if (radix.isPossible && !shape.isShort() && (byDigits || isFasterByDigits(sort, shape, radix))) {
    emitRadixSort(sort, radix, tileKernel);
    return;
  }
  SortRuns runs = shape.tilesOf(extent);
  if (runs.number == 1) {
    launchOf([&](SortTiles &tiles) { return tiles.sortTiles({}, extent, {}); });
    return;
  }
  // All launches but the last write elements to one of two parts of the workspace and read the
  // other.
  SmallVector<SortRuns> steps = stepsOf(shape);
  Type word = OpBuilder(sort.op).getI64Type();
  int64_t elements = shape.words * shape.numLines() * runs.total(), bytes = 0;
  auto allocate = [&](Type element, int64_t count) {
    Value memory = tileKernel.workspace(element, count, bytes);
    bytes = llvm::alignTo(bytes + count * bytesOf(element), 256);
    return memory;
  };
  Value from = allocate(word, elements), to, table;
  if (steps.size() > 2)
    to = allocate(word, elements);
  // Merges are one function but for the last, which writes the results.
  auto merges = static_cast<int64_t>(steps.size()) - 2;
  SmallVector<Value> entries;
  if (!shape.selects() && merges > 0) {
    int64_t begin = bytes;
    table = allocate(IndexType::get(sort.op.getContext()), SortTiles::kEntry * merges);
    for (int64_t merge = 0; merge < merges; ++merge)
      entries.push_back(tileKernel.workspace(IndexType::get(sort.op.getContext()),
                                             SortTiles::kEntry,
                                             begin + 8 * SortTiles::kEntry * merge));
  }
  launchOf([&](SortTiles &tiles) { return tiles.sortTiles({}, extent, from, table, merges); });
  size_t first = 0;              // the first merge
  SmallVector<Value> firstMerge; // the memory of its arguments
  for (size_t step = 1; step < steps.size(); ++step) {
    runs = steps[step - 1];
    bool isLast = step + 1 == steps.size();
    Value kept = isLast ? Value() : to;
    if (shape.selects()) {
      launchOf([&](SortTiles &tiles) { return tiles.sortTiles(from, runs.total(), kept); });
    } else if (isLast || step == 1) {
      Value entry = isLast ? Value() : entries[0];
      first = launchOf([&](SortTiles &tiles) { return tiles.mergePairs(from, runs, kept, entry); });
      firstMerge = {from, kept, entry};
    } else {
      GpuLaunchInfo about = info.launches.back();
      int64_t wordBytes = 8 * shape.words * shape.numLines();
      about.readBytes = runs.total() * wordBytes;
      about.writtenBytes = steps[step].total() * wordBytes;
      tileKernel.repeat(
          first, shape.blocksOfPairs(steps[step]),
          {{firstMerge[0], from}, {firstMerge[1], to}, {firstMerge[2], entries[step - 1]}}, about);
    }
    std::swap(from, to);
  }
}

} // namespace tessera::codegen
