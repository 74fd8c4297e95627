//===- RecurrenceKinds.cpp - Loops along a dimension ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

/// The offsets, sizes and strides of one element of dimension `dim`.
static SmallVector<SmallVector<OpFoldResult>> elementAt(ProgramBuilder &p, ArrayRef<int64_t> shape,
                                                        int64_t dim, Value position) {
  SmallVector<SmallVector<OpFoldResult>> parts(3);
  for (auto [d, size] : llvm::enumerate(shape)) {
    bool isDim = static_cast<int64_t>(d) == dim;
    parts[0].push_back(isDim ? OpFoldResult(position) : p.b.getIndexAttr(0));
    parts[1].push_back(p.b.getIndexAttr(isDim ? 1 : size));
    parts[2].push_back(p.b.getIndexAttr(1));
  }
  return parts;
}

static Value multiply(OpBuilder &b, Location loc, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? arith::MulFOp::create(b, loc, x, y).getResult()
                                     : arith::MulIOp::create(b, loc, x, y).getResult();
}

static Value add(OpBuilder &b, Location loc, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? arith::AddFOp::create(b, loc, x, y).getResult()
                                     : arith::AddIOp::create(b, loc, x, y).getResult();
}

/// A loop over a dimension of `x`, from its first or last element on, that carries h' = a h + x,
/// where a is an element of a vector over the iterations, another vector, -1, 1 or 0, and stacks h,
/// or adds up the products with x.
static bool recurrence(ProgramBuilder &p) {
  Entry x = p.any(1, 3, [](const Entry &entry) { return !entry.element().isInteger(1); });
  if (!x.value)
    return false;
  int64_t dim = p.random.between(0, x.rank() - 1);
  // Often one that several devices divide.
  if (p.random.percent(70)) {
    Shape extended(x.shape());
    extended[dim] = 12 * p.random.between(1, 2);
    x = p.fresh(extended, x.element());
  }
  int64_t trips = x.shape()[dim];
  if (trips < 2)
    return false;
  x = p.within(x, 1);
  Shape shape(x.shape());
  shape.erase(shape.begin() + dim);
  int64_t rank = std::ssize(shape);
  Type element = x.element();
  Entry init = p.within(p.ofType(shape, element), 1);
  int64_t factor = p.random.between(0, 4);
  Entry factors;
  if (factor == 0)
    factors = p.within(p.ofType({trips}, element), 1);
  if (factor == 1)
    factors = p.within(p.ofType(shape, element), 1);
  if (!x.isFloat() && factor < 2)
    factor = 2; // products of integers grow
  bool isReverse = p.random.percent(50), stacksBefore = p.random.percent(50);
  auto sum = RankedTensorType::get(shape, element);
  auto loop = scf::ForOp::create(
      p.b, p.loc, p.index(0), p.index(trips), p.index(1),
      ValueRange{init.value, p.filled(x.shape(), element, 0), p.filled(shape, element, 0)});
  {
    OpBuilder::InsertionGuard guard(p.b);
    p.b.setInsertionPointToStart(loop.getBody());
    Value position = loop.getInductionVar();
    if (isReverse)
      position = arith::SubIOp::create(p.b, p.loc, p.index(trips - 1), position);
    Shape one(x.shape());
    one[dim] = 1;
    auto oneType = RankedTensorType::get(one, element);
    SmallVector<ReassociationIndices> groups;
    if (rank > 0) {
      for (int64_t d = 0; d < rank; ++d)
        groups.push_back({d + (d >= dim)});
      groups[std::min(dim, rank - 1)].insert(
          dim < rank ? groups[dim].begin() : groups[rank - 1].end(), dim);
    }
    auto parts = elementAt(p, x.shape(), dim, position);
    Value slice =
        tensor::ExtractSliceOp::create(p.b, p.loc, oneType, x.value, parts[0], parts[1], parts[2]);
    Value term = tensor::CollapseShapeOp::create(p.b, p.loc, sum, slice, groups);
    Value h = loop.getRegionIterArg(0);
    SmallVector<Value> inputs = {h, term};
    AffineMap identity = p.b.getMultiDimIdentityMap(rank);
    SmallVector<AffineMap> maps = {identity, identity};
    if (factor == 0) {
      auto at = elementAt(p, {trips}, 0, position);
      inputs.push_back(tensor::ExtractSliceOp::create(
          p.b, p.loc, RankedTensorType::get({1}, element), factors.value, at[0], at[1], at[2]));
      maps.push_back(AffineMap::get(rank, 0, {p.b.getAffineConstantExpr(0)}, p.b.getContext()));
    } else if (factor == 1) {
      inputs.push_back(factors.value);
      maps.push_back(identity);
    }
    maps.push_back(identity);
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    auto compute = [&](ValueRange of, ArrayRef<AffineMap> by,
                       llvm::function_ref<Value(OpBuilder &, ValueRange)> body) -> Value {
      return linalg::GenericOp::create(p.b, p.loc, TypeRange(sum), of,
                                       ValueRange(p.empty(shape, element)), by, iterators,
                                       [&](OpBuilder &b, Location loc, ValueRange in) {
                                         linalg::YieldOp::create(b, loc, body(b, in));
                                       })
          .getResult(0);
    };
    Value next = compute(inputs, maps, [&](OpBuilder &b, ValueRange in) -> Value {
      if (factor < 2)
        return add(b, p.loc, multiply(b, p.loc, in[0], in[2]), in[1]);
      if (factor == 2 && x.isFloat())
        return arith::SubFOp::create(b, p.loc, in[1], in[0]);
      if (factor == 2)
        return arith::SubIOp::create(b, p.loc, in[1], in[0]);
      return factor == 3 ? add(b, p.loc, in[0], in[1]) : in[1];
    });
    Value kept = stacksBefore ? h : next;
    Value stacked = tensor::InsertSliceOp::create(
        p.b, p.loc, tensor::ExpandShapeOp::create(p.b, p.loc, oneType, kept, groups),
        loop.getRegionIterArg(1), parts[0], parts[1], parts[2]);
    Value product =
        compute({kept, term}, {identity, identity, identity},
                [&](OpBuilder &b, ValueRange in) { return multiply(b, p.loc, in[0], in[1]); });
    Value total = compute({loop.getRegionIterArg(2), product}, {identity, identity, identity},
                          [&](OpBuilder &b, ValueRange in) { return add(b, p.loc, in[0], in[1]); });
    scf::YieldOp::create(p.b, p.loc, ValueRange{next, stacked, total});
  }
  bool exact =
      x.exact && init.exact && (factor == 4 || !x.isFloat()) && (!factors.value || factors.exact);
  double bound = static_cast<double>(trips) + 1;
  int64_t steps = std::max({x.steps, init.steps, factors.steps}) + trips;
  p.push(loop.getResult(0), -bound, bound, exact, steps);
  p.push(loop.getResult(1), -bound, bound, exact, steps);
  p.push(loop.getResult(2), -bound * bound, bound * bound, exact && !x.isFloat(), steps + trips);
  return true;
}

/// A pipeline that rolls its stages. What the last stage computes is stored, and read by the first
/// one later, or only returned; its squares are added up.
static bool rolledStages(ProgramBuilder &p) {
  Type element = p.floatElement();
  int64_t stages = p.random.between(2, 4), stored = p.random.between(2, 4);
  int64_t rows = p.random.between(1, 3), width = p.random.between(1, 3);
  int64_t trips = stored + stages + p.random.between(0, 3);
  Shape state{stages, rows, width}, row{1, rows, width};
  Entry weights = p.within(p.fresh({stages, width, width}, element), 1);
  Entry x = p.within(p.fresh({stored, rows, width}, element), 1);
  bool isCircular = p.random.percent(60);
  auto typed = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, element); };
  auto part = [&](Value of, OpFoldResult at, ArrayRef<int64_t> shape) -> Value {
    SmallVector<OpFoldResult> offsets{at, p.b.getIndexAttr(0), p.b.getIndexAttr(0)};
    SmallVector<OpFoldResult> ones(3, p.b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(p.b, p.loc, typed(shape), of, offsets,
                                          getAsIndexOpFoldResult(p.b.getContext(), shape), ones);
  };
  auto put = [&](Value what, Value into, OpFoldResult at) -> Value {
    SmallVector<OpFoldResult> offsets{at, p.b.getIndexAttr(0), p.b.getIndexAttr(0)};
    SmallVector<OpFoldResult> ones(3, p.b.getIndexAttr(1));
    return tensor::InsertSliceOp::create(p.b, p.loc, what, into, offsets,
                                         getAsIndexOpFoldResult(p.b.getContext(), row), ones);
  };
  auto loop = scf::ForOp::create(
      p.b, p.loc, p.index(0), p.index(trips), p.index(1),
      ValueRange{p.filled(state, element, 0), x.value, p.filled({rows, width}, element, 0)});
  {
    OpBuilder::InsertionGuard guard(p.b);
    p.b.setInsertionPointToStart(loop.getBody());
    Value at = arith::RemUIOp::create(p.b, p.loc, loop.getInductionVar(), p.index(stored));
    Value h = loop.getRegionIterArg(0), kept = loop.getRegionIterArg(1);
    Value in = put(part(isCircular ? kept : x.value, at, row), h, p.b.getIndexAttr(0));
    Value sums =
        linalg::BatchMatmulOp::create(p.b, p.loc, typed(state), ValueRange{in, weights.value},
                                      ValueRange(p.filled(state, element, 0)))
            .getResult(0);
    Value y = math::TanhOp::create(p.b, p.loc, sums);
    Value last = part(y, p.b.getIndexAttr(stages - 1), row);
    Value flat = tensor::CollapseShapeOp::create(p.b, p.loc, typed({rows, width}), last,
                                                 SmallVector<ReassociationIndices>{{0, 1}, {2}});
    Value square = arith::MulFOp::create(p.b, p.loc, flat, flat);
    Value total = arith::AddFOp::create(p.b, p.loc, loop.getRegionIterArg(2), square);
    Value next = tensor::ConcatOp::create(
        p.b, p.loc, 0, ValueRange{last, part(y, p.b.getIndexAttr(0), {stages - 1, rows, width})});
    scf::YieldOp::create(p.b, p.loc, ValueRange{next, put(last, kept, at), total});
  }
  int64_t steps = std::max(weights.steps, x.steps) + trips * (width + 2);
  double bound = static_cast<double>(trips) + 1;
  p.push(loop.getResult(0), -1, 1, false, steps);
  p.push(loop.getResult(1), -1, 1, false, steps);
  p.push(loop.getResult(2), 0, bound, false, steps);
  return true;
}

void tessera::fuzz::addRecurrenceKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"recurrence", 2, recurrence});
  kinds.push_back({"rolled-stages", 1, rolledStages});
}
