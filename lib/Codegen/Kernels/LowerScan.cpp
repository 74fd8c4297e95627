//===- LowerScan.cpp - Scans as loops, or as log steps ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On one core a scan is a loop along its dimension. If each step has many
// contiguous elements, the loop carries a row of them, so that a step is a
// vectorised nest:
//
//   for o:  row = x[o, 0, :]
//     for i = 1 ..:  row = row ∘ x[o, i, :];  r[o, i, :] = row
//
// else it carries the elements of one line. In parallel, the scan takes log2(n)
// steps (Hillis and Steele 1986):
//
//   for d = 1, 2, 4 .. n:  r[o, i, j] = i < d ? r[o, i, j] : r[o, i - d, j] ∘ r[o, i, j]
//
//===----------------------------------------------------------------------===//

#include "LowerExt.h"

#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;
using Values = LoopWriter::Values;

/// The least number of contiguous elements in a row.
static constexpr int64_t kLeastRow = 8;

namespace {
class ScanWriter {
public:
  ScanWriter(OpBuilder &b, ext::ScanOp op)
      : op(op), lines(op.getShape(), op.getDim()), write{b, op.getLoc()} {
    for (Value input : op.getInputs()) {
      inputs.push_back(Lines::collapse(b, op.getLoc(), input, op.getDim()));
      elements.push_back(getElementTypeOrSelf(input.getType()));
    }
  }
  Values loops();
  Values steps();

private:
  Values combine(OpBuilder &b, ValueRange before, ValueRange behind) const {
    IRMapping mapping;
    Values arguments(before);
    llvm::append_range(arguments, behind);
    mapping.map(op.getBody().getArguments(), arguments);
    for (Operation &inner : op.getBody().without_terminator())
      b.clone(inner, mapping);
    return llvm::map_to_vector<4>(op.getBody().getTerminator()->getOperands(),
                                  [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  /// The index of step i of the scan.
  Value place(LoopWriter at, Value i) const {
    return op.getReverse() ? at.sub(at.index(lines.extent - 1), i) : i;
  }
  Values identities(LoopWriter at) const {
    Values values;
    for (Attribute value : op.getIdentityAttr())
      values.push_back(arith::ConstantOp::create(at.b, at.loc, cast<TypedAttr>(value)));
    return values;
  }
  Values alongRows(LoopWriter at, Value o, Values results) const;
  Values alongLine(LoopWriter at, Value o, Value j, Values results) const;
  Value rowOf(LoopWriter at, Value tensor, Value o, Value i) const;
  Value putRow(LoopWriter at, Value row, Value tensor, Value o, Value i) const;

  mutable ext::ScanOp op; ///< accessors of ops are not const
  Lines lines;
  LoopWriter write;
  Values inputs;
  SmallVector<Type> elements;
};
} // namespace

Value ScanWriter::rowOf(LoopWriter at, Value tensor, Value o, Value i) const {
  OpBuilder &b = at.b;
  auto type = RankedTensorType::get({lines.inner}, getElementTypeOrSelf(tensor.getType()));
  SmallVector<OpFoldResult> offsets{o, i, b.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1), b.getIndexAttr(1),
                                  b.getIndexAttr(lines.inner)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, at.loc, type, tensor, offsets, sizes, strides);
}

Value ScanWriter::putRow(LoopWriter at, Value row, Value tensor, Value o, Value i) const {
  OpBuilder &b = at.b;
  SmallVector<OpFoldResult> offsets{o, i, b.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1), b.getIndexAttr(1),
                                  b.getIndexAttr(lines.inner)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, at.loc, row, tensor, offsets, sizes, strides);
}

Values ScanWriter::alongRows(LoopWriter at, Value o, Values results) const {
  size_t count = inputs.size();
  AffineMap map = at.b.getMultiDimIdentityMap(1);
  auto over = [&](LoopWriter where, ValueRange read, ValueRange rows,
                  function_ref<Values(LoopWriter, ValueRange, ValueRange)> body) {
    SmallVector<AffineMap> maps(read.size() + rows.size(), map);
    auto generic = linalg::GenericOp::create(
        where.b, where.loc, TypeRange(rows), read, rows, maps, utils::IteratorType::parallel,
        [&](OpBuilder &inner, Location, ValueRange args) {
          linalg::YieldOp::create(
              inner, where.loc,
              body({inner, where.loc}, args.take_front(read.size()), args.drop_front(read.size())));
        });
    return Values(generic.getResults());
  };
  auto rowsAt = [&](LoopWriter where, Value i) {
    return llvm::map_to_vector<4>(inputs, [&](Value x) { return rowOf(where, x, o, i); });
  };
  auto put = [&](LoopWriter where, ValueRange rows, Values into, Value i) {
    for (auto [row, result] : llvm::zip(rows, into))
      result = putRow(where, row, result, o, i);
    return into;
  };
  Values rows;
  for (Type element : elements)
    rows.push_back(at.empty({lines.inner}, element));
  Value first = place(at, at.index(0));
  bool exclusive = op.getExclusive();
  if (exclusive)
    rows = over(at, {}, rows,
                [&](LoopWriter where, ValueRange, ValueRange) { return identities(where); });
  else
    rows = over(at, rowsAt(at, first), rows,
                [&](LoopWriter, ValueRange read, ValueRange) { return Values(read); });
  Values state = put(at, rows, results, first);
  llvm::append_range(state, rows);
  state = at.loop(at.index(1), at.index(lines.extent), at.index(1), state,
                  [&](LoopWriter where, Value i, Values state) {
                    Value from = exclusive ? where.sub(i, where.index(1)) : i;
                    Values rows = over(where, rowsAt(where, place(where, from)),
                                       ArrayRef<Value>(state).drop_front(count),
                                       [&](LoopWriter body, ValueRange read, ValueRange row) {
                                         return combine(body.b, row, read);
                                       });
                    Values next(ArrayRef<Value>(state).take_front(count));
                    next = put(where, rows, next, place(where, i));
                    llvm::append_range(next, rows);
                    return next;
                  });
  state.resize(count);
  return state;
}

Values ScanWriter::alongLine(LoopWriter at, Value o, Value j, Values results) const {
  size_t count = inputs.size();
  bool exclusive = op.getExclusive();
  auto readAt = [&](LoopWriter where, Value i) {
    return llvm::map_to_vector<4>(inputs,
                                  [&](Value x) { return where.read(x, {o, place(where, i), j}); });
  };
  auto put = [&](LoopWriter where, ArrayRef<Value> into, ArrayRef<Value> values, Value i) {
    Values next;
    for (auto [result, value] : llvm::zip(into, values))
      next.push_back(where.write(result, {o, place(where, i), j}, value));
    llvm::append_range(next, values);
    return next;
  };
  Values before = exclusive ? identities(at) : Values(readAt(at, at.index(0)));
  Values state = put(at, results, before, at.index(0));
  state = at.loop(at.index(1), at.index(lines.extent), at.index(1), state,
                  [&](LoopWriter where, Value i, Values state) {
                    Value from = exclusive ? where.sub(i, where.index(1)) : i;
                    Values next = combine(where.b, ArrayRef<Value>(state).drop_front(count),
                                          readAt(where, from));
                    return put(where, ArrayRef<Value>(state).take_front(count), next, i);
                  });
  state.resize(count);
  return state;
}

Values ScanWriter::loops() {
  SmallVector<Type> types;
  for (Type element : elements)
    types.push_back(RankedTensorType::get(lines.shape(), element));
  auto group = rt::GroupOp::create(write.b, write.loc, types, "scan");
  OpBuilder inner = OpBuilder::atBlockEnd(&group.getBody().emplaceBlock());
  LoopWriter at{inner, write.loc};
  Values results;
  for (Type element : elements)
    results.push_back(at.empty(lines.shape(), element));
  Value zero = at.index(0), one = at.index(1);
  results = at.loop(zero, at.index(lines.outer), one, results,
                    [&](LoopWriter outer, Value o, Values state) {
                      if (lines.inner >= kLeastRow)
                        return alongRows(outer, o, state);
                      return outer.loop(zero, outer.index(lines.inner), one, state,
                                        [&](LoopWriter line, Value j, Values state) {
                                          return alongLine(line, o, j, state);
                                        });
                    });
  rt::YieldOp::create(inner, write.loc, results);
  return Values(group.getResults());
}

Values ScanWriter::steps() {
  Values values = inputs;
  // combine(values at i - distance, values at i), if the former exist.
  auto step = [&](LoopWriter where, ValueRange from, Value distance) {
    return where.nest(lines.shape(), elements, [&](LoopWriter body, Values at) {
      Value i = place(body, at[1]);
      Value isFirst = body.less(i, distance);
      Value other = place(body, body.select(isFirst, i, body.sub(i, distance)));
      Values before, own;
      for (Value value : from) {
        before.push_back(body.read(value, {at[0], other, at[2]}));
        own.push_back(body.read(value, at));
      }
      Values next = combine(body.b, before, own);
      for (auto [result, kept] : llvm::zip(next, own))
        result = body.select(isFirst, kept, result);
      return next;
    });
  };
  int64_t rounds = llvm::Log2_64_Ceil(lines.extent);
  Value zero = write.index(0), one = write.index(1);
  if (rounds > 0)
    values = write.loop(
        zero, write.index(rounds), one, values, [&](LoopWriter round, Value r, Values state) {
          Value distance = arith::ShLIOp::create(round.b, round.loc, round.index(1), r);
          return step(round, state, distance);
        });
  if (!op.getExclusive())
    return values;
  return write.nest(lines.shape(), elements, [&](LoopWriter body, Values at) {
    Value i = place(body, at[1]), zero = body.index(0), one = body.index(1);
    Value isFirst = body.less(i, one);
    Value other = place(body, body.select(isFirst, zero, body.sub(i, one)));
    Values shifted;
    for (auto [value, identity] : llvm::zip(values, identities(body)))
      shifted.push_back(body.select(isFirst, identity, body.read(value, {at[0], other, at[2]})));
    return shifted;
  });
}

void codegen::lowerScan(OpBuilder &b, ext::ScanOp op, bool parallel) {
  ScanWriter writer(b, op);
  Values results = parallel ? writer.steps() : writer.loops();
  for (auto [result, value] : llvm::zip(op.getResults(), results))
    result.replaceAllUsesWith(Lines::expand(b, op.getLoc(), value,
                                            cast<RankedTensorType>(result.getType()), op.getDim()));
}
