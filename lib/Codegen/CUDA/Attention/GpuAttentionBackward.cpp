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

#include <numbers>

using namespace mlir;

namespace tessera::codegen {

namespace {

enum { kQuery, kKey, kValue, kGradient, kLogsumexp, kDelta };

class Backward {
protected:
  explicit Backward(AttentionTiles &tiles)
      : t(tiles), b(tiles.b), loc(tiles.loc), parts(tiles.parts), domain(parts.domain),
        query(tiles.queryLoop()) {}

  struct Element {
    Value queryIndex, keyIndex;
    Value logsumexp; ///< as `ofLogsumexp` returns it
    Value delta;     ///< its negative
  };
  /// Computes the weights of scores, from their products, and the gradients by these products,
  /// without the factor that the form of the derivative leaves out. Elements beyond the operands
  /// add nothing. `multiplyGradients` returns the products of gradient and value, from which delta
  /// has been subtracted unless the op has a region of weights. They are computed where
  /// exponentials are, since tensor cores and other units work at the same time.
  /// `useWeights` is called with the weights, and the gradients by products are returned.
  Fragments differentiate(const Fragments &products, const AttentionTiles::TilePlace &place,
                          function_ref<Fragments()> multiplyGradients,
                          function_ref<Element(size_t fragment, unsigned i)> elementOf,
                          function_ref<void(ArrayRef<Fragment>)> useWeights) {
    size_t count = products.size();
    auto forEach = [&](Fragments &fragments, function_ref<void(Value &, size_t, unsigned)> body) {
      for (size_t number = 0; number < count; ++number)
        for (unsigned i = 0; i < 4; ++i)
          body(fragments[number][i], number, i);
    };
    Fragments weights = t.forTile(place, count, [&](bool) {
      Fragments scores = products;
      forEach(scores, [&](Value &score, size_t number, unsigned i) {
        Element at = elementOf(number, i);
        score = t.evaluate(parts.score(), score, at.queryIndex, at.keyIndex);
      });
      return scores;
    });
    Fragments gradients = multiplyGradients();
    forEach(weights, [&](Value &weight, size_t number, unsigned i) {
      Element at = elementOf(number, i);
      Value share =
          isPlain() ? t.power(math::FmaOp::create(b, loc, weight, t.real(exponent()), at.logsumexp))
                    : t.exponential(arith::SubFOp::create(b, loc, weight, at.logsumexp));
      Value &byShare = gradients[number][i];
      if (parts.weights())
        byShare =
            arith::AddFOp::create(b, loc, t.weigh(byShare, at.queryIndex, at.keyIndex), at.delta);
      byShare = arith::MulFOp::create(b, loc, share, byShare);
      weight = t.weigh(share, at.queryIndex, at.keyIndex);
    });
    bool checks = place.checksQueries || place.checksKeys;
    if (!checks)
      useWeights(weights);
    Fragments both = t.forTile(place, checks ? 2 * count : count, [&](bool isOutside) {
      Fragments byProducts = gradients, inside = weights;
      forEach(byProducts, [&](Value &byProduct, size_t number, unsigned i) {
        Element at = elementOf(number, i);
        byProduct =
            t.evaluate(derivative(), products[number][i], at.queryIndex, at.keyIndex, byProduct);
        auto checkBounds = [&](Value index, int64_t extent) {
          Value isInside = t.less(index, t.constant(extent));
          for (Value *each : {&byProduct, &inside[number][i]})
            *each = t.select(isInside, *each, t.real(0));
        };
        if (isOutside && place.checksQueries)
          checkBounds(at.queryIndex, t.extent(query));
        if (isOutside && place.checksKeys)
          checkBounds(at.keyIndex, t.extent(domain.key));
      });
      if (checks)
        llvm::append_range(byProducts, inside);
      return byProducts;
    });
    if (checks)
      useWeights(ArrayRef(both).drop_front(count));
    both.resize(count);
    return both;
  }

  /// What the products of gradient and value are added to: delta, unless weights are in between.
  Fragments startFrom(int64_t rows, function_ref<Value(size_t fragment, unsigned i)> delta) {
    Fragments start = t.zeros(rows * t.rowBlocks());
    if (!parts.weights())
      for (auto [number, fragment] : llvm::enumerate(start))
        for (unsigned i = 0; i < 4; ++i)
          fragment[i] = delta(number, i);
    return start;
  }
  /// The products of gradient and value, as `differentiate` asks for them; the arguments must
  /// outlive it. Those of warpgroups begin at once, since exponentials wait for those of the
  /// scores.
  auto gradientsByShares(const SharedTile &left, const LeftFragments &fragments,
                         const SharedTile &right, const Fragments &start) {
    Fragments begun;
    if (t.usesWarpgroups())
      begun = t.multiply(left, fragments, right, start);
    return [this, &left, &fragments, &right, &start, begun = std::move(begun)] {
      return t.usesWarpgroups() ? t.finish(begun) : t.multiply(left, fragments, right, start);
    };
  }

  /// Whether the whole step of a tile, and not only its masks, has code for tiles without masks:
  /// products and exponentials are then scheduled together. Long rows leave no registers for it.
  bool hasTwoForms() const {
    constexpr int64_t kMostFeatures = 64;
    return t.usesMma() && std::max(queries.depth, gradients.depth) <= kMostFeatures;
  }

  Region &derivative() const { return parts.op->getRegion(1); }
  bool isPlain() const { return t.formOf(parts.score()).isPlain; }
  double exponent() const { return std::numbers::log2e * t.formOf(parts.score()).scale; }
  /// What is added to a plain score times `exponent`, or subtracted from another score.
  Value ofLogsumexp(Value x) {
    return isPlain() ? arith::MulFOp::create(b, loc, x, t.real(-std::numbers::log2e)) : x;
  }
  Value negative(Value x) { return arith::NegFOp::create(b, loc, x); }
  /// Multiplies sums by the factor that `differentiate` leaves out.
  void scale(MutableArrayRef<Fragment> sums) {
    const AttentionTiles::RegionForm &form = t.formOf(derivative());
    if (!form.factor)
      return;
    for (Fragment &sum : sums)
      for (Value &each : sum)
        each = arith::MulFOp::create(b, loc, each, t.real(form.scale));
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
    TileSizes sizes = backwardTiles(t, numQueries, std::max(depth, width), /*byKey=*/false);
    t.setWarps(sizes.warps, sizes.rowBlocks);
    if (sizes.warpgroups)
      t.useWarpgroups();
    int64_t rows = t.rows();
    queries = t.makeOperand(rows, depth);
    gradients = t.makeOperand(rows, width);
    const AttentionTiles::Walked walked[] = {{keys, kKey, depth}, {values, kValue, width}};
    t.makeWalked(walked, domain.key, sizes.columns);
    if (!t.usesMma())
      weights = t.makeTile(t.element(), rows, sizes.columns);
    SmallVector<unsigned> outer(domain.batch);
    llvm::append_range(outer, t.otherQueryLoops());
    int64_t rowTiles = llvm::divideCeil(numQueries, rows);
    std::optional<KeyRange> range = visibleKeys(t);
    auto place = [&] {
      auto [number, tile] = blockOf(t, rowTiles, domain.sizeOf(outer), range.has_value());
      t.fixDigits(outer, number);
      if (range)
        tile = t.add(t.multiply(tile, -1), rowTiles - 1);
      firstQuery = t.multiply(tile, rows);
    };
    place();

    SmallVector<Value> fetchedQueries = t.fetch(queries, kQuery, query, firstQuery);
    SmallVector<Value> fetchedGradients = t.fetch(gradients, kGradient, query, firstQuery);
    LeftFragments left, leftGradients;
    auto beginTiles = [&] {
      t.put(queries, fetchedQueries);
      t.put(gradients, fetchedGradients);
      t.publish();
      t.barrier();
      if (sizes.keepsLeft) {
        left = t.leftOf(queries);
        leftGradients = t.leftOf(gradients);
      }
      return SmallVector<Value>();
    };
    SmallVector<Value> logsumexp, delta;
    for (unsigned which = 0; which < t.laneRows(); ++which) {
      Value row = t.add(firstQuery, t.rowOf(which));
      auto load = [&](unsigned operand) {
        return t.convert(t.loadElement(operand, query, row), b.getF32Type());
      };
      logsumexp.push_back(ofLogsumexp(load(kLogsumexp)));
      delta.push_back(negative(load(kDelta)));
    }
    Value begin = t.constant(0), end = t.constant(numKeys);
    if (range)
      std::tie(begin, end) = keysOf(t, *range, firstQuery, rows, keys.rows);
    auto step = [&](Value at, ValueRange carried, const AttentionTiles::TilePlace &place) {
      Fragments started = t.multiply(queries, left, keys);
      size_t count = started.size();
      auto rowOf = [&](size_t fragment, unsigned i) { return t.laneRowOf(fragment, i, count); };
      Fragments start = startFrom(
          keys.rows, [&](size_t fragment, unsigned i) { return delta[rowOf(fragment, i)]; });
      auto multiplyGradients = gradientsByShares(gradients, leftGradients, values, start);
      Fragments products = t.finish(started, /*groups=*/1);
      auto elementOf = [&](size_t fragment, unsigned i) {
        unsigned row = rowOf(fragment, i);
        return Element{t.position(firstQuery, t.rowOf(row)),
                       t.position(at, t.columnOf(t.acrossOf(fragment, count), i % 2)),
                       logsumexp[row], delta[row]};
      };
      Fragments byProducts = differentiate(products, place, multiplyGradients, elementOf,
                                           /*useWeights=*/[](ArrayRef<Fragment>) {});
      Fragments sums = unflatten(carried);
      t.accumulate(sums, byProducts, keys, weights);
      return t.finish(sums);
    };
    auto stepOf = [&](Value at, ValueRange carried) {
      firstKey = at;
      AttentionTiles::TilePlace place{firstQuery, at, rows, keys.rows};
      place.checksKeys = numKeys % keys.rows != 0;
      return flatten(hasTwoForms() ? t.forTile(place, carried.size() / 4,
                                               [&](bool) { return step(at, carried, place); })
                                   : step(at, carried, place));
    };
    AttentionTiles::Staging staging;
    staging.begin = beginTiles;
    Fragments sums =
        unflatten(t.walk(walked, domain.key, begin, end,
                         flatten(t.zeros(keys.depth * t.rowBlocks())), staging, stepOf));
    scale(sums);
    t.readThreadAgain();
    place();
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
    TileSizes sizes = backwardTiles(t, numKeys, std::max(depth, width), /*byKey=*/true);
    t.setWarps(sizes.warps, sizes.rowBlocks);
    if (sizes.warpgroups)
      t.useWarpgroups();
    int64_t rows = t.rows();
    keys = t.makeOperand(rows, depth);
    values = t.makeOperand(rows, width);
    columns = sizes.columns;
    keepsLeft = sizes.keepsLeft;
    walkedRows = sizes.columns * sizes.steps;
    t.makeWalked(walked(), query, walkedRows);
    if (!t.usesMma())
      weights = t.makeTile(t.element(), rows, sizes.columns);
    auto isF32 = [&](unsigned operand) {
      return getElementTypeOrSelf(t.roots[operand].getType()).isF32();
    };
    copiesRows = t.copiesTiles() && isF32(kLogsumexp) && isF32(kDelta);
    logsumexps = t.launch.shared(b.getF32Type(), (copiesRows ? 2 : 1) * walkedRows);
    deltas = t.launch.shared(b.getF32Type(), (copiesRows ? 2 : 1) * walkedRows);
    int64_t rowTiles = llvm::divideCeil(numKeys, rows);
    int64_t blocks = partial ? numParts : rowTiles; // of a batch
    Value tile;
    auto place = [&] {
      auto [number, itsTile] =
          blockOf(t, blocks, domain.sizeOf(domain.batch), visibleKeys(t).has_value());
      t.fixDigits(domain.batch, number);
      tile = itsTile;
      firstKey = t.multiply(tile, rows);
    };
    place();
    if (partial) {
      // Tiles are dealt out in turn, since those of a causal mask differ in their work.
      zeroPart(tile, numParts);
      t.loop(tile, t.constant(rowTiles), numParts, ValueRange(), [&](Value each, ValueRange) {
        firstKey = t.multiply(each, rows);
        overTile(rows, byKey, byValue, /*placeAgain=*/{});
        t.barrier(); // the tiles of keys and values have been stored
        return SmallVector<Value>();
      });
      t.count(partial, /*store=*/false, llvm::divideCeil(rowTiles, numParts));
      t.count(partial, /*store=*/true, llvm::divideCeil(rowTiles, numParts) + 1);
    } else {
      overTile(rows, byKey, byValue, place);
    }
    countReads();
    GpuShape shape;
    shape.blocks = domain.sizeOf(domain.batch) * blocks;
    shape.threads = sizes.warps * kWarp;
    return shape;
  }

private:
  /// Computes the gradients by the keys of a tile, and their part of that by the queries.
  /// `placeAgain`, if any, finds the tile from the indices of block and thread.
  void overTile(int64_t rows, Value byKey, Value byValue, function_ref<void()> placeAgain) {
    t.put(keys, t.fetch(keys, kKey, domain.key, firstKey));
    t.put(values, t.fetch(values, kValue, domain.key, firstKey));
    t.publish();
    t.barrier();
    if (keepsLeft) {
      leftKeys = t.leftOf(keys);
      leftValues = t.leftOf(values);
    }

    Fragments sums = t.zeros(keys.depth * t.rowBlocks());
    Fragments valueSums = t.zeros(values.depth * t.rowBlocks());
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
    scale(MutableArrayRef(sums).take_front(numKeySums));
    if (placeAgain) {
      t.readThreadAgain();
      placeAgain();
    }
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
    constexpr int64_t kSide = 4, kKeys = 4; // of an iteration
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
          t.loop(t.constant(0), t.constant(keys.rows), kKeys, SmallVector<Value>(kSide, zero),
                 [&](Value first, ValueRange carried) {
                   SmallVector<Value> next(carried);
                   for (int64_t key = 0; key < kKeys; ++key) {
                     Value some = t.loadVector(weights, t.add(first, key), row, kSide);
                     Value features = t.loadVector(keys, t.add(first, key), column, kSide);
                     for (int64_t i = 0; i < kSide; ++i) {
                       Value weight = vector::BroadcastOp::create(
                           b, loc, vector, vector::ExtractOp::create(b, loc, some, i).getResult());
                       next[i] = vector::FMAOp::create(b, loc, weight, features, next[i]);
                     }
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
    auto stage = [&](Value at) {
      stageRows(logsumexps, kLogsumexp, at, [&](Value x) { return ofLogsumexp(x); });
      stageRows(deltas, kDelta, at, [&](Value x) { return negative(x); });
    };
    auto copy = [&](Value at, Value half) {
      copyRows(logsumexps, kLogsumexp, at, half);
      copyRows(deltas, kDelta, at, half);
    };
    AttentionTiles::Staging staging;
    if (copiesRows)
      staging.copy = copy;
    else
      staging.stage = stage;
    return t.walk(walked(), query, begin, end, carried, staging,
                  [&](Value at, ValueRange inner) { return step(at, inner); });
  }

  std::array<AttentionTiles::Walked, 2> walked() {
    return {{{queries, kQuery, domain.sizeOf(domain.features)},
             {gradients, kGradient, domain.sizeOf(domain.outputFeatures)}}};
  }

  /// Begins to copy the values of each query of a tile.
  void copyRows(Value memory, unsigned operand, Value at, Value half) {
    Value from = t.launch.flat(t.roots[operand], /*write=*/false);
    Value thread = t.launch.threadIndex(), to = t.multiply(half, walkedRows);
    t.note(t.roots[operand], /*store=*/false, 4, "one element per row or score");
    int64_t threads = t.warps() * kWarp;
    for (int64_t first = 0; first < walkedRows; first += threads) {
      Value number = t.add(thread, first);
      OpBuilder::InsertionGuard guard(b);
      if (first + threads > walkedRows) {
        auto branch = scf::IfOp::create(b, loc, t.less(number, t.constant(walkedRows)),
                                        /*withElse=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      Value offset = t.offsetOf(parts.maps[operand], t.roots[operand], query, t.add(at, number));
      t.copyAsync(from, offset, memory, t.add(to, number), 1, {});
    }
  }

  /// Stages a function of the values of each query of a tile, which all warps read.
  void stageRows(Value memory, unsigned operand, Value at, function_ref<Value(Value)> body) {
    Value thread = t.launch.threadIndex();
    int64_t threads = t.warps() * kWarp;
    for (int64_t first = 0; first < queries.rows; first += threads) {
      Value number = t.add(thread, first);
      Value value =
          body(t.convert(t.loadElement(operand, query, t.add(at, number)), b.getF32Type()));
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
    auto overSteps = [&](bool) {
      const SharedTile allQueries = queries, allGradients = gradients;
      SmallVector<Value> sums(carried);
      for (int64_t first = 0; first < allQueries.rows; first += columns) {
        queries = t.rowsOf(allQueries, first, columns);
        gradients = t.rowsOf(allGradients, first, columns);
        firstQuery = t.add(at, first);
        sums = step(sums, first);
      }
      queries = allQueries;
      gradients = allGradients;
      return unflatten(sums);
    };
    if (!hasTwoForms())
      return flatten(overSteps(false));
    AttentionTiles::TilePlace place{at, firstKey, queries.rows, keys.rows};
    place.checksQueries = t.extent(query) % walkedRows != 0;
    return flatten(t.forTile(place, carried.size() / 4, overSteps));
  }

  /// `first`: the first query in the staged rows.
  SmallVector<Value> step(ValueRange carried, int64_t first) {
    size_t count = queries.rows / AttentionTiles::kColumns * t.rowBlocks();
    Fragments started;
    if (!t.usesWarpgroups())
      started = t.multiply(keys, leftKeys, queries);
    auto columnOf = [&](size_t fragment, unsigned i) {
      return t.columnOf(t.acrossOf(fragment, count), i % 2);
    };
    auto staged = [&](Value memory, size_t fragment, unsigned i) -> Value {
      Value place = t.add(columnOf(fragment, i), first);
      if (copiesRows)
        place = t.add(place, t.multiply(t.half(), walkedRows));
      return memref::LoadOp::create(b, loc, memory, place);
    };
    auto logsumexp = [&](size_t fragment, unsigned i) {
      Value value = staged(logsumexps, fragment, i);
      return copiesRows ? ofLogsumexp(value) : value;
    };
    auto delta = [&](size_t fragment, unsigned i) {
      Value value = staged(deltas, fragment, i);
      return copiesRows ? negative(value) : value;
    };
    Fragments start = startFrom(queries.rows, delta);
    if (t.usesWarpgroups()) {
      // Rows share a delta: their registers must differ before products are under way.
      start = t.fenceSums(start);
      started = t.multiply(keys, leftKeys, queries);
    }
    AttentionTiles::TilePlace place{firstQuery, firstKey, queries.rows, keys.rows};
    place.checksQueries = t.extent(query) % walkedRows != 0;
    place.checksKeys = partial && t.extent(domain.key) % keys.rows != 0;
    auto multiplyGradients = gradientsByShares(values, leftValues, gradients, start);
    Fragments products = t.finish(started, /*groups=*/1);
    auto elementOf = [&](size_t fragment, unsigned i) {
      return Element{t.position(firstQuery, columnOf(fragment, i)),
                     t.position(firstKey, t.rowOf(t.laneRowOf(fragment, i, count))),
                     logsumexp(fragment, i), delta(fragment, i)};
    };
    Fragments sums = unflatten(carried);
    Fragments valueSums(ArrayRef(sums).drop_front(numKeySums));
    sums.resize(numKeySums);
    Fragments byProducts = differentiate(
        products, place, multiplyGradients, elementOf, [&](ArrayRef<Fragment> weightsOfKeys) {
          t.accumulate(valueSums, weightsOfKeys, gradients, weights);
        });
    t.accumulate(sums, byProducts, queries, weights);
    valueSums = t.finish(valueSums, /*groups=*/1);
    sums = t.finish(sums);
    if (partial)
      addByQuery();
    llvm::append_range(sums, valueSums);
    return flatten(sums);
  }

  Value byQuery, partial, partBase;
  Value logsumexps, deltas;
  /// The queries of a step of products, and those that are copied at once.
  int64_t columns = 0, walkedRows = 0;
  bool keepsLeft = false;
  bool copiesRows = false; ///< log-sum-exps and deltas, as they are, into two halves
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
                    std::max(domain.sizeOf(domain.features), domain.sizeOf(domain.outputFeatures)),
                    /*byKey=*/true);
  int64_t rowTiles = llvm::divideCeil(numKeys, sizes.rows());
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
