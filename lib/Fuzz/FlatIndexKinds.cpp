//===- FlatIndexKinds.cpp - Rows of a batch by flat indices ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of a sequence of each row of a cut batch, read or added at column + T * row in
// the merged dimension, or at a repeated row and a column. Columns may be in bounds, be
// clamped to them, or reach into other rows.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

static AffineMap map(ProgramBuilder &p, int64_t loops, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(p.b.getAffineDimExpr(dim));
  return AffineMap::get(loops, 0, exprs, p.b.getContext());
}

static Value merged(ProgramBuilder &p, Value value, int64_t behind) {
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t d = 0; d < behind; ++d)
    groups.push_back({d + 2});
  return tensor::CollapseShapeOp::create(p.b, p.loc, value, groups);
}

/// Integers of one number per row and place, computed from the row and `from`, if it is given.
static Value integers(ProgramBuilder &p, ArrayRef<int64_t> shape, Value from,
                      llvm::function_ref<Value(OpBuilder &, Value row, Value element)> body) {
  SmallVector<Entry> inputs;
  SmallVector<AffineMap> maps{map(p, 2, {0, 1})};
  if (from) {
    inputs.push_back(Entry{from});
    maps.push_back(maps.front());
  }
  return p.generic(inputs, p.empty(shape, p.b.getI32Type()), maps, {false, false},
                   [&](OpBuilder &b, ValueRange in) -> Value {
                     Value row = linalg::IndexOp::create(b, p.loc, 0);
                     row = arith::IndexCastOp::create(b, p.loc, b.getI32Type(), row);
                     return body(b, row, in[0]);
                   });
}

/// Whether loop `loop` is at the index.
static Value isAt(ProgramBuilder &p, OpBuilder &b, Value index, int64_t loop) {
  Value at = linalg::IndexOp::create(b, p.loc, loop);
  at = arith::IndexCastOp::create(b, p.loc, b.getI32Type(), at);
  return arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::eq, index, at);
}

static bool flatIndex(ProgramBuilder &p) {
  int64_t devices = 1;
  Entry x = p.cutRows(3, devices);
  int64_t rows = x.shape()[0], length = x.shape()[1], width = x.shape()[2];
  int64_t count = p.random.between(1, 3);
  if (length < 2)
    return false;
  bool isClamped = p.random.percent(70), isFlat = p.random.percent(60);
  Shape places{rows, count};
  Entry position = p.fresh(places, p.b.getI32Type(), isClamped ? -2 : 0,
                           isClamped || isFlat ? length + 2 : length);
  auto number = [&](OpBuilder &b, int64_t value) -> Value {
    return arith::ConstantOp::create(b, p.loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value column = position.value;
  if (isClamped)
    column = integers(p, places, column, [&](OpBuilder &b, Value, Value element) -> Value {
      element = arith::MaxSIOp::create(b, p.loc, element, number(b, 0));
      return arith::MinSIOp::create(b, p.loc, element, number(b, length - 1));
    });
  Value row = integers(p, places, {}, [&](OpBuilder &, Value at, Value) { return at; });
  if (isFlat) {
    column = integers(p, places, column, [&](OpBuilder &b, Value at, Value element) -> Value {
      Value start = arith::MulIOp::create(b, p.loc, at, number(b, length));
      return arith::AddIOp::create(b, p.loc, element, start);
    });
    row = {};
  }
  column = merged(p, column, 0);
  if (row)
    row = merged(p, row, 0);
  // Loops s of places, d of features, then v of the merged dimension, or r and c.
  bool isRead = p.random.percent(60);
  int64_t all = rows * count, flat = rows * length;
  SmallVector<int64_t> searched = isFlat ? SmallVector<int64_t>{2} : SmallVector<int64_t>{2, 3};
  SmallVector<int64_t> table(searched);
  table.push_back(1);
  int64_t loops = isFlat ? 3 : 4;
  SmallVector<Entry> inputs{Entry{column}};
  SmallVector<AffineMap> maps{map(p, loops, {0})};
  if (row) {
    inputs.push_back(Entry{row});
    maps.push_back(maps.front());
  }
  Entry moved = x;
  if (!isRead)
    moved = p.ofType({all, width}, x.element());
  else if (isFlat)
    moved.value = merged(p, x.value, 1);
  AffineMap ofPlaces = map(p, loops, {0, 1}), ofTable = map(p, loops, table);
  inputs.push_back(moved);
  maps.push_back(isRead ? ofTable : ofPlaces);
  maps.push_back(isRead ? ofPlaces : ofTable);
  Shape shape;
  if (isRead)
    shape = {all, width};
  else if (isFlat)
    shape = {flat, width};
  else
    shape = {rows, length, width};
  SmallVector<bool> isReduction(loops, isRead);
  isReduction[0] = !isRead;
  isReduction[1] = false;
  Value result =
      p.generic(inputs, p.filled(shape, x.element(), 0), maps, isReduction,
                [&](OpBuilder &b, ValueRange in) -> Value {
                  Value holds = isAt(p, b, in[0], loops - 1);
                  if (row)
                    holds = arith::AndIOp::create(b, p.loc, holds, isAt(p, b, in[1], 2));
                  Value zero = arith::ConstantOp::create(b, p.loc, b.getZeroAttr(x.element()));
                  Value term = arith::SelectOp::create(b, p.loc, holds, in[row ? 2 : 1], zero);
                  return arith::AddFOp::create(b, p.loc, in[row ? 3 : 2], term);
                });
  if (!isRead && isFlat)
    result = tensor::ExpandShapeOp::create(
        p.b, p.loc, RankedTensorType::get({rows, length, width}, x.element()), result,
        SmallVector<ReassociationIndices>{{0, 1}, {2}});
  auto terms = isRead ? 1.0 : static_cast<double>(all);
  p.push(result, terms * std::min(0.0, moved.low), terms * std::max(0.0, moved.high), false,
         moved.steps + 1);
  return true;
}

void tessera::fuzz::addFlatIndexKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"flat-index", 4, flatIndex});
}
