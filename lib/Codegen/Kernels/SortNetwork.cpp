//===- SortNetwork.cpp - Sort the columns of a table ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// The lesser of two rows in `x`, in each lane.
void VectorSort::exchange(LoopWriter at, Values &x, Values &y) const {
  if (numWords == 1) {
    Value less = arith::MinSIOp::create(at.b, at.loc, x[0], y[0]);
    y[0] = arith::MaxSIOp::create(at.b, at.loc, x[0], y[0]);
    x[0] = less;
    return;
  }
  Value isSwapped = words.comesBefore(at, y, x);
  for (auto [a, b] : llvm::zip(x, y)) {
    Value less = at.select(isSwapped, b, a);
    b = at.select(isSwapped, a, b);
    a = less;
  }
}

Values VectorSort::readRow(LoopWriter at, const Rows &rows, ValueRange state, Value row) const {
  Values place = rows.place(at, row);
  return llvm::map_to_vector<4>(state,
                                [&](Value buffer) { return at.readVector(buffer, place, lanes); });
}

void VectorSort::writeRow(LoopWriter at, const Rows &rows, Values &state, Value row,
                          Values words) const {
  Values place = rows.place(at, row);
  for (auto [buffer, vector] : llvm::zip(state, words))
    buffer = at.writeVector(buffer, place, vector);
}

Values VectorSort::inRegisters(LoopWriter at, const Rows &rows, Values state, Value first,
                               int64_t count, const Comparators &comparators) const {
  SmallVector<Values> held;
  for (int64_t row = 0; row < count; ++row)
    held.push_back(readRow(at, rows, state, at.add(first, at.index(row))));
  for (auto [x, y] : comparators)
    exchange(at, held[x], held[y]);
  for (int64_t row = 0; row < count; ++row)
    writeRow(at, rows, state, at.add(first, at.index(row)), held[row]);
  return state;
}

/// A network over each block of rows, the last of which may have fewer.
Values VectorSort::inBlocks(LoopWriter at, const Rows &rows, Values state,
                            function_ref<Comparators(int64_t)> network) const {
  int64_t whole = rows.extent / block * block, rest = rows.extent - whole;
  if (whole > 0)
    state = at.loop(at.index(0), at.index(whole), at.index(block), state,
                    [&](LoopWriter inner, Value first, Values state) {
                      return inRegisters(inner, rows, state, first, block, network(block));
                    });
  return rest ? inRegisters(at, rows, state, at.index(whole), rest, network(rest)) : state;
}

Values VectorSort::exchangeRows(LoopWriter at, const Rows &rows, Values state, Value lower,
                                Value upper) const {
  Values x = readRow(at, rows, state, lower), y = readRow(at, rows, state, upper);
  exchange(at, x, y);
  writeRow(at, rows, state, lower, x);
  writeRow(at, rows, state, upper, y);
  return state;
}

/// Batcher's odd-even merge sort.
static Comparators oddEvenSort(int64_t count) {
  Comparators result;
  for (int64_t p = 1; p < count; p *= 2)
    for (int64_t k = p; k >= 1; k /= 2)
      for (int64_t j = k % p; j + k < count; j += 2 * k)
        for (int64_t i = j; i < std::min(j + k, count - k); ++i)
          if (i / (2 * p) == (i + k) / (2 * p))
            result.push_back({i, i + k});
  return result;
}

Values VectorSort::sortColumns(LoopWriter at, const Rows &rows, Values state) const {
  if (rows.extent <= 2 * block)
    return inRegisters(at, rows, state, at.index(0), rows.extent, oddEvenSort(rows.extent));
  state = inBlocks(at, rows, state, oddEvenSort);
  int64_t bits = llvm::Log2_64(block), levels = SortLines::passesFor(rows.extent) - bits;
  Value zero = at.index(0), one = at.index(1), end = at.index(rows.extent);
  auto power = [](LoopWriter at, Value of) -> Value {
    return arith::ShLIOp::create(at.b, at.loc, at.index(1), of);
  };
  auto most = [](LoopWriter at, Value x, Value y) -> Value {
    return arith::MaxSIOp::create(at.b, at.loc, x, y);
  };
  return at.loop(zero, at.index(levels), one, state, [&](LoopWriter at, Value level, Values state) {
    // Runs of `width` rows: each with the next in reverse, which makes both halves bitonic.
    Value exponent = at.add(level, at.index(bits));
    Value width = power(at, exponent), both = at.add(width, width);
    state = at.loop(zero, end, both, state, [&](LoopWriter outer, Value begin, Values state) {
      Value last = outer.sub(outer.add(begin, both), one);
      Value missing = most(outer, outer.sub(outer.add(last, one), end), zero);
      return outer.loop(missing, width, one, state, [&](LoopWriter inner, Value i, Values state) {
        return exchangeRows(inner, rows, state, inner.add(begin, i), inner.sub(last, i));
      });
    });
    // Distances from half the width to a block.
    state = at.loop(zero, level, one, state, [&](LoopWriter outer, Value step, Values state) {
      Value bit = outer.sub(outer.sub(exponent, one), step), distance = power(outer, bit);
      Value pair = outer.add(bit, one), below = outer.sub(distance, one);
      Value whole = arith::ShRUIOp::create(outer.b, outer.loc, end, pair);
      Value rest = outer.sub(end, arith::ShLIOp::create(outer.b, outer.loc, whole, pair));
      Value comparators = outer.add(arith::ShLIOp::create(outer.b, outer.loc, whole, bit),
                                    most(outer, outer.sub(rest, distance), zero));
      return outer.loop(
          zero, comparators, one, state, [&](LoopWriter inner, Value i, Values state) {
            Value within = arith::AndIOp::create(inner.b, inner.loc, i, below);
            Value lower = inner.sub(inner.add(i, i), within);
            return exchangeRows(inner, rows, state, lower, inner.add(lower, distance));
          });
    });
    return inBlocks(at, rows, state, [&](int64_t count) {
      Comparators layers;
      for (int64_t distance = block / 2; distance >= 1; distance /= 2)
        for (int64_t i = 0; i + distance < count; ++i)
          if (!(i & distance))
            layers.push_back({i, i + distance});
      return layers;
    });
  });
}
