//===- GpuSortLaunches.cpp - One launch of a sort -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuSortTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::codegen {

GpuShape SortTiles::sortTiles(Value from, int64_t total, Value to, Value table, int64_t merges) {
  const int64_t slots = shape.slots, lines = shape.numLines(), group = shape.linesPerTile;
  SortRuns runs = shape.tilesOf(total);
  Stored read{from, constant(total)}, written{to, constant(runs.total())};
  if (table)
    writeTable(table, runs, merges);
  Value firstLine, begin; // of the block's lines, and of its tile in the line
  if (shape.isShort()) {
    firstLine = multiply(launch.blockIndex(), group);
    begin = constant(0);
  } else {
    firstLine = divide(launch.blockIndex(), runs.number);
    begin = multiply(remainder(launch.blockIndex(), runs.number), slots);
  }
  // Adjacent threads access adjacent elements: of a line, or of lines that are interleaved.
  auto byLine = [&](Value item, int64_t count, function_ref<void(Value, Value)> body) {
    if (shape.lines.inner == 1)
      body(divide(item, count), remainder(item, count));
    else
      body(remainder(item, group), divide(item, group));
  };
  forItems(group * slots, [&](Value item) {
    byLine(item, slots, [&](Value which, Value slot) {
      Value position = add(begin, slot), line = add(firstLine, which);
      Value isInside = less(position, constant(total));
      Value nearest = least(position, constant(total - 1));
      if (lines % group != 0)
        line = least(line, constant(lines - 1));
      Values element = from ? stored(read, line, nearest) : ofOperands(line, nearest);
      for (auto [word, beyond] : llvm::zip_equal(element, words.greatest(at())))
        word = select(isInside, word, beyond);
      setShared(add(multiply(which, slots), slot), element);
    });
  });
  barrier();
  int64_t kept = std::min(slots, shape.count);
  sortShared(kept);
  if (slots == shape.items) // without merges
    barrier();
  Value count = least(constant(kept), minus(constant(total), begin));
  Value run = to ? multiply(remainder(launch.blockIndex(), runs.number), kept) : constant(0);
  forItems(group * kept, [&](Value item) {
    byLine(item, kept, [&](Value which, Value slot) {
      Value line = add(firstLine, which);
      Value isNeeded =
          arith::AndIOp::create(b, loc, less(slot, count), less(line, constant(lines)));
      onlyIf(isNeeded, [&] {
        put(to ? &written : nullptr, line, add(run, slot), add(multiply(which, slots), slot));
      });
    });
  });
  countBytes(from, total, to, runs.total());
  GpuShape grid;
  grid.blocks = shape.blocksOfTiles(total);
  grid.threads = shape.threads;
  return grid;
}

void SortTiles::writeTable(Value table, const SortRuns &runs, int64_t merges) {
  Value isFirst = less(add(launch.blockIndex(), launch.threadIndex()), constant(1));
  Value memory = launch.flat(table, /*write=*/true);
  onlyIf(isFirst, [&] {
    Value count = constant(shape.count), one = constant(1);
    Values state{constant(runs.number), constant(runs.length), constant(runs.last)};
    loop(constant(0), constant(merges), 1, state, [&](Value merge, ValueRange runs) {
      // As SortShape::mergedFrom.
      Value number = runs[0], length = runs[1], last = runs[2];
      Value isOdd = arith::TruncIOp::create(
          b, loc, b.getI1Type(), arith::IndexCastOp::create(b, loc, b.getI64Type(), number));
      Value nextNumber = arith::ShRUIOp::create(b, loc, add(number, 1), one);
      Value nextLast = least(count, select(isOdd, last, add(length, last)));
      Value nextLength =
          select(less(nextNumber, constant(2)), nextLast, least(count, multiply(length, 2)));
      auto totalOf = [&](Value number, Value length, Value last) {
        return add(times(minus(number, one), length), last);
      };
      Value chunks = divide(add(nextLength, shape.tile() - 1), shape.tile());
      for (auto [i, size] :
           llvm::enumerate(Values{length, totalOf(number, length, last), nextLength, nextNumber,
                                  totalOf(nextNumber, nextLength, nextLast), chunks}))
        memref::StoreOp::create(b, loc, size, memory,
                                add(multiply(merge, kEntry), static_cast<int64_t>(i)));
      return Values{nextNumber, nextLength, nextLast};
    });
  });
}

SortTiles::Merge SortTiles::sizesOf(const SortRuns &runs, Value table) {
  SortRuns next = shape.mergedFrom(runs);
  int64_t chunks = llvm::divideCeil(next.length, shape.tile());
  std::array<int64_t, 6> known{runs.length, runs.total(), next.length,
                               next.number, next.total(), chunks};
  Values sizes;
  for (auto [i, size] : llvm::enumerate(known))
    sizes.push_back(table ? memref::LoadOp::create(b, loc, launch.flat(table, /*write=*/false),
                                                   constant(static_cast<int64_t>(i)))
                                .getResult()
                          : constant(size));
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]};
}

GpuShape SortTiles::mergePairs(Value from, const SortRuns &runs, Value to, Value table) {
  const int64_t tile = shape.tile();
  SortRuns next = shape.mergedFrom(runs);
  Merge sizes = sizesOf(runs, table);
  Stored read{from, sizes.total}, written{to, sizes.nextTotal};
  // Numbers of blocks are divided in 32 bits.
  auto split = [&](Value &rest, Value by) -> Value {
    Type i32 = b.getI32Type(), index = b.getIndexType();
    auto narrow = [&](Value x) { return arith::IndexCastUIOp::create(b, loc, i32, x); };
    Value left = narrow(rest), right = narrow(by);
    Value within = arith::RemUIOp::create(b, loc, left, right);
    rest = arith::IndexCastUIOp::create(b, loc, index, arith::DivUIOp::create(b, loc, left, right));
    return arith::IndexCastUIOp::create(b, loc, index, within);
  };
  Value line = launch.blockIndex(), chunk = split(line, sizes.chunks);
  Value pair = split(line, sizes.nextNumber);
  // The two runs of the block, and its elements of them merged: from `begin` to `end`.
  Value leftRun = times(multiply(pair, 2), sizes.length), rightRun = add(leftRun, sizes.length);
  auto lengthOf = [&](Value run) {
    return greatest(least(minus(sizes.total, run), sizes.length), constant(0));
  };
  Value left = lengthOf(leftRun), right = lengthOf(rightRun);
  Value kept = least(add(left, right), sizes.nextLength);
  Value begin = least(multiply(chunk, tile), kept), end = least(add(begin, tile), kept);
  // Two threads search where the block's elements begin and end.
  Value splits = launch.shared(b.getIndexType(), 2);
  auto elements = [&](Value run) {
    return [&, run](Value i) { return stored(read, line, add(run, i)); };
  };
  auto readLeft = elements(leftRun), readRight = elements(rightRun);
  onlyIf(less(launch.threadIndex(), constant(2)), [&] {
    Value isFirst = less(launch.threadIndex(), constant(1));
    Value found = splitAt(readLeft, readRight, left, right, select(isFirst, begin, end));
    memref::StoreOp::create(b, loc, found, splits, launch.threadIndex());
  });
  barrier();
  Value leftBegin = memref::LoadOp::create(b, loc, splits, constant(0));
  Value leftEnd = memref::LoadOp::create(b, loc, splits, constant(1));
  Value rightBegin = minus(begin, leftBegin), count = minus(end, begin);
  Value leftCount = minus(leftEnd, leftBegin), rightCount = minus(count, leftCount);
  leftBegin = add(leftRun, leftBegin);
  rightBegin = minus(add(rightRun, rightBegin), leftCount);
  forItems(tile, [&](Value item) {
    onlyIf(less(item, count), [&] {
      Value start = select(less(item, leftCount), leftBegin, rightBegin);
      setShared(item, stored(read, line, add(start, item)));
    });
  });
  barrier();
  Value first = multiply(launch.threadIndex(), shape.items);
  Values result = merged(constant(0), leftCount, leftCount, rightCount, least(first, count));
  barrier();
  for (int64_t item = 0; item < shape.items; ++item)
    setShared(add(first, item), ValueRange(result).slice(item * words.numWords, words.numWords));
  barrier();
  Value target = add(times(pair, sizes.nextLength), begin);
  forItems(tile, [&](Value item) {
    onlyIf(less(item, count), [&] { put(to ? &written : nullptr, line, add(target, item), item); });
  });
  countBytes(from, runs.total(), to, next.total());
  GpuShape grid;
  grid.blocks = shape.blocksOfPairs(next);
  grid.threads = shape.threads;
  return grid;
}

} // namespace tessera::codegen
