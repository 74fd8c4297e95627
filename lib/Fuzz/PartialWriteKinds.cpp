//===- PartialWriteKinds.cpp - Ops that write only some elements ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generics whose output map is not a permutation of loops: elements that they do not
// write keep the value of the init, whether or not the body reads it.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera::fuzz;

/// Writes x, or its sum with the init, at the indices of `map`.
static void write(ProgramBuilder &p, const Entry &x, const Entry &into, AffineMap map,
                  bool accumulates, bool isReduction = false) {
  Value value =
      p.generic({x}, into.value, {p.b.getMultiDimIdentityMap(x.rank()), map},
                SmallVector<bool>(x.rank(), isReduction), [&](OpBuilder &b, ValueRange args) {
                  if (!accumulates)
                    return args[0];
                  if (into.isFloat())
                    return arith::AddFOp::create(b, p.loc, args[1], args[0]).getResult();
                  return arith::AddIOp::create(b, p.loc, args[1], args[0]).getResult();
                });
  if (!accumulates)
    return p.pushLike(value, {x, into});
  double terms = isReduction ? static_cast<double>(std::min(x.shape()[0], x.shape()[1])) : 1;
  p.push(value, into.low + terms * std::min(0.0, x.low), into.high + terms * std::max(0.0, x.high),
         x.exact && into.exact && !(isReduction && x.isFloat()), std::max(x.steps, into.steps) + 1);
}

/// Every second or third index of one dimension.
static bool strided(ProgramBuilder &p) {
  Entry into = p.any(1, 3);
  if (!into.value)
    return false;
  int64_t rank = into.rank(), dim = p.random.between(0, rank - 1);
  int64_t stride = p.random.between(2, 3);
  int64_t offset = p.random.between(0, std::min<int64_t>(stride, into.shape()[dim]) - 1);
  Shape shape(into.shape());
  shape[dim] = (shape[dim] - offset + stride - 1) / stride;
  SmallVector<AffineExpr> places;
  for (int64_t d = 0; d < rank; ++d)
    places.push_back(d == dim ? p.b.getAffineDimExpr(d) * stride + offset
                              : p.b.getAffineDimExpr(d));
  Entry x = p.ofType(shape, into.element());
  write(p, x, into, AffineMap::get(rank, 0, places, p.b.getContext()), p.random.percent(30));
  return true;
}

static bool diagonal(ProgramBuilder &p) {
  Entry x = p.any(1, 1);
  if (!x.value)
    return false;
  Entry into = p.ofType({x.shape()[0], x.shape()[0]}, x.element());
  AffineExpr i = p.b.getAffineDimExpr(0);
  write(p, x, into, AffineMap::get(1, 0, {i, i}, p.b.getContext()), p.random.percent(30));
  return true;
}

/// One row, at a constant index.
static bool row(ProgramBuilder &p) {
  Entry into = p.any(2, 3);
  if (!into.value)
    return false;
  int64_t dim = p.random.between(0, into.rank() - 1), loop = 0;
  int64_t place = p.random.between(0, into.shape()[dim] - 1);
  Shape shape;
  SmallVector<AffineExpr> places;
  for (int64_t d = 0; d < into.rank(); ++d) {
    if (d != dim)
      shape.push_back(into.shape()[d]);
    places.push_back(d == dim ? p.b.getAffineConstantExpr(place) : p.b.getAffineDimExpr(loop++));
  }
  Entry x = p.ofType(shape, into.element());
  write(p, x, into, AffineMap::get(loop, 0, places, p.b.getContext()), p.random.percent(30));
  return true;
}

/// Sums over antidiagonals: several iterations write one element, so the loops are reductions.
static bool antidiagonals(ProgramBuilder &p) {
  Entry x = p.any(2, 2);
  if (!x.value || x.element().isInteger(1))
    return false;
  Entry into = p.ofType({x.shape()[0] + x.shape()[1] - 1}, x.element());
  AffineExpr sum = p.b.getAffineDimExpr(0) + p.b.getAffineDimExpr(1);
  write(p, x, into, AffineMap::get(2, 0, {sum}, p.b.getContext()), /*accumulates=*/true,
        /*isReduction=*/true);
  return true;
}

void tessera::fuzz::addPartialWriteKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"write-strided", 2, strided});
  kinds.push_back({"write-diagonal", 2, diagonal});
  kinds.push_back({"write-row", 2, row});
  kinds.push_back({"write-antidiagonals", 2, antidiagonals});
}
