//===- SortMerges.cpp - Merge runs in vectors -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

static Value shuffle(LoopWriter at, Value x, Value y, int64_t lanes,
                     llvm::function_ref<int64_t(int64_t)> from) {
  auto mask = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes), from);
  return vector::ShuffleOp::create(at.b, at.loc, x, y, mask);
}

/// Columns of a table in the first half become runs at `base` of the second.
Value VectorSort::transposeTable(LoopWriter at, Value buffer, Value base, int64_t rows) const {
  Value zero = at.index(0), one = at.index(1);
  return at.loop(zero, at.index(rows), at.index(lanes), buffer,
                 [&](LoopWriter at, Value first, Values state) {
                   Values held;
                   for (int64_t row = 0; row < lanes; ++row) {
                     Value number = at.add(first, at.index(row));
                     Value offset = arith::MulIOp::create(at.b, at.loc, number, at.index(lanes));
                     held.push_back(at.readVector(state[0], {zero, at.add(base, offset)}, lanes));
                   }
                   for (int64_t bit = 1; bit < lanes; bit *= 2)
                     for (int64_t row = 0; row < lanes; ++row) {
                       if (row & bit)
                         continue;
                       Value x = held[row], y = held[row + bit];
                       held[row] = shuffle(at, x, y, lanes, [&](int64_t lane) {
                         return lane & bit ? lanes + lane - bit : lane;
                       });
                       held[row + bit] = shuffle(at, x, y, lanes, [&](int64_t lane) {
                         return lane & bit ? lanes + lane : lane + bit;
                       });
                     }
                   for (int64_t column = 0; column < lanes; ++column) {
                     Value to = at.add(at.add(base, first), at.index(column * rows));
                     state[0] = at.writeVector(state[0], {one, to}, held[column]);
                   }
                   return state;
                 })[0];
}

/// Sorts a bitonic sequence.
void VectorSort::sortBitonic(LoopWriter at, MutableArrayRef<Value> vectors) const {
  auto less = [&](Value x, Value y) { return arith::MinSIOp::create(at.b, at.loc, x, y); };
  auto more = [&](Value x, Value y) { return arith::MaxSIOp::create(at.b, at.loc, x, y); };
  for (size_t distance = vectors.size() / 2; distance >= 1; distance /= 2)
    for (size_t i = 0; i < vectors.size(); ++i)
      if (!(i & distance)) {
        Value x = vectors[i], y = vectors[i + distance];
        vectors[i] = less(x, y);
        vectors[i + distance] = more(x, y);
      }
  for (int64_t distance = lanes / 2; distance >= 1; distance /= 2)
    for (Value &vector : vectors) {
      Value other =
          shuffle(at, vector, vector, lanes, [&](int64_t lane) { return lane ^ distance; });
      vector = shuffle(at, less(vector, other), more(vector, other), lanes,
                       [&](int64_t lane) { return lane & distance ? lanes + lane : lane; });
    }
}

Values VectorSort::readChunk(LoopWriter at, Value source, Value row, Value begin) const {
  Values vectors;
  for (int64_t i = 0; i < kMerged; ++i)
    vectors.push_back(at.readVector(source, {row, at.add(begin, at.index(i * lanes))}, lanes));
  return vectors;
}

Value VectorSort::writeChunk(LoopWriter at, Value buffer, Value row, Value begin,
                             ArrayRef<Value> vectors) const {
  for (auto [i, vector] : llvm::enumerate(vectors)) {
    Value place = at.add(begin, at.index(static_cast<int64_t>(i) * lanes));
    buffer = at.writeVector(buffer, {row, place}, vector);
  }
  return buffer;
}

/// Two sorted chunks as one of twice the size.
Values VectorSort::withNext(LoopWriter at, ArrayRef<Value> held, ArrayRef<Value> next) const {
  // The next in reverse after those held: a bitonic sequence.
  Values all(held);
  for (Value vector : llvm::reverse(next))
    all.push_back(
        shuffle(at, vector, vector, lanes, [&](int64_t lane) { return lanes - 1 - lane; }));
  sortBitonic(at, all);
  return all;
}

Values VectorSort::mergeChunks(LoopWriter at, Value from, Value row, const Heads &heads,
                               ArrayRef<Value> held, Value into, Value intoRow, Value begin,
                               Value end) const {
  Value chunk = at.index(kMerged * lanes), zero = at.index(0), one = at.index(1);
  Value lastLeft = at.sub(heads.middle, one), lastRight = at.sub(heads.stop, one);
  Values state{into, heads.left, heads.right};
  llvm::append_range(state, held);
  state = at.loop(begin, end, chunk, state, [&](LoopWriter inner, Value to, Values state) {
    Value left = state[1], right = state[2], source = from ? from : state[0];
    Value x = inner.read(source, {row, inner.min(left, lastLeft)});
    Value y = inner.read(source, {row, inner.min(right, lastRight)});
    Type boolean = inner.b.getI1Type();
    Value isLeft =
        inner.select(inner.less(right, heads.stop), inner.less(x, y), inner.constant(boolean, 1));
    isLeft = inner.select(inner.less(left, heads.middle), isLeft, inner.constant(boolean, 0));
    Values next = readChunk(inner, source, row, inner.select(isLeft, left, right));
    Value step = inner.select(isLeft, chunk, zero);
    Values all = withNext(inner, ArrayRef<Value>(state).drop_front(3), next);
    Values result{
        writeChunk(inner, state[0], intoRow, to, ArrayRef<Value>(all).take_front(kMerged)),
        inner.add(left, step), inner.add(right, inner.sub(chunk, step))};
    llvm::append_range(result, ArrayRef<Value>(all).drop_front(kMerged));
    return result;
  });
  state.erase(state.begin() + 1, state.begin() + 3);
  return state;
}

/// Merges neighboring runs of `width` elements among `extent` from half `from` into the other.
Value VectorSort::mergePass(LoopWriter at, Value buffer, Value from, Value width, Value begin,
                            int64_t extent) const {
  Value end = at.add(begin, at.index(extent)), both = at.add(width, width);
  Value chunk = at.index(kMerged * lanes), into = at.sub(at.index(1), from);
  return at.loop(begin, end, both, buffer, [&](LoopWriter outer, Value begin, Values state) {
    Value middle = outer.min(outer.add(begin, width), end);
    Value stop = outer.min(outer.add(begin, both), end), last = outer.sub(stop, chunk);
    Values held = readChunk(outer, state[0], from, begin);
    Heads heads{outer.add(begin, chunk), middle, middle, stop};
    state = mergeChunks(outer, {}, from, heads, held, state[0], into, begin, last);
    return Values{writeChunk(outer, state[0], into, last, ArrayRef<Value>(state).drop_front())};
  })[0];
}

Value VectorSort::mergeRuns(LoopWriter at, Value buffer, int64_t from, int64_t width, Value begin,
                            int64_t extent) const {
  int64_t passes = SortLines::passesFor(llvm::divideCeil(extent, width));
  return at.loop(at.index(0), at.index(passes), at.index(1), buffer,
                 [&](LoopWriter at, Value pass, Values state) {
                   Value now = arith::ShLIOp::create(at.b, at.loc, at.index(width), pass);
                   Value done = arith::AndIOp::create(at.b, at.loc, pass, at.index(1));
                   Value half = arith::XOrIOp::create(at.b, at.loc, done, at.index(from));
                   return Values{mergePass(at, state[0], half, now, begin, extent)};
                 })[0];
}
