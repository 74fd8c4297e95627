//===- ElementwiseKinds.cpp - Ops on single elements, broadcasts, casts ---===//
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

#include <cmath>

using namespace mlir;
using namespace tessera::fuzz;

/// A float function of one value with its bounds, if the bounds of the operand allow it.
static bool floatUnary(ProgramBuilder &p, Entry x) {
  OpBuilder &b = p.b;
  Value v = x.value;
  auto give = [&](Value value, double low, double high) {
    p.push(value, low, high, x.exact, x.steps);
    return true;
  };
  switch (p.random.between(0, 9)) {
  case 0:
    return give(math::TanhOp::create(b, p.loc, v), -1, 1);
  case 1:
    if (x.high > 3)
      return false;
    return give(math::ExpOp::create(b, p.loc, v), 0, std::exp(x.high));
  case 2:
    return give(arith::NegFOp::create(b, p.loc, v), -x.high, -x.low);
  case 3:
    return give(math::AbsFOp::create(b, p.loc, v), 0, x.magnitude());
  case 4:
    return give(math::SinOp::create(b, p.loc, v), -1, 1);
  case 5:
    return give(math::ErfOp::create(b, p.loc, v), -1, 1);
  case 6: {
    // 1 / (1 + x^2) is safe for all x, and so is a logarithm of the sum.
    Value square = arith::MulFOp::create(b, p.loc, v, v);
    Value sum = arith::AddFOp::create(b, p.loc, square, p.splat(x.shape(), x.element(), 1));
    if (p.random.percent(50))
      return give(math::LogOp::create(b, p.loc, sum), 0,
                  std::log(1 + x.magnitude() * x.magnitude()));
    Value one = p.splat(x.shape(), x.element(), 1);
    return give(arith::DivFOp::create(b, p.loc, one, sum), 0, 1);
  }
  case 7:
    return give(math::FmaOp::create(b, p.loc, v, v, v), -x.magnitude() * (1 + x.magnitude()),
                x.magnitude() * (1 + x.magnitude()));
  case 8: { // a named op
    auto op = linalg::ExpOp::create(b, p.loc, v, p.empty(x.shape(), x.element()));
    if (x.high > 3) {
      op->erase();
      return false;
    }
    return give(op.getResult(0), 0, std::exp(x.high));
  }
  default:
    return give(arith::MulFOp::create(b, p.loc, v, p.splat(x.shape(), x.element(), 0.5)),
                x.low / 2 < 0 ? x.low / 2 : 0, x.high / 2 > 0 ? x.high / 2 : 0);
  }
}

static bool intUnary(ProgramBuilder &p, Entry x) {
  OpBuilder &b = p.b;
  Value v = x.value, three = p.splat(x.shape(), x.element(), 3);
  switch (p.random.between(0, 5)) {
  case 0:
    p.pushLike(arith::MulIOp::create(b, p.loc, v, three), x);
    return true;
  case 1:
    p.pushLike(arith::SubIOp::create(b, p.loc, three, v), x);
    return true;
  case 2:
    p.pushLike(arith::XOrIOp::create(b, p.loc, v, three), x);
    return true;
  case 3:
    p.pushLike(arith::FloorDivSIOp::create(b, p.loc, v, three), x);
    return true;
  case 4: { // the divisor is never zero, but its padding may be
    if (x.element().isInteger(1))
      return false;
    Entry by = p.fresh(x.shape(), x.element(), 1, 6);
    Value quotient = p.random.percent(50)
                         ? arith::RemSIOp::create(b, p.loc, v, by.value).getResult()
                         : arith::DivSIOp::create(b, p.loc, v, by.value).getResult();
    p.pushLike(quotient, x);
    return true;
  }
  default:
    p.pushLike(math::AbsIOp::create(b, p.loc, v), x);
    return true;
  }
}

static bool unary(ProgramBuilder &p) {
  Entry x = p.any(0, 4);
  return x.value && (x.isFloat() ? floatUnary(p, x) : intUnary(p, x));
}

/// Bounds of x op y.
static std::pair<double, double> bounds(int op, const Entry &x, const Entry &y) {
  double product = x.magnitude() * y.magnitude();
  switch (op) {
  case 0:
    return {x.low + y.low, x.high + y.high};
  case 1:
    return {x.low - y.high, x.high - y.low};
  case 2:
    return {-product, product};
  case 3:
    return {std::max(x.low, y.low), std::max(x.high, y.high)};
  default:
    return {std::min(x.low, y.low), std::min(x.high, y.high)};
  }
}

static Value apply(OpBuilder &b, Location loc, int op, bool isFloat, Value x, Value y) {
  switch (op) {
  case 0:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult()
                   : arith::AddIOp::create(b, loc, x, y).getResult();
  case 1:
    return isFloat ? arith::SubFOp::create(b, loc, x, y).getResult()
                   : arith::SubIOp::create(b, loc, x, y).getResult();
  case 2:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult()
                   : arith::MulIOp::create(b, loc, x, y).getResult();
  case 3:
    return isFloat ? arith::MaximumFOp::create(b, loc, x, y).getResult()
                   : arith::MaxSIOp::create(b, loc, x, y).getResult();
  default:
    return isFloat ? arith::MinimumFOp::create(b, loc, x, y).getResult()
                   : arith::MinSIOp::create(b, loc, x, y).getResult();
  }
}

static void pushBinary(ProgramBuilder &p, Value value, int op, const Entry &x, const Entry &y) {
  auto [low, high] = bounds(op, x, y);
  p.push(value, low, high, x.exact && y.exact, std::max(x.steps, y.steps));
}

static bool binary(ProgramBuilder &p) {
  Entry x = p.any(0, 4);
  if (!x.value)
    return false;
  Entry y = p.ofType(x.shape(), x.element());
  int op = static_cast<int>(p.random.between(0, 4));
  if (p.random.percent(25) && op == 0) { // a named op with an unused init
    auto named = linalg::AddOp::create(p.b, p.loc, ValueRange{x.value, y.value},
                                       ValueRange{p.empty(x.shape(), x.element())});
    pushBinary(p, named.getResult(0), op, x, y);
    return true;
  }
  pushBinary(p, apply(p.b, p.loc, op, x.isFloat(), x.value, y.value), op, x, y);
  return true;
}

/// x op y where y lacks some dimensions of x, through indexing maps.
static bool broadcastBinary(ProgramBuilder &p) {
  Entry x = p.any(1, 4);
  if (!x.value)
    return false;
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (p.random.percent(50))
      kept.push_back(d);
  p.random.shuffle(kept);
  Shape shape;
  SmallVector<AffineExpr> dims;
  for (int64_t d : kept) {
    shape.push_back(x.shape()[d]);
    dims.push_back(p.b.getAffineDimExpr(d));
  }
  Entry y = p.ofType(shape, x.element());
  int op = static_cast<int>(p.random.between(0, 4));
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  AffineMap map = AffineMap::get(x.rank(), 0, dims, p.b.getContext());
  Value value = p.generic({x, y}, p.empty(x.shape(), x.element()), {identity, map, identity},
                          SmallVector<bool>(x.rank(), false), [&](OpBuilder &b, ValueRange args) {
                            return apply(b, p.loc, op, x.isFloat(), args[0], args[1]);
                          });
  pushBinary(p, value, op, x, y);
  return true;
}

static bool broadcast(ProgramBuilder &p) {
  Entry x = p.any(0, 2);
  if (!x.value)
    return false;
  std::vector<int64_t> added;
  Shape shape;
  int64_t next = 0, rank = x.rank() + p.random.between(1, 2);
  std::vector<int64_t> places;
  for (int64_t d = 0; d < rank; ++d)
    places.push_back(d);
  p.random.shuffle(places);
  places.resize(rank - x.rank());
  llvm::sort(places);
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(llvm::is_contained(places, d) ? p.random.between(1, 7) : x.shape()[next++]);
  auto op = linalg::BroadcastOp::create(p.b, p.loc, x.value, p.empty(shape, x.element()), places);
  p.pushLike(op->getResult(0), x);
  return true;
}

static bool cast(ProgramBuilder &p) {
  Entry x = p.any(0, 3);
  if (!x.value)
    return false;
  OpBuilder &b = p.b;
  auto to = [&](Type element) { return RankedTensorType::get(x.shape(), element); };
  if (x.element().isF32())
    p.pushLike(arith::ExtFOp::create(b, p.loc, to(b.getF64Type()), x.value), x);
  else if (x.element().isF64() && x.exact)
    p.pushLike(arith::TruncFOp::create(b, p.loc, to(b.getF32Type()), x.value), x);
  else if (x.element().isInteger(32))
    p.pushLike(arith::ExtSIOp::create(b, p.loc, to(b.getI64Type()), x.value), x);
  else if (x.element().isInteger(64))
    p.pushLike(arith::TruncIOp::create(b, p.loc, to(b.getI32Type()), x.value), x);
  else
    return false;
  return true;
}

/// x > y ? x : y / 2, by a comparison; of floats only if both are exact.
static bool compareSelect(ProgramBuilder &p) {
  Entry x = p.any(0, 3, [&](const Entry &entry) {
    return !entry.isFloat() || (p.comparesFloats && entry.exact);
  });
  if (!x.value)
    return false;
  Entry y = p.ofType(x.shape(), x.element());
  if (x.isFloat() && !y.exact)
    return false;
  Value condition =
      x.isFloat() ? arith::CmpFOp::create(p.b, p.loc, arith::CmpFPredicate::OGT, x.value, y.value)
                        .getResult()
                  : arith::CmpIOp::create(p.b, p.loc, arith::CmpIPredicate::sgt, x.value, y.value)
                        .getResult();
  Entry z = p.ofType(x.shape(), x.element());
  p.pushLike(arith::SelectOp::create(p.b, p.loc, condition, x.value, z.value), {x, z});
  return true;
}

/// Two results of one generic.
static bool twoResults(ProgramBuilder &p) {
  Entry x = p.any(1, 3);
  if (!x.value)
    return false;
  Entry y = p.ofType(x.shape(), x.element());
  std::vector<int64_t> order;
  for (int64_t d = 0; d < x.rank(); ++d)
    order.push_back(d);
  p.random.shuffle(order);
  Shape shape;
  SmallVector<AffineExpr> dims;
  for (int64_t d : order) {
    shape.push_back(x.shape()[d]);
    dims.push_back(p.b.getAffineDimExpr(d));
  }
  AffineMap identity = p.b.getMultiDimIdentityMap(x.rank());
  AffineMap permuted = AffineMap::get(x.rank(), 0, dims, p.b.getContext());
  Value first = p.empty(x.shape(), x.element()), second = p.empty(shape, x.element());
  auto op = linalg::GenericOp::create(
      p.b, p.loc, TypeRange{first.getType(), second.getType()}, ValueRange{x.value, y.value},
      ValueRange{first, second}, ArrayRef<AffineMap>{identity, identity, identity, permuted},
      SmallVector<utils::IteratorType>(x.rank(), utils::IteratorType::parallel),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = apply(b, loc, 0, x.isFloat(), args[0], args[1]);
        Value most = apply(b, loc, 3, x.isFloat(), args[0], args[1]);
        linalg::YieldOp::create(b, loc, ValueRange{sum, most});
      });
  pushBinary(p, op.getResult(0), 0, x, y);
  pushBinary(p, op.getResult(1), 3, x, y);
  return true;
}

void tessera::fuzz::addElementwiseKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"unary", 10, unary});
  kinds.push_back({"binary", 14, binary});
  kinds.push_back({"broadcast-binary", 8, broadcastBinary});
  kinds.push_back({"broadcast", 4, broadcast});
  kinds.push_back({"cast", 3, cast});
  kinds.push_back({"select", 4, compareSelect});
  kinds.push_back({"two-results", 3, twoResults});
}
