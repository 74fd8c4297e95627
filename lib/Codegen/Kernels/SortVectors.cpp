//===- SortVectors.cpp - Sort lines in vectors ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortVectors.h"

#include "tessera/Codegen/Kernels/TaskLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// Bytes of a table that stays in the cache.
static constexpr int64_t kTableBytes = 256 << 10;
/// The most rows of a table of a long line, and what divides them: columns are whole chunks.
static constexpr int64_t kMostRows = 1024, kRowMultiple = 64;

VectorSort::VectorSort(const SortLines &words)
    : words(words), extent(words.lines.extent), count(words.op.getCount()),
      isPlain(words.inputs.size() == 1), numWords(isPlain ? 1 : words.numWords), word(words.word) {
  Type type = elementType();
  if (isPlain && !type.isIndex() && type.getIntOrFloatBitWidth() <= 32)
    word = IntegerType::get(word.getContext(), 32);
  lanes = kVectorBytes * 8 / word.getIntOrFloatBitWidth();
  block = numWords == 1 ? 16 : 8;
  size.tables = llvm::divideCeil(extent, kMostRows * lanes);
  size.rows = llvm::alignTo(llvm::divideCeil(extent, size.tables * lanes), kRowMultiple);
  size.table = size.rows * lanes;
  size.tables = llvm::divideCeil(extent, size.table);
  size.padded = size.tables * size.table;
  // Columns become runs in half 1, which are merged while they are in the cache.
  size.half = (1 + SortLines::passesFor(lanes)) % 2;
  assert(kRowMultiple % (kMerged * lanes) == 0 && "runs have a part of a chunk");
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
        Value isOne = arith::CmpIOp::create(inner.b, inner.loc, arith::CmpIPredicate::eq, key, own);
        Value next = inner.add(state[of], inner.select(isOne, one, zero));
        Value isInside = inner.less(state[of], inner.index(count));
        Value times =
            inner.select(arith::AndIOp::create(inner.b, inner.loc, isOne, isInside), one, zero);
        Value place = state[of];
        state[0] =
            inner.loop(zero, times, one, state[0], [&](LoopWriter once, Value, Values result) {
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
    auto generic =
        linalg::GenericOp::create(b, at.loc, TypeRange(into.getType()), sorted, into,
                                  mapsOf(at, tile), loopsOf(tile, utils::IteratorType::parallel),
                                  [&](OpBuilder &body, Location loc, ValueRange arguments) {
                                    Value element =
                                        words.elementOf({body, loc}, arguments[0], elementType());
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
        return outer.loop(
            zero, outer.index(count), one, results, [&](LoopWriter inner, Value i, Values results) {
              Value from = words.indexOf(inner, wordsAt(inner, i, lane));
              for (auto [input, result] : llvm::zip(words.inputs, results))
                result = inner.write(result, {o, i, j}, inner.read(input, {o, from, j}));
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
    tasks(whole,
          [&](LoopWriter at, Value task) { return Tile{times(at, task, perTile), zero, perTile}; });
    if (rest)
      tasks(1, [&](LoopWriter at, Value) { return Tile{at.index(whole * perTile), zero, rest}; });
  } else {
    tasks(others * whole, [&](LoopWriter at, Value task) {
      Value o = at.b.createOrFold<arith::DivUIOp>(at.loc, task, at.index(whole));
      Value part = at.b.createOrFold<arith::RemUIOp>(at.loc, task, at.index(whole));
      return Tile{o, times(at, part, perTile), perTile};
    });
    if (rest)
      tasks(others,
            [&](LoopWriter at, Value o) { return Tile{o, at.index(whole * perTile), rest}; });
  }
  state.truncate(operands);
  return state;
}

Value VectorSort::partOf(LoopWriter at, Value buffer, OpFoldResult row, OpFoldResult begin,
                         int64_t number) const {
  return tensor::ExtractSliceOp::create(at.b, at.loc, RankedTensorType::get({number}, word), buffer,
                                        ArrayRef<OpFoldResult>{row, begin},
                                        sizesOf(at, {1, number}), sizesOf(at, {1, 1}));
}

Value VectorSort::withPart(LoopWriter at, Value part, Value buffer, OpFoldResult row,
                           OpFoldResult begin, int64_t number) const {
  return tensor::InsertSliceOp::create(at.b, at.loc, part, buffer,
                                       ArrayRef<OpFoldResult>{row, begin}, sizesOf(at, {1, number}),
                                       sizesOf(at, {1, 1}));
}

Value VectorSort::padded(LoopWriter at, Value buffer, int64_t number, int64_t end) const {
  if (number == end)
    return buffer;
  Value greatest = at.constant(word, llvm::maxIntN(word.getIntOrFloatBitWidth()));
  OpFoldResult row = at.b.getIndexAttr(0), begin = at.b.getIndexAttr(number);
  Value part = partOf(at, buffer, row, begin, end - number);
  part = linalg::FillOp::create(at.b, at.loc, greatest, part).getResult(0);
  return withPart(at, part, buffer, row, begin, end - number);
}

Value VectorSort::sortTable(LoopWriter at, Value buffer, Value base) const {
  auto place = [&](LoopWriter at, Value row) {
    Value offset = arith::MulIOp::create(at.b, at.loc, row, at.index(lanes));
    return Values{at.index(0), at.add(base, offset)};
  };
  buffer = sortColumns(at, {size.rows, place}, Values{buffer})[0];
  buffer = transposeTable(at, buffer, base, size.rows);
  return mergeRuns(at, buffer, 1, size.rows, base, size.table);
}

Tile VectorSort::lineAt(LoopWriter at, Value line) const {
  Value inside = at.index(words.lines.inner);
  return {at.b.createOrFold<arith::DivUIOp>(at.loc, line, inside),
          at.b.createOrFold<arith::RemUIOp>(at.loc, line, inside), 1, /*isFlat=*/true};
}

Values VectorSort::mergesOf(LoopWriter at, Values results) const {
  const size_t operands = results.size();
  Values state = std::move(results);
  const int64_t half = (size.half + SortLines::passesFor(size.tables)) % 2;
  state.push_back(at.empty({2, size.padded}, word));
  Value zero = at.index(0), one = at.index(1);
  OpFoldResult none = at.b.getIndexAttr(0);
  auto sorted = [&](LoopWriter at, Value line, Values state) {
    Tile tile = lineAt(at, line);
    Value buffer = state.back();
    Value own = wordsOf(at, 0, tile, partOf(at, buffer, none, none, extent));
    buffer = withPart(at, own, buffer, none, none, extent);
    buffer = padded(at, buffer, extent, size.padded);
    buffer = at.loop(zero, at.index(size.padded), at.index(size.table), buffer,
                     [&](LoopWriter inner, Value base, Values state) {
                       return Values{sortTable(inner, state[0], base)};
                     })[0];
    buffer = mergeRuns(at, buffer, size.half, size.table, zero, size.padded);
    state.truncate(operands);
    Value keys = isPlain ? partOf(at, buffer, at.b.getIndexAttr(half), none, count) : Value();
    state = placed(at, tile, state, keys, [&](LoopWriter at, Value i, Value) {
      return Values{at.read(buffer, {at.index(half), i})};
    });
    state.push_back(buffer);
    return state;
  };
  state = at.loop(zero, at.index(words.lines.outer * words.lines.inner), one, state, sorted);
  if (words.lines.outer * words.lines.inner > 1)
    state[0].getDefiningOp()->setAttr(kTaskLoopAttr, at.b.getUnitAttr());
  state.truncate(operands);
  return state;
}

FailureOr<Values> codegen::sortInVectors(LoopWriter write, const SortLines &words) {
  VectorSort sort(words);
  if (words.isSelection() || !(sort.usesLanes() || sort.usesMerges()))
    return failure();
  return words.group(write, "sort", [&](LoopWriter at, Values results) {
    return sort.usesLanes() ? sort.lanesOf(at, results) : sort.mergesOf(at, results);
  });
}
