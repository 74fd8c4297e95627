//===- SortVectors.cpp - Sort lines in vectors -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A network sorts the columns of a table whose rows are vectors of 64 bytes: each comparator
// orders two rows. A comparator keeps the lesser element in the lower row, so rows beyond a
// line's end, which would be greatest, are left out with their comparators. Blocks of 16 rows are
// sorted in registers (K. Batcher's odd-even merge sort); bitonic merges double them, their last
// four layers in registers again.
//
//   lanes    each column is a line: for many lines that are not long
//   merges   a long line fills tables of columns. Sorted columns become runs in memory, which are
//            merged, two vectors a step: of those loaded the lesser half is written, and the next
//            two come from the run with the lesser head.
//
// Words are those of SortWords.h, but elements of a single operand are sorted by their keys alone
// and computed from these. Equal keys of different bits, -0 and NaN, are then written again in
// the order of the line, if there are any.
//
//===----------------------------------------------------------------------===//

#include "SortWords.h"

#include "tessera/Codegen/Kernels/TaskLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// Bytes of a vector, and of a table that stays in the cache.
static constexpr int64_t kVectorBytes = 64, kTableBytes = 256 << 10;
/// Vectors that are merged in one step.
static constexpr int64_t kMerged = 2;
/// The rows of a table of a long line, at most and a multiple of.
static constexpr int64_t kMostRows = 1024, kRowMultiple = 32;

namespace {
using Comparators = SmallVector<std::pair<int64_t, int64_t>>;

/// A table of rows in one buffer for each word.
struct Rows {
  int64_t extent;
  llvm::function_ref<Values(LoopWriter, Value row)> place;
};

/// Some lines side by side, from (o, j) on: along `inner`, or along `outer` if that has extent 1.
/// Its tables have elements x lines, or the elements of one line.
struct Tile {
  Value o, j;
  int64_t lines;
  bool isFlat = false;
};

class VectorSort {
public:
  explicit VectorSort(const SortWords &words);
  bool usesLanes() const;
  bool usesMerges() const { return numWords == 1 && extent > 128; }
  Values lanesOf(LoopWriter at, Values results) const;
  Values mergesOf(LoopWriter at, Values results) const;

private:
  // The network. The state is the buffers.
  void exchange(LoopWriter at, Values &x, Values &y) const;
  Values readRow(LoopWriter at, const Rows &rows, ValueRange state, Value row) const;
  void writeRow(LoopWriter at, const Rows &rows, Values &state, Value row, Values words) const;
  Values inRegisters(LoopWriter at, const Rows &rows, Values state, Value first, int64_t count,
                     const Comparators &comparators) const;
  Values inBlocks(LoopWriter at, const Rows &rows, Values state,
                  llvm::function_ref<Comparators(int64_t)> network) const;
  Values exchangeRows(LoopWriter at, const Rows &rows, Values state, Value lower,
                      Value upper) const;
  Values sortColumns(LoopWriter at, const Rows &rows, Values state) const;

  // Merges of runs in a buffer of two halves.
  Value transposeTable(LoopWriter at, Value buffer, Value base, int64_t rows) const;
  void sortBitonic(LoopWriter at, MutableArrayRef<Value> vectors) const;
  Value mergePass(LoopWriter at, Value buffer, Value from, Value width, Value begin,
                  int64_t extent) const;
  /// Merges runs of `width` elements, the first time from half `from`.
  Value mergeRuns(LoopWriter at, Value buffer, int64_t from, int64_t width, Value begin,
                  int64_t extent) const;

  // Elements.
  Type elementType(size_t operand = 0) const {
    return getElementTypeOrSelf(words.inputs[operand].getType());
  }
  Value sliceOf(LoopWriter at, Value tensor, const Tile &tile, int64_t count) const;
  Value inserted(LoopWriter at, Value slice, Value tensor, const Tile &tile, int64_t count) const;
  bool isAlongOuter() const { return words.lines.inner == 1; }
  /// Identity on the loops over a table, and where an element is in the slice of a tensor.
  SmallVector<AffineMap> mapsOf(LoopWriter at, const Tile &tile) const;
  SmallVector<utils::IteratorType> loopsOf(const Tile &tile, utils::IteratorType type) const {
    return SmallVector<utils::IteratorType>(tile.isFlat ? 1 : 2, type);
  }
  /// One word of each element of a tile in a table.
  Value wordsOf(LoopWriter at, size_t number, const Tile &tile, Value into) const;
  Values placed(LoopWriter at, const Tile &tile, Values results, Value sorted,
                llvm::function_ref<Values(LoopWriter, Value i, Value lane)> wordsAt) const;
  Value restoreEqual(LoopWriter at, const Tile &tile, Value result) const;

  const SortWords &words;
  int64_t extent, count;
  bool isPlain; ///< keys suffice
  size_t numWords;
  Type word;
  int64_t lanes;
  int64_t block; ///< rows sorted in registers
};
} // namespace

VectorSort::VectorSort(const SortWords &words)
    : words(words), extent(words.lines.extent), count(words.op.getCount()),
      isPlain(words.inputs.size() == 1), numWords(isPlain ? 1 : words.numWords), word(words.word) {
  Type type = elementType();
  if (isPlain && !type.isIndex() && type.getIntOrFloatBitWidth() <= 32)
    word = IntegerType::get(word.getContext(), 32);
  lanes = kVectorBytes * 8 / word.getIntOrFloatBitWidth();
  block = numWords == 1 ? 16 : 8;
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

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
  return llvm::map_to_vector<4>(
      state, [&](Value buffer) { return at.readVector(buffer, place, lanes); });
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
  int64_t bits = llvm::Log2_64(block), levels = SortWords::passesFor(rows.extent) - bits;
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
    state = at.loop(
        zero, end, both, state, [&](LoopWriter outer, Value begin, Values state) {
          Value last = outer.sub(outer.add(begin, both), one);
          Value missing = most(outer, outer.sub(outer.add(last, one), end), zero);
          return outer.loop(missing, width, one, state,
                            [&](LoopWriter inner, Value i, Values state) {
                              return exchangeRows(inner, rows, state, inner.add(begin, i),
                                                  inner.sub(last, i));
                            });
        });
    // Distances from half the width to a block.
    state = at.loop(zero, level, one, state, [&](LoopWriter outer, Value step, Values state) {
      Value bit = outer.sub(outer.sub(exponent, one), step), distance = power(outer, bit);
      Value pair = outer.add(bit, one), below = outer.sub(distance, one);
      Value whole = arith::ShRUIOp::create(outer.b, outer.loc, end, pair);
      Value rest = outer.sub(end, arith::ShLIOp::create(outer.b, outer.loc, whole, pair));
      Value comparators =
          outer.add(arith::ShLIOp::create(outer.b, outer.loc, whole, bit),
                    most(outer, outer.sub(rest, distance), zero));
      return outer.loop(zero, comparators, one, state, [&](LoopWriter inner, Value i, Values state) {
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

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

static Value shuffle(LoopWriter at, Value x, Value y, int64_t lanes,
                     llvm::function_ref<int64_t(int64_t)> from) {
  auto mask = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes), from);
  return vector::ShuffleOp::create(at.b, at.loc, x, y, mask);
}

/// Columns of a table in the first half become runs at `base` of the second.
Value VectorSort::transposeTable(LoopWriter at, Value buffer, Value base, int64_t rows) const {
  Value zero = at.index(0), one = at.index(1);
  return at.loop(
      zero, at.index(rows), at.index(lanes), buffer, [&](LoopWriter at, Value first, Values state) {
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

/// Merges neighbouring runs of `width` elements among `extent` from half `from` into the other.
Value VectorSort::mergePass(LoopWriter at, Value buffer, Value from, Value width, Value begin,
                            int64_t extent) const {
  Value end = at.add(begin, at.index(extent)), both = at.add(width, width);
  Value last = at.sub(end, at.index(1)), chunk = at.index(kMerged * lanes), zero = at.index(0);
  Value into = at.sub(at.index(1), from);
  auto readChunk = [&](LoopWriter at, Value buffer, Value begin) {
    Values vectors;
    for (int64_t i = 0; i < kMerged; ++i)
      vectors.push_back(at.readVector(buffer, {from, at.add(begin, at.index(i * lanes))}, lanes));
    return vectors;
  };
  auto writeChunk = [&](LoopWriter at, Value buffer, Value begin, ArrayRef<Value> vectors) {
    for (auto [i, vector] : llvm::enumerate(vectors))
      buffer = at.writeVector(
          buffer, {into, at.add(begin, at.index(static_cast<int64_t>(i) * lanes))}, vector);
    return buffer;
  };
  return at.loop(begin, end, both, buffer, [&](LoopWriter outer, Value begin, Values state) {
    Value middle = outer.min(outer.add(begin, width), end);
    Value stop = outer.min(outer.add(begin, both), end);
    Values held = readChunk(outer, state[0], begin);
    llvm::append_range(state, Values{outer.add(begin, chunk), middle});
    llvm::append_range(state, held);
    state = outer.loop(
        begin, outer.sub(stop, chunk), chunk, state,
        [&](LoopWriter inner, Value to, Values state) {
          Value left = state[1], right = state[2];
          Value x = inner.read(state[0], {from, inner.min(left, last)});
          Value y = inner.read(state[0], {from, inner.min(right, last)});
          Type boolean = inner.b.getI1Type();
          Value isLeft = inner.select(inner.less(right, stop), inner.less(x, y),
                                      inner.constant(boolean, 1));
          isLeft = inner.select(inner.less(left, middle), isLeft, inner.constant(boolean, 0));
          Values next = readChunk(inner, state[0], inner.select(isLeft, left, right));
          Value step = inner.select(isLeft, chunk, zero);
          // The next in reverse after those held: a bitonic sequence.
          SmallVector<Value> all(state.begin() + 3, state.end());
          for (Value vector : llvm::reverse(next))
            all.push_back(shuffle(inner, vector, vector, lanes,
                                  [&](int64_t lane) { return lanes - 1 - lane; }));
          sortBitonic(inner, all);
          state[0] = writeChunk(inner, state[0], to, ArrayRef<Value>(all).take_front(kMerged));
          state[1] = inner.add(left, step);
          state[2] = inner.add(right, inner.sub(chunk, step));
          llvm::copy(ArrayRef<Value>(all).drop_front(kMerged), state.begin() + 3);
          return state;
        });
    ArrayRef<Value> rest = ArrayRef<Value>(state).drop_front(3);
    return Values{writeChunk(outer, state[0], outer.sub(stop, chunk), rest)};
  })[0];
}

Value VectorSort::mergeRuns(LoopWriter at, Value buffer, int64_t from, int64_t width, Value begin,
                            int64_t extent) const {
  int64_t passes = SortWords::passesFor(llvm::divideCeil(extent, width));
  return at.loop(at.index(0), at.index(passes), at.index(1), buffer,
                 [&](LoopWriter at, Value pass, Values state) {
                   Value now = arith::ShLIOp::create(at.b, at.loc, at.index(width), pass);
                   Value done = arith::AndIOp::create(at.b, at.loc, pass, at.index(1));
                   Value half = arith::XOrIOp::create(at.b, at.loc, done, at.index(from));
                   return Values{mergePass(at, state[0], half, now, begin, extent)};
                 })[0];
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static SmallVector<OpFoldResult> sizesOf(LoopWriter at, ArrayRef<int64_t> sizes) {
  return getAsIndexOpFoldResult(at.b.getContext(), sizes);
}

/// The shape of a tile in three dimensions.
static SmallVector<int64_t> shapeOf(const Tile &tile, int64_t count, bool isAlongOuter) {
  return isAlongOuter ? SmallVector<int64_t>{tile.lines, count, 1}
                      : SmallVector<int64_t>{1, count, tile.lines};
}

/// The first `count` elements of the lines of a tile: as lines x elements if lines are along
/// `outer`, else elements x lines; of a flat tile the elements.
Value VectorSort::sliceOf(LoopWriter at, Value tensor, const Tile &tile, int64_t count) const {
  SmallVector<int64_t> shape = shapeOf(tile, count, isAlongOuter());
  SmallVector<int64_t> flat = {shape[isAlongOuter() ? 0 : 1], shape[isAlongOuter() ? 1 : 2]};
  if (tile.isFlat)
    flat = {count};
  auto type = RankedTensorType::get(flat, getElementTypeOrSelf(tensor.getType()));
  SmallVector<OpFoldResult> from{tile.o, at.b.getIndexAttr(0), tile.j};
  return tensor::ExtractSliceOp::create(at.b, at.loc, type, tensor, from, sizesOf(at, shape),
                                        sizesOf(at, {1, 1, 1}));
}

Value VectorSort::inserted(LoopWriter at, Value slice, Value tensor, const Tile &tile,
                           int64_t count) const {
  SmallVector<OpFoldResult> from{tile.o, at.b.getIndexAttr(0), tile.j};
  return tensor::InsertSliceOp::create(at.b, at.loc, slice, tensor, from,
                                       sizesOf(at, shapeOf(tile, count, isAlongOuter())),
                                       sizesOf(at, {1, 1, 1}));
}

SmallVector<AffineMap> VectorSort::mapsOf(LoopWriter at, const Tile &tile) const {
  OpBuilder &b = at.b;
  AffineMap identity = b.getMultiDimIdentityMap(tile.isFlat ? 1 : 2);
  if (tile.isFlat || !isAlongOuter())
    return {identity, identity};
  return {identity, AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, b.getContext())};
}

Value VectorSort::wordsOf(LoopWriter at, size_t number, const Tile &tile, Value into) const {
  OpBuilder &b = at.b;
  Values inputs;
  SmallVector<AffineMap> maps = mapsOf(at, tile);
  std::swap(maps[0], maps[1]);
  bool hasKey = number < words.op.getKeys(), hasIndex = !isPlain && number + 1 == numWords;
  if (hasKey)
    inputs.push_back(sliceOf(at, words.inputs[number], tile, extent));
  else
    maps.erase(maps.begin());
  auto generic = linalg::GenericOp::create(
      b, at.loc, TypeRange(into.getType()), inputs, into, maps,
      loopsOf(tile, utils::IteratorType::parallel),
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        LoopWriter inner{body, loc};
        Value value;
        if (hasKey)
          value = isPlain ? words.keyOf(inner, arguments[0]) : words.keyWord(inner, arguments[0]);
        if (hasIndex) {
          Values own;
          if (hasKey)
            own.push_back(value);
          value = words.withIndex(inner, own, linalg::IndexOp::create(body, loc, 0)).back();
        }
        linalg::YieldOp::create(body, loc, value);
      });
  return generic.getResult(0);
}

/// Zeros and NaN of the lines of a tile have equal keys and several bits: they are written in the
/// order of the line to where they begin in the sorted one.
Value VectorSort::restoreEqual(LoopWriter at, const Tile &tile, Value result) const {
  Type type = elementType();
  if (!isa<FloatType>(type))
    return result;
  auto wide = type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
  Type bits = IntegerType::get(type.getContext(), wide.getIntOrFloatBitWidth());
  auto widened = [&](LoopWriter at, Value element) -> Value {
    return wide == type ? element : arith::ExtFOp::create(at.b, at.loc, wide, element).getResult();
  };
  auto isNaN = [&](LoopWriter at, Value x) -> Value {
    return arith::CmpFOp::create(at.b, at.loc, arith::CmpFPredicate::UNO, x, x);
  };
  Value input = words.inputs[0];
  // Their number, which is mostly zero.
  Type i32 = at.b.getI32Type();
  Value none =
      linalg::FillOp::create(at.b, at.loc, at.constant(i32, 0), at.empty({}, i32)).getResult(0);
  unsigned rank = tile.isFlat ? 1 : 2;
  SmallVector<AffineMap> maps{at.b.getMultiDimIdentityMap(rank),
                              AffineMap::get(rank, 0, at.b.getContext())};
  auto number = linalg::GenericOp::create(
      at.b, at.loc, TypeRange(none.getType()), sliceOf(at, input, tile, extent), none, maps,
      loopsOf(tile, utils::IteratorType::reduction),
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        LoopWriter inner{body, loc};
        Value x = widened(inner, arguments[0]);
        Value raw = arith::BitcastOp::create(body, loc, bits, x);
        Value negative = inner.constant(bits, llvm::minIntN(bits.getIntOrFloatBitWidth()));
        Value isNegative =
            arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, raw, negative);
        Value isEither = arith::OrIOp::create(body, loc, isNegative, isNaN(inner, x));
        Value more = arith::ExtUIOp::create(body, loc, i32, isEither);
        Value sum = arith::AddIOp::create(body, loc, arguments[1], more);
        linalg::YieldOp::create(body, loc, sum);
      });
  Value isAny = at.less(at.constant(i32, 0), at.read(number.getResult(0), {}));
  Value zero = at.index(0), one = at.index(1);
  Value affected = at.select(isAny, at.index(tile.lines), zero);
  return at.loop(zero, affected, one, result, [&](LoopWriter at, Value lane, Values state) {
    Value o = isAlongOuter() ? at.add(tile.o, lane) : tile.o;
    Value j = isAlongOuter() ? tile.j : at.add(tile.j, lane);
    auto constantKey = [&](double value) {
      auto attribute = at.b.getFloatAttr(type, value);
      return words.keyOf(at, arith::ConstantOp::create(at.b, at.loc, attribute));
    };
    Value zeroKey = constantKey(0), lastKey = constantKey(std::nan(""));
    Value end = at.index(extent);
    Values places = at.loop(zero, end, one, {zero, zero}, [&](LoopWriter inner, Value i, Values n) {
      Value key = words.keyOf(inner, inner.read(input, {o, i, j}));
      n[0] = inner.add(n[0], inner.select(inner.less(key, zeroKey), one, zero));
      n[1] = inner.add(n[1], inner.select(inner.less(key, lastKey), one, zero));
      return n;
    });
    llvm::append_range(state, places);
    state = at.loop(zero, end, one, state, [&](LoopWriter inner, Value i, Values state) {
      Value element = inner.read(input, {o, i, j}), key = words.keyOf(inner, element);
      for (auto [of, own] : {std::pair(size_t(1), zeroKey), std::pair(size_t(2), lastKey)}) {
        Value isOne =
            arith::CmpIOp::create(inner.b, inner.loc, arith::CmpIPredicate::eq, key, own);
        Value next = inner.add(state[of], inner.select(isOne, one, zero));
        Value isInside = inner.less(state[of], inner.index(count));
        Value times = inner.select(arith::AndIOp::create(inner.b, inner.loc, isOne, isInside), one,
                                   zero);
        Value place = state[of];
        state[0] = inner.loop(zero, times, one, state[0],
                              [&](LoopWriter once, Value, Values result) {
                                return Values{once.write(result[0], {o, place, j}, element)};
                              })[0];
        state[of] = next;
      }
      return state;
    });
    state.truncate(1);
    return state;
  })[0];
}

/// The sorted operands of a tile, from the table of sorted keys or from their words.
Values VectorSort::placed(LoopWriter at, const Tile &tile, Values results, Value sorted,
                          function_ref<Values(LoopWriter, Value, Value)> wordsAt) const {
  OpBuilder &b = at.b;
  if (isPlain) {
    Value into = sliceOf(at, results[0], tile, count);
    auto generic = linalg::GenericOp::create(
        b, at.loc, TypeRange(into.getType()), sorted, into, mapsOf(at, tile),
        loopsOf(tile, utils::IteratorType::parallel),
        [&](OpBuilder &body, Location loc, ValueRange arguments) {
          Value element = words.elementOf({body, loc}, arguments[0], elementType());
          linalg::YieldOp::create(body, loc, element);
        });
    Value result = inserted(at, generic.getResult(0), results[0], tile, count);
    return {restoreEqual(at, tile, result)};
  }
  Value zero = at.index(0), one = at.index(1);
  return at.loop(
      zero, at.index(tile.lines), one, results, [&](LoopWriter outer, Value lane, Values results) {
        Value o = isAlongOuter() ? outer.add(tile.o, lane) : tile.o;
        Value j = isAlongOuter() ? tile.j : outer.add(tile.j, lane);
        return outer.loop(zero, outer.index(count), one, results,
                          [&](LoopWriter inner, Value i, Values results) {
                            Value from = words.indexOf(inner, wordsAt(inner, i, lane));
                            for (auto [input, result] : llvm::zip(words.inputs, results))
                              result = inner.write(result, {o, i, j},
                                                   inner.read(input, {o, from, j}));
                            return results;
                          });
      });
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

bool VectorSort::usesLanes() const {
  const Lines &lines = words.lines;
  int64_t side = lines.inner == 1 ? lines.outer : lines.inner;
  int64_t bytes = extent * kVectorBytes * static_cast<int64_t>(numWords);
  if (bytes > kTableBytes || side * 4 < this->lanes)
    return false;
  // Merges are faster beyond the innermost cache; but they read elements of columns one by one.
  if (usesMerges() && lines.inner == 1 && extent > kMostRows)
    return false;
  // A few tables of long lines would leave workers idle.
  int64_t tables = llvm::divideCeil(side, this->lanes) * (lines.inner == 1 ? 1 : lines.outer);
  return !usesMerges() || extent < 512 || tables >= 4;
}

Values VectorSort::lanesOf(LoopWriter at, Values results) const {
  const size_t operands = results.size();
  Values state = std::move(results);
  for (size_t number = 0; number < numWords; ++number)
    state.push_back(at.empty({extent, lanes}, word));
  // As many lines a tile as possible; along `inner`, equal numbers.
  int64_t side = isAlongOuter() ? words.lines.outer : words.lines.inner;
  int64_t perTile = isAlongOuter() ? lanes : llvm::divideCeil(side, llvm::divideCeil(side, lanes));
  auto sorted = [&](LoopWriter at, const Tile &tile, Values state) {
    Values buffers(ArrayRef<Value>(state).drop_front(operands));
    state.truncate(operands);
    SmallVector<OpFoldResult> from = sizesOf(at, {0, 0}), steps = sizesOf(at, {1, 1});
    auto columns = [&](LoopWriter at, Value buffer, int64_t rows) -> Value {
      return tensor::ExtractSliceOp::create(at.b, at.loc,
                                            RankedTensorType::get({rows, tile.lines}, word), buffer,
                                            from, sizesOf(at, {rows, tile.lines}), steps);
    };
    for (auto [number, buffer] : llvm::enumerate(buffers)) {
      Value own = wordsOf(at, number, tile, columns(at, buffer, extent));
      buffer = tensor::InsertSliceOp::create(at.b, at.loc, own, buffer, from,
                                             sizesOf(at, {extent, tile.lines}), steps);
    }
    Value zero = at.index(0);
    auto place = [&](LoopWriter, Value row) { return Values{row, zero}; };
    buffers = sortColumns(at, {extent, place}, buffers);
    Value sorted = isPlain ? columns(at, buffers[0], count) : Value();
    state = placed(at, tile, state, sorted, [&](LoopWriter at, Value i, Value lane) {
      return at.readAll(buffers, {i, lane});
    });
    llvm::append_range(state, buffers);
    return state;
  };
  int64_t whole = side / perTile, rest = side % perTile, others = words.lines.outer;
  auto tasks = [&](int64_t number, llvm::function_ref<Tile(LoopWriter, Value)> tileOf) {
    state = at.loop(at.index(0), at.index(number), at.index(1), state,
                    [&](LoopWriter inner, Value task, Values state) {
                      return sorted(inner, tileOf(inner, task), state);
                    });
    state[0].getDefiningOp()->setAttr(kTaskLoopAttr, at.b.getUnitAttr());
  };
  Value zero = at.index(0);
  auto times = [](LoopWriter at, Value x, int64_t by) -> Value {
    return arith::MulIOp::create(at.b, at.loc, x, at.index(by));
  };
  if (isAlongOuter()) {
    tasks(whole, [&](LoopWriter at, Value task) {
      return Tile{times(at, task, perTile), zero, perTile};
    });
    if (rest)
      tasks(1, [&](LoopWriter at, Value) { return Tile{at.index(whole * perTile), zero, rest}; });
  } else {
    tasks(others * whole, [&](LoopWriter at, Value task) {
      Value o = at.b.createOrFold<arith::DivUIOp>(at.loc, task, at.index(whole));
      Value part = at.b.createOrFold<arith::RemUIOp>(at.loc, task, at.index(whole));
      return Tile{o, times(at, part, perTile), perTile};
    });
    if (rest)
      tasks(others, [&](LoopWriter at, Value o) {
        return Tile{o, at.index(whole * perTile), rest};
      });
  }
  state.truncate(operands);
  return state;
}

Values VectorSort::mergesOf(LoopWriter at, Values results) const {
  const size_t operands = results.size();
  Values state = std::move(results);
  // Tables of equally many rows.
  int64_t tables = llvm::divideCeil(extent, kMostRows * lanes);
  int64_t rows = llvm::alignTo(llvm::divideCeil(extent, tables * lanes), kRowMultiple);
  int64_t table = rows * lanes, padded = tables * table;
  // Columns become runs in half 1; those of a table are merged while it is in the cache.
  int64_t merged = (1 + SortWords::passesFor(lanes)) % 2;
  int64_t half = (merged + SortWords::passesFor(tables)) % 2;
  state.push_back(at.empty({2, padded}, word));
  Value zero = at.index(0), one = at.index(1);
  auto part = [&](LoopWriter at, Value buffer, int64_t half, int64_t begin, int64_t size) -> Value {
    return tensor::ExtractSliceOp::create(at.b, at.loc, RankedTensorType::get({size}, word), buffer,
                                          sizesOf(at, {half, begin}), sizesOf(at, {1, size}),
                                          sizesOf(at, {1, 1}));
  };
  auto insert = [&](LoopWriter at, Value own, Value buffer, int64_t begin, int64_t size) -> Value {
    return tensor::InsertSliceOp::create(at.b, at.loc, own, buffer, sizesOf(at, {0, begin}),
                                         sizesOf(at, {1, size}), sizesOf(at, {1, 1}));
  };
  state = at.loop(
      zero, at.index(words.lines.outer * words.lines.inner), one, state,
      [&](LoopWriter at, Value line, Values state) {
        Value inside = at.index(words.lines.inner), buffer = state.back();
        Tile tile{at.b.createOrFold<arith::DivUIOp>(at.loc, line, inside),
                  at.b.createOrFold<arith::RemUIOp>(at.loc, line, inside), 1, /*isFlat=*/true};
        Value own = wordsOf(at, 0, tile, part(at, buffer, 0, 0, extent));
        buffer = insert(at, own, buffer, 0, extent);
        if (padded > extent) {
          int64_t size = padded - extent;
          Value greatest = at.constant(word, llvm::maxIntN(word.getIntOrFloatBitWidth()));
          Value beyond = linalg::FillOp::create(at.b, at.loc, greatest,
                                                part(at, buffer, 0, extent, size))
                             .getResult(0);
          buffer = insert(at, beyond, buffer, extent, size);
        }
        buffer = at.loop(zero, at.index(padded), at.index(table), buffer,
                         [&](LoopWriter at, Value base, Values state) {
                           auto place = [&](LoopWriter at, Value row) {
                             Value offset = arith::MulIOp::create(at.b, at.loc, row,
                                                                  at.index(lanes));
                             return Values{zero, at.add(base, offset)};
                           };
                           state = sortColumns(at, {rows, place}, state);
                           state[0] = transposeTable(at, state[0], base, rows);
                           return Values{mergeRuns(at, state[0], 1, rows, base, table)};
                         })[0];
        buffer = mergeRuns(at, buffer, merged, table, zero, padded);
        state.truncate(operands);
        Value sorted = isPlain ? part(at, buffer, half, 0, count) : Value();
        state = placed(at, tile, state, sorted, [&](LoopWriter at, Value i, Value) {
          return Values{at.read(buffer, {at.index(half), i})};
        });
        state.push_back(buffer);
        return state;
      });
  if (words.lines.outer * words.lines.inner > 1)
    state[0].getDefiningOp()->setAttr(kTaskLoopAttr, at.b.getUnitAttr());
  state.truncate(operands);
  return state;
}

FailureOr<Values> codegen::sortInVectors(LoopWriter write, const SortWords &words) {
  VectorSort sort(words);
  if (words.isSelection() || !(sort.usesLanes() || sort.usesMerges()))
    return failure();
  return words.group(write, "sort", [&](LoopWriter at, Values results) {
    return sort.usesLanes() ? sort.lanesOf(at, results) : sort.mergesOf(at, results);
  });
}
