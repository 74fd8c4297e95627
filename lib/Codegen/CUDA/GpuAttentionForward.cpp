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
//===----------------------------------------------------------------------===//

#include "GpuAttention.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

/// A lane's state of its two rows, and of their sums.
struct RowState {
  Fragments sums;
  std::array<Value, 2> most, total;

  SmallVector<Value> values() const {
    SmallVector<Value> result = flatten(sums);
    result.append({most[0], most[1], total[0], total[1]});
    return result;
  }
  static RowState of(ValueRange values) {
    RowState state;
    state.sums = unflatten(values.drop_back(4));
    ValueRange rest = values.take_back(4);
    state.most = {rest[0], rest[1]};
    state.total = {rest[2], rest[3]};
    return state;
  }
};

class Forward {
public:
  Forward(AttentionTiles &tiles, ArrayRef<Value> results)
      : t(tiles), b(tiles.b), loc(tiles.loc), parts(tiles.parts), results(results) {}

  GpuShape emit();

private:
  RowState step(const RowState &state, Value firstKey);
  void finish(const RowState &state);
  Value addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  /// The maximum ignores NaN: the exponentials and their sum propagate the NaN.
  Value maxf(Value x, Value y) { return arith::MaxNumFOp::create(b, loc, x, y); }
  Value isNegativeInfinity(Value most) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, most,
                                 t.real(-std::numeric_limits<double>::infinity()));
  }

  AttentionTiles &t;
  OpBuilder &b;
  Location loc;
  const ext::AttentionParts &parts;
  ArrayRef<Value> results;
  SharedTile queries, keys, values, weights;
  LeftFragments left;
  Value firstQuery;
};

} // namespace

RowState Forward::step(const RowState &state, Value firstKey) {
  unsigned key = parts.domain.key;
  SmallVector<Value> keyRows = t.fetch(keys, 1, key, firstKey);
  SmallVector<Value> valueRows = t.fetch(values, 2, key, firstKey);
  t.barrier(); // the previous tiles have been read
  t.put(keys, keyRows);
  t.put(values, valueRows);
  t.barrier();

  Fragments scores = t.multiply(queries, left, keys);
  RowState next = state;
  bool isWhole = t.extent(key) % keys.rows == 0;
  Value none = t.real(-std::numeric_limits<double>::infinity());
  for (auto [number, fragment] : llvm::enumerate(scores))
    for (unsigned i = 0; i < 4; ++i) {
      Value keyIndex = t.add(firstKey, t.columnOf(number, i % 2));
      Value score =
          t.evaluate(parts.score(), fragment[i], t.add(firstQuery, t.rowOf(i / 2)), keyIndex);
      if (!isWhole)
        score = t.select(t.less(keyIndex, t.constant(t.extent(key))), score, none);
      fragment[i] = score;
      next.most[i / 2] = maxf(next.most[i / 2], score);
    }
  for (unsigned which : {0, 1}) {
    Value most = t.acrossColumns(next.most[which], [&](Value x, Value y) { return maxf(x, y); });
    next.most[which] = most;
    // Rows without a key so far subtract 0: -inf - -inf is NaN.
    Value base = t.select(isNegativeInfinity(most), t.real(0), most);
    Value factor = t.exponential(subf(state.most[which], base));
    Value total = mulf(state.total[which], factor);
    for (Fragment &fragment : scores)
      for (unsigned i : {2 * which, 2 * which + 1}) {
        fragment[i] = t.exponential(subf(fragment[i], base));
        total = addf(total, fragment[i]);
      }
    next.total[which] = total;
    for (Fragment &sum : next.sums)
      for (unsigned i : {2 * which, 2 * which + 1})
        sum[i] = mulf(sum[i], factor);
  }
  t.accumulate(next.sums, scores, values, weights);
  return next;
}

void Forward::finish(const RowState &state) {
  Fragments sums = state.sums;
  std::array<Value, 2> total;
  for (unsigned which : {0, 1}) {
    total[which] =
        t.acrossColumns(state.total[which], [&](Value x, Value y) { return addf(x, y); });
    for (Fragment &sum : sums)
      for (unsigned i : {2 * which, 2 * which + 1})
        sum[i] = arith::DivFOp::create(b, loc, sum[i], total[which]);
  }
  t.store(queries, sums, results[0], parts.output, t.queryLoop(), firstQuery);
  if (results.size() < 2)
    return;
  // One lane of four stores the log-sum-exp of a row.
  Value root = results[1], memory = t.launch.flat(root, /*write=*/true);
  Type type = cast<MemRefType>(root.getType()).getElementType();
  t.note(root, /*store=*/true, bytesOf(type), "one element per row");
  t.count(root, /*store=*/true);
  for (unsigned which : {0, 1}) {
    Value row = t.add(firstQuery, t.rowOf(which));
    Value isOurs = arith::AndIOp::create(b, loc, t.less(row, t.constant(t.extent(t.queryLoop()))),
                                         t.less(t.columnOf(0, 0), t.constant(1)));
    auto branch = scf::IfOp::create(b, loc, isOurs, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value log = addf(state.most[which], math::LogOp::create(b, loc, total[which]));
    memref::StoreOp::create(
        b, loc, t.convert(log, type), memory,
        t.offsetOf(parts.maps.back(), root, t.queryLoop(), row, /*clamp=*/false));
  }
}

GpuShape Forward::emit() {
  const ext::AttentionDomain &domain = parts.domain;
  std::optional<unsigned> query = t.queryLoop();
  int64_t depth = domain.sizeOf(domain.features), width = domain.sizeOf(domain.outputFeatures);
  int64_t numQueries = t.extent(query), numKeys = t.extent(domain.key);
  TileSizes sizes = forwardTiles(t, numQueries, std::max(depth, width));
  t.setWarps(sizes.warps);
  int64_t rows = sizes.warps * AttentionTiles::kRows;
  queries = t.makeTile(t.element(), rows, depth);
  keys = t.makeTile(t.element(), sizes.columns, depth);
  values = t.makeTile(t.element(), sizes.columns, width);
  if (!t.usesMma())
    weights = t.makeTile(t.element(), rows, sizes.columns);

  GpuShape shape;
  shape.threads = sizes.warps * kWarp;
  SmallVector<unsigned> outer(domain.batch);
  llvm::append_range(outer, t.otherQueryLoops());
  int64_t rowTiles = llvm::divideCeil(numQueries, rows);
  shape.blocks = domain.sizeOf(outer) * rowTiles;
  t.fixDigits(outer, t.divide(t.launch.blockIndex(), rowTiles));
  Value tile = t.remainder(t.launch.blockIndex(), rowTiles);
  std::optional<KeyRange> range = visibleKeys(t);
  // The last queries of a causal mask attend to the most keys, so their blocks start first.
  if (range)
    tile = t.add(t.multiply(tile, -1), rowTiles - 1);
  firstQuery = t.multiply(tile, rows);

  t.put(queries, t.fetch(queries, 0, query, firstQuery));
  t.barrier();
  left = t.leftOf(queries);
  RowState state;
  state.sums = t.zeros(values.depth);
  Value none = t.real(-std::numeric_limits<double>::infinity()), zero = t.real(0);
  state.most = {none, none};
  state.total = {zero, zero};
  Value begin = t.constant(0), end = t.constant(numKeys);
  if (range)
    std::tie(begin, end) = keysOf(t, *range, firstQuery, rows, keys.rows);
  state = RowState::of(
      t.loop(begin, end, keys.rows, state.values(), [&](Value firstKey, ValueRange carried) {
        return step(RowState::of(carried), firstKey).values();
      }));
  finish(state);
  for (unsigned operand = 0; operand < parts.op->getNumOperands(); ++operand)
    t.count(t.roots[operand], /*store=*/false);
  return shape;
}

GpuShape emitAttentionForward(AttentionTiles &tiles, ArrayRef<Value> results) {
  return Forward(tiles, results).emit();
}

} // namespace tessera::codegen
