//===- GpuSortTiles.cpp - Sort and merge tiles in shared memory -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread sorts its elements in registers by a network (Batcher's merge exchange: Knuth, "The Art
// of Computer Programming", 5.2.2, algorithm M). Runs are merged by merge path (O. Green, R.
// McColl, D. Bader, "GPU Merge Path", 2012): the elements that a thread, or a block, writes begin
// on a diagonal of the two runs, whose point a binary search finds. Words differ by the index of
// the element, so that the order of runs does not matter and the sort is stable.
//
//===----------------------------------------------------------------------===//

#include "GpuSortTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::codegen {

//===----------------------------------------------------------------------===//
// The division of a sort
//===----------------------------------------------------------------------===//

SortShape::SortShape(ext::SortOp op, const SortWords &sortWords)
    : lines(op.getShape(), op.getDim()), count(op.getCount()),
      words(static_cast<int64_t>(sortWords.numWords)) {
  // An odd number of words a thread touches all banks of shared memory; registers hold a few.
  constexpr int64_t kThreads = 256, kSharedBytes = 48 << 10;
  items = words <= 2 ? 7 : words <= 4 ? 5 : 3;
  threads = kThreads;
  while (threads > kWarp && threads * items * words * 8 > kSharedBytes)
    threads /= 2;
  slots = tile();
  if (lines.extent > slots)
    return;
  int64_t threadsPerLine = llvm::divideCeil(lines.extent, items);
  items = llvm::divideCeil(lines.extent, threadsPerLine);
  slots = items * threadsPerLine;
  linesPerTile = std::min(threads / threadsPerLine, numLines());
  threads = llvm::alignTo(linesPerTile * threadsPerLine, kWarp);
}

SortRuns SortShape::tilesOf(int64_t total) const {
  SortRuns runs;
  runs.number = llvm::divideCeil(total, slots);
  runs.length = std::min(slots, count);
  runs.last = std::min(total - (runs.number - 1) * slots, count);
  return runs;
}

SortRuns SortShape::mergedFrom(const SortRuns &runs) const {
  SortRuns merged;
  merged.number = llvm::divideCeil(runs.number, 2);
  merged.last = std::min(count, runs.number % 2 == 1 ? runs.last : runs.length + runs.last);
  merged.length = merged.number == 1 ? merged.last : std::min(count, 2 * runs.length);
  return merged;
}

int64_t SortShape::blocksOfTiles(int64_t total) const {
  return isShort() ? llvm::divideCeil(numLines(), linesPerTile)
                   : numLines() * llvm::divideCeil(total, slots);
}

int64_t SortShape::blocksOfPairs(const SortRuns &to) const {
  return numLines() * to.number * llvm::divideCeil(to.length, tile());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SortTiles::SortTiles(GpuLaunchBuilder &launch, GpuLaunchInfo &info, const SortKernel &sort,
                     TileKernel &kernel)
    : TileWriter(launch, info), sort(sort), kernel(kernel), words(sort.op), shape(sort.op, words) {
  for (size_t word = 0; word < words.numWords; ++word)
    tiles.push_back(launch.shared(b.getI64Type(), shape.tile()));
}

void SortTiles::forItems(int64_t count, Body body) {
  int64_t rounds = llvm::divideCeil(count, shape.threads);
  loop(constant(0), constant(rounds), 1, {}, [&](Value round, ValueRange) -> SmallVector<Value> {
    Value item = add(multiply(round, shape.threads), launch.threadIndex());
    if (count % shape.threads == 0)
      body(item);
    else
      onlyIf(less(item, constant(count)), [&] { body(item); });
    return {};
  });
}

SortTiles::Values SortTiles::shared(Value place) {
  return llvm::map_to_vector(
      tiles, [&](Value tile) -> Value { return memref::LoadOp::create(b, loc, tile, place); });
}

void SortTiles::setShared(Value place, ValueRange element) {
  for (auto [tile, word] : llvm::zip_equal(tiles, element))
    memref::StoreOp::create(b, loc, word, tile, place);
}

Value SortTiles::placeOf(const Stored &stored, size_t word, Value line, Value position) {
  Value row = add(line, static_cast<int64_t>(word) * shape.numLines());
  return add(times(row, stored.pitch), position);
}

SortTiles::Values SortTiles::stored(const Stored &stored, Value line, Value position) {
  Value memory = launch.flat(stored.memory, /*write=*/false);
  Values element;
  for (size_t word = 0; word < words.numWords; ++word)
    element.push_back(
        memref::LoadOp::create(b, loc, memory, placeOf(stored, word, line, position)));
  return element;
}

/// The index of an element of a line in an operand or result, with `extent` elements a line.
Value SortTiles::offsetOf(Value line, Value position, int64_t extent) {
  Value outer = divide(line, shape.lines.inner), inner = remainder(line, shape.lines.inner);
  return add(multiply(add(multiply(outer, extent), position), shape.lines.inner), inner);
}

SortTiles::Values SortTiles::ofOperands(Value line, Value position) {
  Value offset = offsetOf(line, position, shape.lines.extent);
  Values keys;
  for (unsigned argument : ArrayRef(sort.operands).take_front(sort.op.getKeys()))
    keys.push_back(memref::LoadOp::create(
        b, loc, launch.flat(kernel.root(argument), /*write=*/false), offset));
  return words.of(at(), keys, position);
}

void SortTiles::put(const Stored *to, Value line, Value position, Value place) {
  Values element = shared(place);
  if (to) {
    Value memory = launch.flat(to->memory, /*write=*/true);
    for (auto [word, value] : llvm::enumerate(element))
      memref::StoreOp::create(b, loc, value, memory, placeOf(*to, word, line, position));
    return;
  }
  Value from = offsetOf(line, words.indexOf(at(), element), shape.lines.extent);
  Value offset = offsetOf(line, position, shape.count);
  for (auto [argument, result] : llvm::zip_equal(sort.operands, sort.results)) {
    if (!result)
      continue;
    Value value =
        memref::LoadOp::create(b, loc, launch.flat(kernel.root(argument), /*write=*/false), from);
    memref::StoreOp::create(b, loc, value, launch.flat(kernel.root(*result), /*write=*/true),
                            offset);
  }
}

void SortTiles::countBytes(Value from, int64_t read, Value to, int64_t written) {
  constexpr llvm::StringLiteral kWhy = "elements of a sort";
  auto elementBytes = [&](unsigned argument) {
    return bytesOf(cast<MemRefType>(kernel.root(argument).getType()).getElementType());
  };
  int64_t lines = shape.numLines(), wordBytes = 8 * shape.words;
  if (from) {
    info.readBytes += lines * read * wordBytes;
    note(from, /*store=*/false, 8, kWhy);
  }
  for (auto [i, argument] : llvm::enumerate(sort.operands)) {
    int64_t bytes = elementBytes(argument);
    bool isRead = (!from && i < sort.op.getKeys()) || (!to && sort.results[i]);
    if (!from && i < sort.op.getKeys())
      info.readBytes += lines * read * bytes;
    if (!to && sort.results[i]) {
      info.readBytes += lines * written * bytes;
      info.writtenBytes += lines * written * bytes;
      note(kernel.root(*sort.results[i]), /*store=*/true, bytes, kWhy);
    }
    if (isRead)
      note(kernel.root(argument), /*store=*/false, bytes, kWhy);
  }
  if (to) {
    info.writtenBytes += lines * written * wordBytes;
    note(to, /*store=*/true, 8, kWhy);
  }
}

//===----------------------------------------------------------------------===//
// Sorting and merging in shared memory
//===----------------------------------------------------------------------===//

void SortTiles::sortOwn(MutableArrayRef<Values> own) {
  auto exchange = [&](size_t first, size_t second) {
    Value isSorted = words.comesBefore(at(), own[first], own[second]);
    for (auto [x, y] : llvm::zip_equal(own[first], own[second])) {
      Value less = select(isSorted, x, y), greater = select(isSorted, y, x);
      x = less;
      y = greater;
    }
  };
  size_t count = own.size(), top = llvm::PowerOf2Ceil(count) / 2;
  for (size_t p = top; p > 0; p /= 2) {
    size_t q = top, r = 0, distance = p;
    while (true) {
      for (size_t i = 0; i + distance < count; ++i)
        if ((i & p) == r)
          exchange(i, i + distance);
      if (q == p)
        break;
      distance = q - p;
      q /= 2;
      r = p;
    }
  }
}

Value SortTiles::splitAt(Read left, Read right, Value leftCount, Value rightCount, Value diagonal) {
  Value zero = constant(0), one = constant(1);
  Value low = greatest(minus(diagonal, rightCount), zero);
  Value high = least(diagonal, leftCount);
  Type index = b.getIndexType();
  auto search = scf::WhileOp::create(
      b, loc, TypeRange{index, index}, ValueRange{low, high},
      [&](OpBuilder &inner, Location, ValueRange state) {
        scf::ConditionOp::create(inner, loc, less(state[0], state[1]), state);
      },
      [&](OpBuilder &inner, Location, ValueRange state) {
        Value middle = arith::ShRUIOp::create(inner, loc, add(state[0], state[1]), one);
        Value opposite = arith::SubIOp::create(
            inner, loc, arith::SubIOp::create(inner, loc, diagonal, one), middle);
        Value isBefore = words.comesBefore(at(), left(middle), right(opposite));
        scf::YieldOp::create(inner, loc,
                             ValueRange{select(isBefore, add(middle, 1), state[0]),
                                        select(isBefore, state[1], middle)});
      });
  return search.getResult(0);
}

SortTiles::Values SortTiles::merged(Value begin, Value left, Value middle, Value right,
                                    Value diagonal) {
  auto from = [&](Value start) { return [&, start](Value i) { return shared(add(start, i)); }; };
  auto readLeft = from(begin), readRight = from(middle);
  Value leftAt = splitAt(readLeft, readRight, left, right, diagonal);
  Value rightAt = minus(diagonal, leftAt);
  // Beyond the end of a run the element is not taken, or not needed.
  Value last = constant(shape.tile() - 1);
  auto read = [&](Value start, Value i) { return shared(least(add(start, i), last)); };
  Values x = read(begin, leftAt), y = read(middle, rightAt), result;
  for (int64_t item = 0; item < shape.items; ++item) {
    Value isBefore = words.comesBefore(at(), x, y);
    Value takesLeft = arith::OrIOp::create(
        b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rightAt, right),
        arith::AndIOp::create(b, loc, less(leftAt, left), isBefore));
    for (auto [a, c] : llvm::zip_equal(x, y))
      result.push_back(select(takesLeft, a, c));
    if (item + 1 == shape.items)
      break;
    Value step = select(takesLeft, constant(1), constant(0));
    leftAt = add(leftAt, step);
    rightAt = add(rightAt, minus(constant(1), step));
    Values next = read(select(takesLeft, begin, middle), select(takesLeft, leftAt, rightAt));
    for (auto [a, c, n] : llvm::zip_equal(x, y, next)) {
      a = select(takesLeft, n, a);
      c = select(takesLeft, c, n);
    }
  }
  return result;
}

void SortTiles::sortShared(int64_t kept) {
  int64_t items = shape.items, threadsPerLine = shape.slots / items;
  size_t numWords = words.numWords;
  Value first = multiply(launch.threadIndex(), items);
  std::vector<Values> own;
  for (int64_t item = 0; item < items; ++item)
    own.push_back(shared(add(first, item)));
  sortOwn(own);
  auto store = [&](ValueRange elements) {
    for (int64_t item = 0; item < items; ++item)
      setShared(add(first, item), elements.slice(item * numWords, numWords));
  };
  for (auto [item, element] : llvm::enumerate(own))
    setShared(add(first, static_cast<int64_t>(item)), element);
  if (threadsPerLine == 1)
    return;
  barrier();
  Value line = divide(launch.threadIndex(), threadsPerLine);
  Value member = remainder(launch.threadIndex(), threadsPerLine);
  Value start = multiply(line, shape.slots), end = add(start, shape.slots);
  if (shape.tile() > shape.linesPerTile * shape.slots) // threads without a line
    end = least(end, constant(shape.tile()));
  int64_t rounds = llvm::Log2_64_Ceil(threadsPerLine);
  loop(constant(0), constant(rounds), 1, {}, [&](Value round, ValueRange) -> SmallVector<Value> {
    auto shiftLeft = [&](Value value, Value by) -> Value {
      return arith::ShLIOp::create(b, loc, value, by);
    };
    // Pairs of runs of `width` elements, of which at most `kept` are sorted.
    Value width = shiftLeft(constant(items), round), more = add(round, 1);
    Value pair = arith::ShRUIOp::create(b, loc, member, more);
    Value begin = add(start, multiply(shiftLeft(pair, more), items));
    Value middle = least(add(begin, width), end), stop = least(add(middle, width), end);
    Value most = constant(kept), diagonal = minus(first, begin);
    auto lengthOf = [&](Value from, Value to) {
      Value length = minus(to, from);
      return kept < shape.slots ? least(length, most) : length;
    };
    Value left = lengthOf(begin, middle), right = lengthOf(middle, stop);
    auto merge = [&] {
      return merged(begin, left, middle, right, least(diagonal, add(left, right)));
    };
    Values result;
    if (kept < shape.slots) {
      // Threads beyond the first `kept` elements of a pair have nothing to do.
      SmallVector<Type> types(items * numWords, b.getI64Type());
      auto branch = scf::IfOp::create(b, loc, types, less(diagonal, most), /*withElse=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, loc, merge());
      b.setInsertionPointToStart(branch.elseBlock());
      Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
      scf::YieldOp::create(b, loc, Values(items * numWords, zero));
      llvm::append_range(result, branch.getResults());
    } else {
      result = merge();
    }
    barrier();
    store(result);
    barrier();
    return {};
  });
}

} // namespace tessera::codegen
