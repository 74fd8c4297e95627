//===- LineKinds.cpp - Scans and sorts -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

/// A running maximum, or the first or last element so far: exact combiners, of which the last two
/// do not commute.
static bool scan(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
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

void tessera::fuzz::addLineKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"scan", 2, scan});
  kinds.push_back({"sort", 2, sort});
}
