//===- PartKinds.cpp - What is computed from one part of a dimension ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows within one part of a cut dimension, as the results of a pipeline's last stage: a
// slice of them, or a sum that a mask selects; elementwise ops, a sum, and a pad back.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera::fuzz;

static Value added(ProgramBuilder &p, const Entry &a, const Entry &c) {
  AffineMap identity = p.b.getMultiDimIdentityMap(a.rank());
  return p.generic({a, c}, p.empty(a.shape(), a.element()), {identity, identity, identity},
                   SmallVector<bool>(a.rank(), false), [&](OpBuilder &b, ValueRange args) -> Value {
                     return arith::AddFOp::create(b, p.loc, args[0], args[1]);
                   });
}

/// The sum over the last dimension.
static void pushSum(ProgramBuilder &p, const Entry &x) {
  int64_t rank = x.rank(), terms = x.shape().back();
  AffineMap all = p.b.getMultiDimIdentityMap(rank);
  SmallVector<bool> isReduction(rank, false);
  isReduction.back() = true;
  Value sum = p.generic({x}, p.filled(x.shape().drop_back(), x.element(), 0),
                        {all, all.dropResult(rank - 1)}, isReduction,
                        [&](OpBuilder &b, ValueRange args) -> Value {
                          return arith::AddFOp::create(b, p.loc, args[1], args[0]);
                        });
  p.push(sum, static_cast<double>(terms) * std::min(0.0, x.low),
         static_cast<double>(terms) * std::max(0.0, x.high), false, x.steps + 1);
}

/// A slice within one part, what is computed from it, and a pad to its rows.
static bool partOfRows(ProgramBuilder &p) {
  int64_t parts = 1;
  Entry x = p.cutRows(p.random.between(2, 3), parts);
  int64_t rows = x.shape()[0], size = rows / parts, count = p.random.between(1, size);
  int64_t first = p.random.between(0, parts - 1) * size + p.random.between(0, size - count);
  Shape shape(x.shape());
  shape[0] = count;
  SmallVector<OpFoldResult> zeros(x.rank(), p.b.getIndexAttr(0)),
      ones(x.rank(), p.b.getIndexAttr(1)), sizes;
  for (int64_t extent : shape)
    sizes.push_back(p.b.getIndexAttr(extent));
  SmallVector<OpFoldResult> low = zeros, high = zeros;
  low[0] = p.b.getIndexAttr(first);
  high[0] = p.b.getIndexAttr(rows - first - count);
  Entry slice = x;
  slice.value = tensor::ExtractSliceOp::create(
      p.b, p.loc, RankedTensorType::get(shape, x.element()), x.value, low, sizes, ones);
  Entry other = p.ofType(shape, x.element()), sum = slice;
  sum.value = added(p, slice, other);
  sum.low += other.low;
  sum.high += other.high;
  sum.exact = false;
  sum = p.within(sum, 8);
  if (p.random.percent(70))
    pushSum(p, sum);
  if (p.random.percent(30))
    p.pushLike(sum.value, sum);
  if (p.random.percent(70)) {
    double fill = p.random.percent(60) ? 0 : 2;
    Entry back = sum;
    back.value = tensor::PadOp::create(p.b, p.loc, x.type(), sum.value, low, high,
                                       p.constant(x.element(), fill));
    back.value = p.cutLike(back.value, x);
    p.pushLike(back.value, {back, Entry{back.value, 0, fill}});
  }
  return true;
}

/// The sum over rows of which a mask selects one, and that row where the mask is set.
static bool maskedRow(ProgramBuilder &p) {
  int64_t parts = 1;
  Entry x = p.cutRows(p.random.between(2, 3), parts);
  int64_t rank = x.rank(), rows = x.shape()[0], row = p.random.between(0, rows - 1);
  AffineMap all = p.b.getMultiDimIdentityMap(rank),
            line = AffineMap::get(rank, 0, p.b.getAffineDimExpr(0));
  auto mask = linalg::GenericOp::create(
      p.b, p.loc, TypeRange{RankedTensorType::get({rows}, p.b.getI1Type())}, ValueRange{},
      ValueRange{p.empty({rows}, p.b.getI1Type())},
      ArrayRef<AffineMap>{p.b.getMultiDimIdentityMap(1)},
      ArrayRef<utils::IteratorType>{utils::IteratorType::parallel},
      [&](OpBuilder &b, Location at, ValueRange) {
        Value index = linalg::IndexOp::create(b, at, 0);
        Value wanted = arith::ConstantIndexOp::create(b, at, row);
        Value isRow = arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, index, wanted);
        linalg::YieldOp::create(b, at, isRow);
      });
  auto select = [&](const Entry &value, AffineMap map) {
    return p.generic({Entry{mask->getResult(0)}, value}, p.empty(x.shape(), x.element()),
                     {line, map, all}, SmallVector<bool>(rank, false),
                     [&](OpBuilder &b, ValueRange args) -> Value {
                       Value zero = arith::ConstantOp::create(b, p.loc, b.getZeroAttr(x.element()));
                       return arith::SelectOp::create(b, p.loc, args[0], args[1], zero);
                     });
  };
  Entry selected = x;
  selected.value = select(x, all);
  SmallVector<bool> isReduction(rank, false);
  isReduction[0] = true;
  Entry sum = x;
  sum.value =
      p.generic({selected}, p.filled(x.shape().drop_front(), x.element(), 0),
                {all, all.dropResult(0)}, isReduction, [&](OpBuilder &b, ValueRange args) -> Value {
                  return arith::AddFOp::create(b, p.loc, args[1], args[0]);
                });
  sum.low = std::min(0.0, x.low);
  sum.high = std::max(0.0, x.high);
  p.pushLike(sum.value, sum);
  if (p.random.percent(60)) {
    Entry back = sum;
    back.value = p.cutLike(select(sum, all.dropResult(0)), x);
    p.pushLike(back.value, back);
  }
  return true;
}

void tessera::fuzz::addPartKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"part-of-rows", 8, partOfRows});
  kinds.push_back({"masked-row", 3, maskedRow});
}
