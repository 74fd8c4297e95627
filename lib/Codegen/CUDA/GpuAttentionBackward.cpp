//===- GpuAttentionBackward.cpp - The derivative of attention -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two launches, so that every element has one owner that sums it in a fixed order. A block of the
// first has a tile of queries and iterates over the keys; a block of the second has a tile of keys
// and iterates over the queries of all heads that share these keys. Both recompute the scores, the
// second with rows and columns exchanged: its weights are then the left operand of the sums.
//
// In f32 the products take the time, and one launch shares the scores: the second, whose blocks
// then have several tiles of keys, and each a partial gradient by query in memory. No other block
// writes there, so that the order of its sum is fixed; another launch adds the parts.
//
//===----------------------------------------------------------------------===//

#include "GpuAttention.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

enum { kQuery, kKey, kValue, kGradient, kLogsumexp, kDelta };

class Backward {
protected:
  explicit Backward(AttentionTiles &tiles)
      : t(tiles), b(tiles.b), loc(tiles.loc), parts(tiles.parts), domain(parts.domain),
        query(tiles.queryLoop()) {}

  /// Computes the weights of scores, and the gradients by their products: they replace `products`
  /// and `byWeights`, the product of gradient and value. `uneven`: loops whose index may be out of
  /// bounds.
  struct Element {
    Value queryIndex, keyIndex, logsumexp, delta;
  };
  void differentiate(Fragments &products, Fragments &byWeights,
                     function_ref<Element(size_t fragment, unsigned i)> elementOf,
                     ArrayRef<unsigned> uneven) {
    for (size_t number = 0; number < products.size(); ++number)
      for (unsigned i = 0; i < 4; ++i) {
        Element at = elementOf(number, i);
        Value product = products[number][i];
        Value score = t.evaluate(parts.score(), product, at.queryIndex, at.keyIndex);
        Value share = t.exponential(arith::SubFOp::create(b, loc, score, at.logsumexp));
        Value byShare = t.weigh(byWeights[number][i], at.queryIndex, at.keyIndex);
        Value scoreGradient =
            arith::MulFOp::create(b, loc, share, arith::SubFOp::create(b, loc, byShare, at.delta));
        Value weight = t.weigh(share, at.queryIndex, at.keyIndex);
        Value byProduct =
            t.evaluate(parts.op->getRegion(1), product, at.queryIndex, at.keyIndex, scoreGradient);
        // Elements beyond the operands add nothing.
        for (unsigned loop : uneven) {
          Value index = loop == domain.key ? at.keyIndex : at.queryIndex;
          Value inside = t.less(index, t.constant(t.extent(loop)));
          weight = t.select(inside, weight, t.real(0));
          byProduct = t.select(inside, byProduct, t.real(0));
        }
        products[number][i] = weight;
        byWeights[number][i] = byProduct;
      }
  }
  void countReads() {
    for (Value root : t.roots)
      t.count(root, /*store=*/false);
  }

  AttentionTiles &t;
  OpBuilder &b;
  Location loc;
  const ext::AttentionParts &parts;
  const ext::AttentionDomain &domain;
  std::optional<unsigned> query;
  SharedTile queries, keys, values, gradients, weights;
  Value firstQuery, firstKey;
};

class QueryGradient : Backward {
public:
  explicit QueryGradient(AttentionTiles &tiles) : Backward(tiles) {}

  GpuShape emit(Value result) {
    int64_t depth = domain.sizeOf(domain.features), width = domain.sizeOf(domain.outputFeatures);
    int64_t numQueries = t.extent(query), numKeys = t.extent(domain.key);
    TileSizes sizes = backwardTiles(t, numQueries, std::max(depth, width));
    t.setWarps(sizes.warps);
    int64_t rows = sizes.warps * AttentionTiles::kRows;
    queries = t.makeTile(t.element(), rows, depth);
    gradients = t.makeTile(t.element(), rows, width);
    const AttentionTiles::Walked walked[] = {{keys, kKey, depth}, {values, kValue, width}};
    t.makeWalked(walked, domain.key, sizes.columns);
    if (!t.usesMma())
      weights = t.makeTile(t.element(), rows, sizes.columns);
    SmallVector<unsigned> outer(domain.batch);
    llvm::append_range(outer, t.otherQueryLoops());
    int64_t rowTiles = llvm::divideCeil(numQueries, rows);
    t.fixDigits(outer, t.divide(t.launch.blockIndex(), rowTiles));
    Value tile = t.remainder(t.launch.blockIndex(), rowTiles);
    std::optional<KeyRange> range = visibleKeys(t);
    if (range)
      tile = t.add(t.multiply(tile, -1), rowTiles - 1);
    firstQuery = t.multiply(tile, rows);

    t.put(queries, t.fetch(queries, kQuery, query, firstQuery));
    t.put(gradients, t.fetch(gradients, kGradient, query, firstQuery));
    t.barrier();
    LeftFragments left = t.leftOf(queries), leftGradients = t.leftOf(gradients);
    std::array<Value, 2> logsumexp, delta;
    for (unsigned which : {0, 1}) {
      Value row = t.add(firstQuery, t.rowOf(which));
      logsumexp[which] = t.convert(t.loadElement(kLogsumexp, query, row), b.getF32Type());
      delta[which] = t.convert(t.loadElement(kDelta, query, row), b.getF32Type());
    }
    Value begin = t.constant(0), end = t.constant(numKeys);
    if (range)
      std::tie(begin, end) = keysOf(t, *range, firstQuery, rows, keys.rows);
    auto step = [&](Value at, ValueRange carried) {
      firstKey = at;
      Fragments products = t.multiply(queries, left, keys);
      Fragments byWeights = t.multiply(gradients, leftGradients, values);
      differentiate(
          products, byWeights,
          [&](size_t fragment, unsigned i) {
            return Element{t.add(firstQuery, t.rowOf(i / 2)),
                           t.add(at, t.columnOf(fragment, i % 2)), logsumexp[i / 2], delta[i / 2]};
          },
          numKeys % keys.rows != 0 ? ArrayRef(domain.key) : ArrayRef<unsigned>());
      Fragments sums = unflatten(carried);
      t.accumulate(sums, byWeights, keys, weights);
      return flatten(sums);
    };
    Fragments sums = unflatten(t.walk(walked, domain.key, begin, end, flatten(t.zeros(keys.depth)),
                                      /*stage=*/{}, step));
    t.store(queries, sums, result, parts.maps[kQuery], query, firstQuery);
    countReads();
    return shapeOf(domain.sizeOf(outer) * rowTiles);
  }

private:
  GpuShape shapeOf(int64_t blocks) {
    GpuShape shape;
    shape.blocks = blocks;
    shape.threads = t.warps() * kWarp;
    return shape;
  }
};

class KeyGradients : Backward {
public:
  explicit KeyGradients(AttentionTiles &tiles) : Backward(tiles) {}

  /// `partial`: if not null, the buffer of the gradients by query of each of the parts into which
  /// blocks cut the keys, in the layout of `byQuery`.
  GpuShape emit(Value byKey, Value byValue, Value byQuery = {}, Value partial = {},
                int64_t numParts = 0) {
    this->byQuery = byQuery;
    this->partial = partial;
    int64_t depth = domain.sizeOf(domain.features), width = domain.sizeOf(domain.outputFeatures);
    int64_t numKeys = t.extent(domain.key);
    TileSizes sizes = backwardTiles(t, numKeys, std::max(depth, width));
    t.setWarps(sizes.warps);
    int64_t rows = sizes.warps * AttentionTiles::kRows;
    keys = t.makeTile(t.element(), rows, depth);
    values = t.makeTile(t.element(), rows, width);
    t.makeWalked(walked(), query, sizes.columns);
    if (!t.usesMma())
      weights = t.makeTile(t.element(), rows, sizes.columns);
    logsumexps = t.launch.shared(b.getF32Type(), sizes.columns);
    deltas = t.launch.shared(b.getF32Type(), sizes.columns);
    int64_t rowTiles = llvm::divideCeil(numKeys, rows);
    int64_t blocks = partial ? numParts : rowTiles; // of a batch
    t.fixDigits(domain.batch, t.divide(t.launch.blockIndex(), blocks));
    Value tile = t.remainder(t.launch.blockIndex(), blocks);
    if (partial) {
      // Tiles are dealt out in turn, since those of a causal mask differ in their work.
      zeroPart(tile, numParts);
      t.loop(tile, t.constant(rowTiles), numParts, ValueRange(), [&](Value each, ValueRange) {
        overTile(each, rows, byKey, byValue);
        t.barrier(); // the tiles of keys and values have been stored
        return SmallVector<Value>();
      });
      t.count(partial, /*store=*/false, llvm::divideCeil(rowTiles, numParts));
      t.count(partial, /*store=*/true, llvm::divideCeil(rowTiles, numParts) + 1);
    } else {
      overTile(tile, rows, byKey, byValue);
    }
    countReads();
    GpuShape shape;
    shape.blocks = domain.sizeOf(domain.batch) * blocks;
    shape.threads = sizes.warps * kWarp;
    return shape;
  }

private:
  /// Computes the gradients by the keys of a tile, and their part of that by the queries.
  void overTile(Value tile, int64_t rows, Value byKey, Value byValue) {
    firstKey = t.multiply(tile, rows);
    t.put(keys, t.fetch(keys, kKey, domain.key, firstKey));
    t.put(values, t.fetch(values, kValue, domain.key, firstKey));
    t.barrier();
    leftKeys = t.leftOf(keys);
    leftValues = t.leftOf(values);

    Fragments sums = t.zeros(keys.depth), valueSums = t.zeros(values.depth);
    numKeySums = sums.size();
    llvm::append_range(sums, valueSums);
    SmallVector<unsigned> heads = t.otherQueryLoops();
    int64_t numHeads = domain.sizeOf(heads);
    auto overHead = [&](Value head, ValueRange carried) {
      t.fixDigits(heads, head);
      return overQueries(carried, rows);
    };
    SmallVector<Value> made =
        numHeads == 1 ? overHead(t.constant(0), flatten(sums))
                      : t.loop(t.constant(0), t.constant(numHeads), 1, flatten(sums), overHead);
    sums = unflatten(made);
    t.store(keys, ArrayRef(sums).take_front(numKeySums), byKey, parts.maps[kKey], domain.key,
            firstKey);
    t.store(values, ArrayRef(sums).drop_front(numKeySums), byValue, parts.maps[kValue], domain.key,
            firstKey);
  }

  /// Zeroes the part's gradient by query.
  void zeroPart(Value part, int64_t numParts) {
    auto type = cast<MemRefType>(byQuery.getType());
    Value memory = t.launch.flat(partial, /*write=*/true);
    partBase = numParts > 1 ? t.multiply(part, type.getNumElements()) : Value();
    int64_t depth = domain.sizeOf(domain.features), numQueries = t.extent(query);
    int64_t threads = t.warps() * kWarp, width = widthOfPart();
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(width == 1 ? t.element() : VectorType::get(width, t.element())));
    SmallVector<unsigned> heads = t.otherQueryLoops();
    Value count = t.constant(domain.sizeOf(heads) * numQueries * (depth / width));
    t.loop(t.launch.threadIndex(), count, threads, ValueRange(), [&](Value number, ValueRange) {
      Value row = t.divide(number, depth / width);
      t.fixDigits(heads, t.divide(row, numQueries));
      Value column = t.multiply(t.remainder(number, depth / width), width);
      t.put(zero, memory, t.add(placeOf(t.remainder(row, numQueries)), column));
      return SmallVector<Value>();
    });
    t.barrier(); // other threads add to these elements
  }
  int64_t widthOfPart() { return t.widthOf(parts.maps[kQuery], byQuery, query, /*store=*/true); }
  /// Where the row of a query begins in the part.
  Value placeOf(Value row) {
    return t.add(t.offsetOf(parts.maps[kQuery], byQuery, query, row, /*clamp=*/false), partBase);
  }

  /// Adds the product of the weights that `accumulate` has left in shared memory and the keys to
  /// the part: a thread has four queries by four features.
  void addByQuery() {
    constexpr int64_t kSide = 4;
    int64_t depth = domain.sizeOf(domain.features), numQueries = t.extent(query);
    int64_t across = keys.depth / kSide, total = queries.rows / kSide * across;
    int64_t threads = t.warps() * kWarp, width = widthOfPart();
    auto vector = VectorType::get(kSide, t.element());
    Value memory = t.launch.flat(partial, /*write=*/true);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
    auto inside = [&](Value condition) {
      auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    };
    for (int64_t first = 0; first < total; first += threads) {
      OpBuilder::InsertionGuard guard(b);
      Value number = t.add(t.launch.threadIndex(), first);
      if (first + threads > total)
        inside(t.less(number, t.constant(total)));
      Value row = t.multiply(t.divide(number, across), kSide);
      Value column = t.multiply(t.remainder(number, across), kSide);
      SmallVector<Value> sums =
          t.loop(t.constant(0), t.constant(keys.rows), 1, SmallVector<Value>(kSide, zero),
                 [&](Value key, ValueRange carried) {
                   Value some = t.loadVector(weights, key, row, kSide);
                   Value features = t.loadVector(keys, key, column, kSide);
                   SmallVector<Value> next;
                   for (int64_t i = 0; i < kSide; ++i) {
                     Value weight = vector::BroadcastOp::create(
                         b, loc, vector, vector::ExtractOp::create(b, loc, some, i).getResult());
                     next.push_back(vector::FMAOp::create(b, loc, weight, features, carried[i]));
                   }
                   return next;
                 });
      for (int64_t i = 0; i < kSide; ++i) {
        OpBuilder::InsertionGuard rowGuard(b);
        Value at = t.add(firstQuery, t.add(row, i));
        if (numQueries % queries.rows != 0)
          inside(t.less(at, t.constant(numQueries)));
        for (int64_t j = 0; j < kSide; j += width) {
          OpBuilder::InsertionGuard columnGuard(b);
          Value feature = t.add(column, j), some = sums[i];
          if (depth != keys.depth)
            inside(t.less(feature, t.constant(depth)));
          if (width == 1)
            some = vector::ExtractOp::create(b, loc, some, j);
          else if (width < kSide)
            some = vector::ExtractStridedSliceOp::create(
                b, loc, some, ArrayRef<int64_t>{j}, ArrayRef<int64_t>{width}, ArrayRef<int64_t>{1});
          Value place = t.add(placeOf(at), feature);
          Value old = t.load(memory, place, t.element(), width);
          t.put(arith::AddFOp::create(b, loc, old, some), memory, place);
        }
      }
    }
  }

  SmallVector<Value> overQueries(ValueRange carried, int64_t rows) {
    Value begin = t.constant(0), end = t.constant(t.extent(query));
    if (std::optional<KeyRange> range = visibleKeys(t))
      std::tie(begin, end) = queriesOf(t, *range, firstKey, rows, queries.rows);
    return t.walk(
        walked(), query, begin, end, carried,
        [&](Value at) {
          stageRows(logsumexps, kLogsumexp, at);
          stageRows(deltas, kDelta, at);
        },
        [&](Value at, ValueRange inner) { return step(at, inner); });
  }

  std::array<AttentionTiles::Walked, 2> walked() {
    return {{{queries, kQuery, domain.sizeOf(domain.features)},
             {gradients, kGradient, domain.sizeOf(domain.outputFeatures)}}};
  }

  /// Stages the values of each query of a tile, which all warps read.
  void stageRows(Value memory, unsigned operand, Value at) {
    Value thread = t.launch.threadIndex();
    int64_t threads = t.warps() * kWarp;
    for (int64_t first = 0; first < queries.rows; first += threads) {
      Value number = t.add(thread, first);
      Value value = t.convert(t.loadElement(operand, query, t.add(at, number)), b.getF32Type());
      OpBuilder::InsertionGuard guard(b);
      if (first + threads > queries.rows) {
        auto branch = scf::IfOp::create(b, loc, t.less(number, t.constant(queries.rows)),
                                        /*withElse=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      memref::StoreOp::create(b, loc, value, memory, number);
    }
  }

  SmallVector<Value> step(Value at, ValueRange carried) {
    firstQuery = at;
    SmallVector<unsigned> uneven;
    if (t.extent(query) % queries.rows != 0)
      uneven.push_back(*query);
    if (partial && t.extent(domain.key) % keys.rows != 0)
      uneven.push_back(domain.key);
    Fragments products = t.multiply(keys, leftKeys, queries);
    Fragments byWeights = t.multiply(values, leftValues, gradients);
    differentiate(
        products, byWeights,
        [&](size_t fragment, unsigned i) {
          Value column = t.columnOf(fragment, i % 2);
          return Element{t.add(at, column), t.add(firstKey, t.rowOf(i / 2)),
                         memref::LoadOp::create(b, loc, logsumexps, column),
                         memref::LoadOp::create(b, loc, deltas, column)};
        },
        uneven);
    Fragments sums = unflatten(carried);
    Fragments valueSums(ArrayRef(sums).drop_front(numKeySums));
    sums.resize(numKeySums);
    t.accumulate(valueSums, products, gradients, weights);
    t.accumulate(sums, byWeights, queries, weights);
    if (partial)
      addByQuery();
    llvm::append_range(sums, valueSums);
    return flatten(sums);
  }

  Value byQuery, partial, partBase;
  Value logsumexps, deltas;
  LeftFragments leftKeys, leftValues;
  size_t numKeySums = 0;
};

} // namespace

GpuShape emitQueryGradient(AttentionTiles &tiles, Value result) {
  return QueryGradient(tiles).emit(result);
}

GpuShape emitKeyGradients(AttentionTiles &tiles, Value byKey, Value byValue) {
  return KeyGradients(tiles).emit(byKey, byValue);
}

bool hasJointGradients(const AttentionTiles &tiles) {
  constexpr int64_t kMostFeatures = 64; // the sums of more take all registers
  const ext::AttentionDomain &domain = tiles.parts.domain;
  return !tiles.usesMma() && tiles.queryLoop() &&
         std::max(domain.sizeOf(domain.features), domain.sizeOf(domain.outputFeatures)) <=
             kMostFeatures;
}

int64_t jointParts(const AttentionTiles &tiles) {
  // Four blocks per multiprocessor of an H100 keep it busy until the last ones end.
  constexpr int64_t kBusyBlocks = 4 * 132;
  const ext::AttentionDomain &domain = tiles.parts.domain;
  int64_t numKeys = tiles.extent(domain.key);
  TileSizes sizes =
      backwardTiles(tiles, numKeys,
                    std::max(domain.sizeOf(domain.features), domain.sizeOf(domain.outputFeatures)));
  int64_t rowTiles = llvm::divideCeil(numKeys, sizes.warps * AttentionTiles::kRows);
  return std::clamp<int64_t>(kBusyBlocks / domain.sizeOf(domain.batch), 1, rowTiles);
}

GpuShape emitJointGradients(AttentionTiles &tiles, ArrayRef<Value> results, Value partial,
                            int64_t parts) {
  return KeyGradients(tiles).emit(results[1], results[2], results[0], partial, parts);
}

GpuShape emitQuerySum(AttentionTiles &tiles, Value result, Value partial, int64_t parts) {
  auto type = cast<MemRefType>(result.getType());
  int64_t total = type.getNumElements();
  int64_t width = total % 4 == 0 ? 4 : 1;
  tiles.count(partial, /*store=*/false);
  tiles.count(result, /*store=*/true);
  if (width == 1)
    tiles.note(result, /*store=*/true, bytesOf(type.getElementType()), "an odd number of elements");
  Value from = tiles.launch.flat(partial, /*write=*/false);
  Value to = tiles.launch.flat(result, /*write=*/true);
  return tiles.forEach(total / width, [&](Value index) {
    Value first = tiles.multiply(index, width);
    tiles.put(tiles.sumOfParts(from, first, total, parts, type.getElementType(), width), to, first);
  });
}

} // namespace tessera::codegen
