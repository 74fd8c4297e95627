//===- LineKinds.cpp - Scans and sorts ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

/// Two tensors that are scanned together: the greatest element so far, with the first or last
/// element of the other tensor so far, or with its greatest one where the scan is exclusive. A
/// number below all elements, also if it is rounded, is the identity of a maximum.
static void scanOfPairs(ProgramBuilder &p, Entry x) {
  Entry y = p.ofType(x.shape(), x.element());
  int64_t dim = p.random.between(0, x.rank() - 1);
  UnitAttr reverse = p.random.percent(50) ? p.b.getUnitAttr() : UnitAttr();
  UnitAttr exclusive = p.random.percent(50) ? p.b.getUnitAttr() : UnitAttr();
  ArrayAttr identity;
  Type element = x.element();
  if (exclusive) {
    Attribute least = p.b.getFloatAttr(element, 2 * std::min({x.low, y.low, 0.0}) - 1);
    identity = p.b.getArrayAttr({least, least});
    x.low = 3 * std::min({x.low, y.low, 0.0}) - 1;
  }
  auto op = ext::ScanOp::create(p.b, p.loc, TypeRange{x.value.getType(), y.value.getType()},
                                p.b.getI64IntegerAttr(dim), exclusive, reverse,
                                ValueRange{x.value, y.value}, identity);
  Block &body = op.getCombiner().emplaceBlock();
  for (int i = 0; i < 4; ++i)
    body.addArgument(element, p.loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  auto greatest = [&](unsigned of) -> Value {
    return arith::MaximumFOp::create(inner, p.loc, body.getArgument(of), body.getArgument(of + 2));
  };
  Value other = exclusive ? greatest(1) : Value(body.getArgument(p.random.percent(50) ? 1 : 3));
  ext::YieldOp::create(inner, p.loc, ValueRange{greatest(0), other});
  p.pushLike(op.getResult(0), {x, y});
  p.pushLike(op.getResult(1), {x, y});
}

/// A running maximum, or the first or last element so far: exact combiners, of which the last two
/// do not commute.
static bool scan(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  if (x.isFloat() && p.random.percent(40)) {
    scanOfPairs(p, x);
    return true;
  }
  int64_t dim = p.random.between(0, x.rank() - 1);
  UnitAttr reverse = p.random.percent(50) ? p.b.getUnitAttr() : UnitAttr();
  auto op =
      ext::ScanOp::create(p.b, p.loc, TypeRange(x.value.getType()), p.b.getI64IntegerAttr(dim),
                          UnitAttr(), reverse, ValueRange(x.value), ArrayAttr());
  Block &body = op.getCombiner().emplaceBlock();
  Value before = body.addArgument(x.element(), p.loc),
        behind = body.addArgument(x.element(), p.loc);
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  int64_t which = p.random.between(0, 3);
  Value result = which == 0    ? before
                 : which == 1  ? behind
                 : x.isFloat() ? arith::MaximumFOp::create(inner, p.loc, before, behind).getResult()
                               : arith::MaxSIOp::create(inner, p.loc, before, behind).getResult();
  ext::YieldOp::create(inner, p.loc, result);
  p.pushLike(op.getResult(0), x);
  return true;
}

/// A sorted tensor, or its first elements.
static bool sort(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  int64_t dim = p.random.between(0, x.rank() - 1), extent = x.shape()[dim];
  UnitAttr descending = p.random.percent(50) ? p.b.getUnitAttr() : UnitAttr();
  IntegerAttr limit;
  if (extent > 0 && p.random.percent(50))
    limit = p.b.getI64IntegerAttr(p.random.between(1, extent));
  auto op = ext::SortOp::create(p.b, p.loc, p.b.getI64IntegerAttr(dim), p.b.getI64IntegerAttr(1),
                                descending, limit, ValueRange(x.value));
  p.pushLike(op.getResult(0), x);
  return true;
}

/// The numbers 0, 1, ... of rows.
static Value numbers(ProgramBuilder &p, int64_t count) {
  Value empty = tensor::EmptyOp::create(p.b, p.loc, ArrayRef<int64_t>{count}, p.b.getI32Type());
  return linalg::GenericOp::create(
             p.b, p.loc, empty.getType(), ValueRange{}, empty, p.b.getMultiDimIdentityMap(1),
             utils::IteratorType::parallel,
             [](OpBuilder &b, Location loc, ValueRange) {
               Value index = linalg::IndexOp::create(b, loc, 0);
               linalg::YieldOp::create(
                   b, loc, arith::IndexCastOp::create(b, loc, b.getI32Type(), index).getResult());
             })
      .getResult(0);
}

/// A sum over `summed` of the rows of `x` at which `places` is the other loop: a look-up at places,
/// or a scatter to them.
static Value moveRows(ProgramBuilder &p, Value x, Value places, bool scatters) {
  auto type = cast<RankedTensorType>(x.getType());
  AffineExpr row = p.b.getAffineDimExpr(0), other = p.b.getAffineDimExpr(2);
  auto over = [&](AffineExpr first, bool isPlaces = false) {
    SmallVector<AffineExpr> results{first};
    if (!isPlaces)
      results.push_back(p.b.getAffineDimExpr(1));
    return AffineMap::get(3, 0, results, p.b.getContext());
  };
  Value zero = arith::ConstantOp::create(p.b, p.loc, p.b.getZeroAttr(type.getElementType()));
  Value init = tensor::SplatOp::create(p.b, p.loc, zero, type);
  return linalg::GenericOp::create(
             p.b, p.loc, type, ValueRange{x, places}, init,
             ArrayRef<AffineMap>{over(other), over(scatters ? other : row, true), over(row)},
             ArrayRef{utils::IteratorType::parallel, utils::IteratorType::parallel,
                      utils::IteratorType::reduction},
             [&](OpBuilder &b, Location loc, ValueRange in) {
               Value index = linalg::IndexOp::create(b, loc, scatters ? 0 : 2);
               index = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
               Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, in[1], index);
               Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(in[0].getType()));
               Value taken = arith::SelectOp::create(b, loc, isHere, in[0], none);
               linalg::YieldOp::create(b, loc,
                                       arith::AddFOp::create(b, loc, in[2], taken).getResult());
             })
      .getResult(0);
}

/// Rows in the order of sorted keys, to which their position is added, and back.
static bool rowsBySort(ProgramBuilder &p) {
  Entry x = p.anyFloat(2, 2);
  if (!x.value || x.shape()[0] == 0)
    return false;
  int64_t rows = x.shape()[0];
  Entry keys = p.ofType({rows}, x.element());
  Value iota = numbers(p, rows);
  IntegerAttr zero = p.b.getI64IntegerAttr(0), one = p.b.getI64IntegerAttr(1);
  Value places = ext::SortOp::create(p.b, p.loc, zero, one, UnitAttr(), IntegerAttr(),
                                     ValueRange{keys.value, iota})
                     .getResult(1);
  Value sorted = moveRows(p, x.value, places, false);
  auto type = cast<RankedTensorType>(x.value.getType());
  bool countsPositions = p.random.percent(50);
  Value init = tensor::EmptyOp::create(p.b, p.loc, type.getShape(), type.getElementType());
  AffineMap identity = p.b.getMultiDimIdentityMap(2);
  Value changed = linalg::GenericOp::create(
                      p.b, p.loc, type, sorted, init, ArrayRef<AffineMap>{identity, identity},
                      ArrayRef{utils::IteratorType::parallel, utils::IteratorType::parallel},
                      [&](OpBuilder &b, Location loc, ValueRange in) {
                        Value result = arith::NegFOp::create(b, loc, in[0]);
                        if (countsPositions) {
                          Value index = linalg::IndexOp::create(b, loc, 0);
                          index = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
                          Value position = arith::SIToFPOp::create(b, loc, in[0].getType(), index);
                          result = arith::AddFOp::create(b, loc, result, position);
                        }
                        linalg::YieldOp::create(b, loc, result);
                      })
                      .getResult(0);
  if (p.random.percent(25))
    p.pushLike(changed, {x, keys});
  bool scatters = p.random.percent(50);
  if (!scatters)
    places = ext::SortOp::create(p.b, p.loc, zero, one, UnitAttr(), IntegerAttr(),
                                 ValueRange{places, iota})
                 .getResult(1);
  p.pushLike(moveRows(p, changed, places, scatters), {x, keys});
  return true;
}

void tessera::fuzz::addLineKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"scan", 2, scan});
  kinds.push_back({"sort", 2, sort});
  kinds.push_back({"rows_by_sort", 2, rowsBySort});
}
