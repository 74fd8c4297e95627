//===- GpuAttentionForward.cpp - Attention by an online softmax -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a tile of queries of one batch and head, and iterates over the tiles of the keys that
// they attend to. Its state per row is the largest score m, the sum l of exp(score - m), and the
// sums o of exp(score - m) * value; when m grows, l and o are multiplied by exp(old m - new m).
//
// Few queries with many keys, as in decoding, have few such blocks. Then several blocks share the
// keys, and a second launch combines their states by the same rule ("Flash-Decoding for
// long-context inference", Dao et al., 2023).
//
//===----------------------------------------------------------------------===//

#include "GpuAttention.h"

#include <numbers>

using namespace mlir;

namespace tessera::codegen {

namespace {

/// Sums are multiplied where the greatest score of a row has grown by more than this power of two:
/// "FlashAttention-4" has the same rule.
constexpr double kMostGrowth = 8;

/// A lane's state of its rows, and of their sums. The greatest score is without the factor that
/// `AttentionTiles::RegionForm` leaves out.
struct RowState {
  Fragments sums;
  SmallVector<Value> most, total; ///< by row

  SmallVector<Value> values() const {
    SmallVector<Value> result = flatten(sums);
    llvm::append_range(result, most);
    llvm::append_range(result, total);
    return result;
  }
  static RowState of(ValueRange values, unsigned rows) {
    RowState state;
    state.sums = unflatten(values.drop_back(2 * rows));
    ValueRange rest = values.take_back(2 * rows);
    llvm::append_range(state.most, rest.take_front(rows));
    llvm::append_range(state.total, rest.drop_front(rows));
    return state;
  }
};

class Forward {
public:
  Forward(AttentionTiles &tiles, ArrayRef<Value> results, const KeySplit &split, Value partial)
      : t(tiles), b(tiles.b), loc(tiles.loc), parts(tiles.parts), results(results), split(split),
        partial(partial) {}

  GpuShape emit();
  GpuShape combine();

private:
  Value queryOf(size_t number, unsigned i, size_t count);
  Value keyOf(Value firstKey, size_t number, unsigned i, size_t count);
  Fragments mask(ArrayRef<Fragment> products, Value firstKey);
  RowState step(const RowState &state, Fragments &scores, Value firstKey);
  void rescale(RowState &next, const RowState &old, Value grows,
               function_ref<Value(unsigned)> factorOf);
  void finish(const RowState &state);
  void storePart(const RowState &state);
  void storeLogsumexp(Value most, Value total, Value row, Value isOurs);
  Value total(const RowState &state, unsigned which) {
    return t.acrossColumns(state.total[which], [&](Value x, Value y) { return addf(x, y); });
  }
  /// Where the parts have the greatest scores and the sums of their weights.
  int64_t firstState() const {
    return split.parts * split.rows * parts.domain.sizeOf(parts.domain.outputFeatures);
  }
  Value addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value negf(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  /// The maximum ignores NaN: the exponentials and their sum propagate the NaN.
  Value maxf(Value x, Value y) { return t.greater(x, y); }
  const AttentionTiles::RegionForm &form() { return t.formOf(parts.score()); }
  /// A score with the factor that is left out.
  Value scaled(Value score) { return form().factor ? mulf(score, t.real(form().scale)) : score; }
  Value isNegativeInfinity(Value most) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, most,
                                 t.real(-std::numeric_limits<double>::infinity()));
  }

  AttentionTiles &t;
  OpBuilder &b;
  Location loc;
  const ext::AttentionParts &parts;
  ArrayRef<Value> results;
  const KeySplit &split;
  Value partial, firstRow; ///< of the part, the block's first row in it
  SharedTile queries, keys, values, weights;
  LeftFragments left;
  Value firstQuery;
  /// The products of the next tile are computed while the exponentials of a tile are.
  bool isPipelined = false;
};

} // namespace

Value Forward::queryOf(size_t number, unsigned i, size_t count) {
  return t.position(firstQuery, t.rowOf(t.laneRowOf(number, i, count)));
}

Value Forward::keyOf(Value firstKey, size_t number, unsigned i, size_t count) {
  return t.position(firstKey, t.columnOf(t.acrossOf(number, count), i % 2));
}

/// The scores of a tile of keys, from the products.
Fragments Forward::mask(ArrayRef<Fragment> products, Value firstKey) {
  unsigned key = parts.domain.key;
  Value none = t.real(-std::numeric_limits<double>::infinity());
  size_t count = products.size();
  AttentionTiles::TilePlace place{firstQuery, firstKey, queries.rows, keys.rows};
  place.checksKeys = t.extent(key) % keys.rows != 0;
  return t.forTile(place, count, [&](bool isOutside) {
    Fragments result(products);
    for (auto [number, fragment] : llvm::enumerate(result))
      for (unsigned i = 0; i < 4; ++i) {
        Value keyIndex = keyOf(firstKey, number, i, count);
        fragment[i] = t.evaluate(parts.score(), fragment[i], queryOf(number, i, count), keyIndex);
        if (isOutside)
          fragment[i] = t.select(t.less(keyIndex, t.constant(t.extent(key))), fragment[i], none);
      }
    return result;
  });
}

/// `scores`: of this tile; if the products of the next tile are computed here, replaced by its
/// scores.
RowState Forward::step(const RowState &state, Fragments &scores, Value firstKey) {
  RowState next = state;
  size_t count = scores.size();
  auto forRow = [&](MutableArrayRef<Fragment> fragments, unsigned row,
                    function_ref<void(Value &, size_t, unsigned)> body) {
    for (auto [number, fragment] : llvm::enumerate(fragments))
      for (unsigned i = 0; i < 4; ++i)
        if (t.laneRowOf(number, i, fragments.size()) == row)
          body(fragment[i], number, i);
  };
  // Of e^x, in the terms of the scores' factor.
  Value exponent = t.real(std::numbers::log2e * form().scale);
  SmallVector<Value> bases, factors;
  Value grows;
  // e^(x - base). A product of query and key is far from where its error by the one rounding of
  // base times a constant, which all weights of a row share, would matter. A mask may not be.
  auto weightOf = [&](Value x, Value base) {
    return form().isPlain
               ? t.power(math::FmaOp::create(b, loc, x, exponent, mulf(base, negf(exponent))))
               : t.exponential(subf(x, base));
  };
  for (unsigned row = 0; row < t.laneRows(); ++row) {
    Value old = state.most[row], most = old;
    forRow(scores, row, [&](Value score, size_t, unsigned) { most = maxf(most, score); });
    most = t.acrossColumns(most, [&](Value x, Value y) { return maxf(x, y); });
    // Sums of weights up to 2^8 are as precise as those of weights up to 1.
    Value isMore = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                         mulf(subf(most, old), exponent), t.real(kMostGrowth));
    most = t.select(isMore, most, old);
    next.most[row] = most;
    grows = grows ? arith::OrIOp::create(b, loc, grows, isMore).getResult() : isMore;
    // Rows without a key so far subtract 0: -inf - -inf is NaN.
    bases.push_back(t.select(isNegativeInfinity(most), t.real(0), most));
  }
  rescale(next, state, grows, [&](unsigned row) { return weightOf(state.most[row], bases[row]); });
  Fragments nextProducts;
  if (isPipelined)
    nextProducts = t.multiply(queries, left, keys);
  for (unsigned row = 0; row < t.laneRows(); ++row) {
    Value total;
    forRow(scores, row, [&](Value &score, size_t number, unsigned i) {
      score = weightOf(score, bases[row]);
      total = total ? addf(total, score) : score;
      score = t.weigh(score, queryOf(number, i, count), keyOf(firstKey, number, i, count));
    });
    next.total[row] = addf(next.total[row], total);
  }
  t.accumulate(next.sums, scores, values, weights);
  if (isPipelined)
    scores = mask(t.finish(nextProducts, /*groups=*/1), t.add(firstKey, keys.rows));
  next.sums = t.finish(next.sums);
  return next;
}

/// Multiplies the sums of rows and their totals by a factor for each row. `grows`: whether any
/// factor is not 1, which is rare after the first tiles.
void Forward::rescale(RowState &next, const RowState &old, Value grows,
                      function_ref<Value(unsigned)> factorOf) {
  SmallVector<Value> all = flatten(old.sums);
  size_t numSums = all.size();
  llvm::append_range(all, old.total);
  auto branch = scf::IfOp::create(b, loc, TypeRange(ValueRange(all)), grows, /*withElse=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> factors, scaled;
    for (unsigned row = 0; row < t.laneRows(); ++row)
      factors.push_back(factorOf(row));
    for (size_t i = 0; i < numSums; ++i)
      scaled.push_back(mulf(all[i], factors[t.laneRowOf(i / 4, i % 4, old.sums.size())]));
    for (auto [total, factor] : llvm::zip_equal(old.total, factors))
      scaled.push_back(mulf(total, factor));
    scf::YieldOp::create(b, loc, scaled);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, all);
  }
  ValueRange made = branch.getResults();
  next.sums = unflatten(made.take_front(numSums));
  next.total = llvm::to_vector(made.drop_front(numSums));
}

void Forward::finish(const RowState &state) {
  Fragments sums = state.sums;
  SmallVector<Value> totals;
  for (unsigned row = 0; row < t.laneRows(); ++row)
    totals.push_back(total(state, row));
  for (auto [number, sum] : llvm::enumerate(sums))
    for (unsigned i = 0; i < 4; ++i)
      sum[i] = arith::DivFOp::create(b, loc, sum[i], totals[t.laneRowOf(number, i, sums.size())]);
  t.store(queries, sums, results[0], parts.output, t.queryLoop(), firstQuery);
  // One lane of four stores the log-sum-exp of a row.
  for (unsigned which = 0; which < t.laneRows(); ++which) {
    Value row = t.add(firstQuery, t.rowOf(which));
    Value isOurs = arith::AndIOp::create(b, loc, t.less(row, t.constant(t.extent(t.queryLoop()))),
                                         t.less(t.columnOf(0, 0), t.constant(1)));
    storeLogsumexp(scaled(state.most[which]), totals[which], row, isOurs);
  }
}

/// Stores the log-sum-exp of a row, if the op has this result.
void Forward::storeLogsumexp(Value most, Value total, Value row, Value isOurs) {
  if (results.size() < 2)
    return;
  Value root = results[1], memory = t.launch.flat(root, /*write=*/true);
  Type type = cast<MemRefType>(root.getType()).getElementType();
  t.note(root, /*store=*/true, bytesOf(type), "one element per row");
  auto branch = scf::IfOp::create(b, loc, isOurs, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value log = addf(most, math::LogOp::create(b, loc, total));
  memref::StoreOp::create(b, loc, t.convert(log, type), memory,
                          t.offsetOf(parts.maps.back(), root, t.queryLoop(), row, /*clamp=*/false));
}

/// Stores the state of the block's rows.
void Forward::storePart(const RowState &state) {
  int64_t width = parts.domain.sizeOf(parts.domain.outputFeatures);
  auto pair = VectorType::get(2, b.getF32Type());
  Value memory = t.launch.flat(partial, /*write=*/true);
  t.note(partial, /*store=*/true, width % 2 == 0 ? 8 : 4, "a lane's part of a fragment");
  t.count(partial, /*store=*/true);
  auto storeIf = [&](Value condition, function_ref<void()> store) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    store();
  };
  size_t across = state.sums.size() / t.rowBlocks();
  for (unsigned which = 0; which < t.laneRows(); ++which) {
    Value total = this->total(state, which), query = t.add(firstQuery, t.rowOf(which));
    Value row = t.add(firstRow, query);
    storeIf(t.less(query, t.constant(t.extent(t.queryLoop()))), [&] {
      for (size_t number = 0; number < across; ++number) {
        const Fragment &sum = state.sums[which / 2 * across + number];
        Value elements[] = {sum[which % 2 * 2], sum[which % 2 * 2 + 1]};
        for (int64_t step = width % 2 == 0 ? 2 : 1, i = 0; i < 2; i += step) {
          Value column = t.columnOf(number, i);
          Value value = step == 2
                            ? vector::FromElementsOp::create(b, loc, pair, elements).getResult()
                            : elements[i];
          storeIf(t.less(column, t.constant(width)),
                  [&] { t.put(value, memory, t.add(t.multiply(row, width), column)); });
        }
      }
      storeIf(t.less(t.columnOf(0, 0), t.constant(1)), [&] {
        Value both =
            vector::FromElementsOp::create(b, loc, pair, {scaled(state.most[which]), total});
        t.put(both, memory, t.add(t.multiply(row, 2), firstState()));
      });
    });
  }
}

GpuShape Forward::combine() {
  const ext::AttentionDomain &domain = parts.domain;
  int64_t width = domain.sizeOf(domain.outputFeatures), queries = t.extent(t.queryLoop());
  int64_t vector = std::min<int64_t>(4, t.widthOf(parts.output, results[0], t.queryLoop(),
                                                  /*store=*/true));
  Type f32 = b.getF32Type(), element = cast<MemRefType>(results[0].getType()).getElementType();
  Value from = t.launch.flat(partial, /*write=*/false);
  Value to = t.launch.flat(results[0], /*write=*/true);
  if (vector < 4)
    t.note(partial, /*store=*/false, 4 * vector, "rows of " + std::to_string(width) + " elements");
  t.count(partial, /*store=*/false);
  for (Value result : results)
    t.count(result, /*store=*/true);
  SmallVector<unsigned> outer(domain.batch);
  llvm::append_range(outer, t.otherQueryLoops());
  Value first = t.constant(0), last = t.constant(split.parts);
  return t.forEach(split.rows * width / vector, [&](Value index) {
    Value row = t.divide(index, width / vector);
    Value column = t.multiply(t.remainder(index, width / vector), vector);
    auto stateOf = [&](Value part) {
      Value place = t.add(t.multiply(part, split.rows), row);
      Value both = t.load(from, t.add(t.multiply(place, 2), firstState()), f32, 2);
      return std::array<Value, 2>{vector::ExtractOp::create(b, loc, both, 0),
                                  vector::ExtractOp::create(b, loc, both, 1)};
    };
    Value none = t.real(-std::numeric_limits<double>::infinity());
    Value most =
        t.loop(first, last, 1, none, [&](Value part, ValueRange carried) -> SmallVector<Value> {
          return {maxf(carried[0], stateOf(part)[0])};
        })[0];
    Value base = t.select(isNegativeInfinity(most), t.real(0), most);
    Type sums = vector == 1 ? f32 : Type(VectorType::get(vector, f32));
    auto each = [&](Value x) {
      return vector == 1 ? x : vector::BroadcastOp::create(b, loc, sums, x).getResult();
    };
    SmallVector<Value> done =
        t.loop(first, last, 1, {each(t.real(0)), t.real(0)},
               [&](Value part, ValueRange carried) -> SmallVector<Value> {
                 auto [partMost, partTotal] = stateOf(part);
                 Value factor = t.exponential(subf(partMost, base));
                 Value place =
                     t.add(t.multiply(t.add(t.multiply(part, split.rows), row), width), column);
                 Value values = mulf(t.load(from, place, f32, vector), each(factor));
                 return {addf(carried[0], values), addf(carried[1], mulf(partTotal, factor))};
               });
    Value result = arith::DivFOp::create(b, loc, done[0], each(done[1]));
    t.fixDigits(outer, t.divide(row, queries));
    Value query = t.remainder(row, queries);
    Value place = t.offsetOf(parts.output, results[0], t.queryLoop(), query, /*clamp=*/false);
    if (element != f32)
      result = arith::TruncFOp::create(
          b, loc, vector == 1 ? element : Type(VectorType::get(vector, element)), result);
    t.put(result, to, t.add(place, column));
    storeLogsumexp(most, done[1], query, t.less(column, t.constant(1)));
  });
}

GpuShape Forward::emit() {
  const ext::AttentionDomain &domain = parts.domain;
  std::optional<unsigned> query = t.queryLoop();
  int64_t depth = domain.sizeOf(domain.features), width = domain.sizeOf(domain.outputFeatures);
  int64_t numQueries = t.extent(query), numKeys = t.extent(domain.key);
  TileSizes sizes = forwardTiles(t, numQueries, std::max(depth, width));
  t.setWarps(sizes.warps, sizes.rowBlocks);
  if (sizes.warpgroups)
    t.useWarpgroups();
  int64_t rows = t.rows();
  queries = t.makeOperand(rows, depth);
  AttentionTiles::Walked walked[] = {{keys, 1, depth}, {values, 2, width}};
  t.makeWalked(walked, domain.key, sizes.columns);
  isPipelined = walked[0].isAhead = t.copiesTiles();
  if (!t.usesMma())
    weights = t.makeTile(t.element(), rows, sizes.columns);

  GpuShape shape;
  shape.threads = sizes.warps * kWarp;
  shape.resident = sizes.resident;
  SmallVector<unsigned> outer(domain.batch);
  llvm::append_range(outer, t.otherQueryLoops());
  int64_t rowTiles = llvm::divideCeil(numQueries, rows);
  shape.blocks = domain.sizeOf(outer) * rowTiles * split.parts;
  std::optional<KeyRange> range = visibleKeys(t);
  Value part;
  auto place = [&] {
    auto [number, tile] =
        blockOf(t, rowTiles, domain.sizeOf(outer) * split.parts, range.has_value());
    if (split.parts > 1) {
      part = t.divide(number, domain.sizeOf(outer));
      firstRow = t.multiply(number, numQueries);
      number = t.remainder(number, domain.sizeOf(outer));
    }
    t.fixDigits(outer, number);
    if (range) // the last queries of a causal mask attend to the most keys
      tile = t.add(t.multiply(tile, -1), rowTiles - 1);
    firstQuery = t.multiply(tile, rows);
  };
  place();

  RowState state;
  state.sums = t.zeros(values.depth * t.rowBlocks());
  state.most.assign(t.laneRows(), t.real(-std::numeric_limits<double>::infinity()));
  state.total.assign(t.laneRows(), t.real(0));
  Value begin = t.constant(0), end = t.constant(numKeys);
  if (range)
    std::tie(begin, end) = keysOf(t, *range, firstQuery, rows, keys.rows);
  if (part) {
    begin = t.add(begin, t.multiply(part, split.keys));
    end = t.least(end, t.add(begin, split.keys));
  }
  SmallVector<Value> fetched = t.fetch(queries, 0, query, firstQuery);
  auto beginTiles = [&]() -> SmallVector<Value> {
    t.put(queries, fetched);
    if (isPipelined)
      t.waitForCopies();
    t.publish();
    t.barrier();
    if (sizes.keepsLeft)
      left = t.leftOf(queries);
    if (!isPipelined)
      return {};
    return flatten(mask(t.finish(t.multiply(queries, left, keys)), begin));
  };
  unsigned laneRows = t.laneRows();
  size_t numState = state.values().size();
  AttentionTiles::Staging staging;
  staging.begin = beginTiles;
  SmallVector<Value> done = t.walk(
      walked, domain.key, begin, end, state.values(), staging,
      [&](Value firstKey, ValueRange carried) {
        Fragments scores = isPipelined ? unflatten(carried.drop_front(numState))
                                       : mask(t.multiply(queries, left, keys), firstKey);
        SmallVector<Value> next =
            step(RowState::of(carried.take_front(numState), laneRows), scores, firstKey).values();
        if (isPipelined)
          llvm::append_range(next, flatten(scores));
        return next;
      });
  state = RowState::of(ValueRange(done).take_front(numState), laneRows);
  t.readThreadAgain();
  place();
  if (part) {
    storePart(state);
  } else {
    finish(state);
    for (Value result : ArrayRef(results).drop_front())
      t.count(result, /*store=*/true);
  }
  for (unsigned operand = 0; operand < parts.op->getNumOperands(); ++operand)
    t.count(t.roots[operand], /*store=*/false);
  return shape;
}

KeySplit splitKeys(const AttentionTiles &tiles) {
  constexpr int64_t kFewestSteps = 4;
  const ext::AttentionDomain &domain = tiles.parts.domain;
  int64_t numQueries = tiles.extent(tiles.queryLoop()), numKeys = tiles.extent(domain.key);
  TileSizes sizes =
      forwardTiles(tiles, numQueries,
                   std::max(domain.sizeOf(domain.features), domain.sizeOf(domain.outputFeatures)));
  int64_t rows = sizes.rows();
  int64_t outer = domain.sizeOf(domain.batch) * domain.sizeOf(tiles.otherQueryLoops());
  // The keys that a block's queries see, from the tile on in which the first one is.
  if (std::optional<KeyRange> range = visibleKeys(tiles))
    numKeys = std::min(numKeys, rows + range->last - range->first + sizes.columns);
  int64_t steps = llvm::divideCeil(numKeys, sizes.columns);
  int64_t parts = partsOfSum(outer * llvm::divideCeil(numQueries, rows), steps, kFewestSteps);
  KeySplit split;
  split.keys = llvm::divideCeil(steps, parts) * sizes.columns;
  split.parts = llvm::divideCeil(numKeys, split.keys);
  split.rows = outer * numQueries;
  return split;
}

int64_t elementsOfParts(const AttentionTiles &tiles, const KeySplit &split) {
  const ext::AttentionDomain &domain = tiles.parts.domain;
  return split.parts * split.rows * (domain.sizeOf(domain.outputFeatures) + 2);
}

GpuShape emitAttentionForward(AttentionTiles &tiles, ArrayRef<Value> results, const KeySplit &split,
                              Value partial) {
  return Forward(tiles, results, split, partial).emit();
}

GpuShape emitCombination(AttentionTiles &tiles, ArrayRef<Value> results, const KeySplit &split,
                         Value partial) {
  return Forward(tiles, results, split, partial).combine();
}

} // namespace tessera::codegen
