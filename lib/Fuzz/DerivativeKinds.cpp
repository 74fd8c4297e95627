//===- DerivativeKinds.cpp - Random bodies and maps, for derivatives ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera::fuzz;

namespace {

/// Writes a random expression of f64 scalars. A sine maps arguments of functions into their domain,
/// so that every program is differentiable almost everywhere and values stay moderate.
class BodyWriter {
public:
  BodyWriter(Random &random, OpBuilder &b, Location loc) : random(random), b(b), loc(loc) {}

  Value write(ValueRange arguments) {
    std::vector<Value> values(arguments.begin(), arguments.end());
    for (int64_t steps = random.between(1, 6); steps > 0; --steps) {
      Value x = random.pick(values), y = random.pick(values);
      values.push_back(random.percent(55) ? unary(x) : binary(x, y));
    }
    Value sum = values.back();
    for (Value argument : arguments) // every argument matters
      if (random.percent(70))
        sum = make<arith::AddFOp>(sum, make<arith::MulFOp>(argument, values[values.size() - 1]));
    return make<math::SinOp>(sum);
  }

private:
  template <typename Op, typename... Args> Value make(Args... args) {
    return Op::create(b, loc, args...)->getResult(0);
  }
  Value number(double value) { return make<arith::ConstantOp>(b.getF64FloatAttr(value)); }
  /// Maps x into [centre - radius, centre + radius].
  Value around(Value x, double centre, double radius) {
    return make<arith::AddFOp>(make<arith::MulFOp>(make<math::SinOp>(x), number(radius)),
                               number(centre));
  }

  Value unary(Value x) {
    using Make = Value (BodyWriter::*)(Value);
    static const Make anywhere[] = {
        &BodyWriter::apply<math::ErfOp>,   &BodyWriter::apply<math::ErfcOp>,
        &BodyWriter::apply<math::SinOp>,   &BodyWriter::apply<math::CosOp>,
        &BodyWriter::apply<math::AtanOp>,  &BodyWriter::apply<math::TanhOp>,
        &BodyWriter::apply<math::AsinhOp>, &BodyWriter::apply<math::AbsFOp>,
        &BodyWriter::apply<arith::NegFOp>, &BodyWriter::apply<math::FloorOp>,
        &BodyWriter::apply<math::CeilOp>,  &BodyWriter::apply<math::TruncOp>};
    static const Make near[] = {
        &BodyWriter::apply<math::ExpOp>,   &BodyWriter::apply<math::Exp2Op>,
        &BodyWriter::apply<math::ExpM1Op>, &BodyWriter::apply<math::TanOp>,
        &BodyWriter::apply<math::AsinOp>,  &BodyWriter::apply<math::AcosOp>,
        &BodyWriter::apply<math::SinhOp>,  &BodyWriter::apply<math::CoshOp>,
        &BodyWriter::apply<math::AtanhOp>, &BodyWriter::apply<math::Log1pOp>};
    static const Make positive[] = {
        &BodyWriter::apply<math::LogOp>,   &BodyWriter::apply<math::Log2Op>,
        &BodyWriter::apply<math::Log10Op>, &BodyWriter::apply<math::SqrtOp>,
        &BodyWriter::apply<math::RsqrtOp>, &BodyWriter::apply<math::CbrtOp>,
        &BodyWriter::apply<math::AcoshOp>};
    switch (random.between(0, 4)) {
    case 0:
      return (this->*anywhere[random.between(0, std::size(anywhere) - 1)])(x);
    case 1:
      return (this->*near[random.between(0, std::size(near) - 1)])(around(x, 0, 0.7));
    case 2:
      return (this->*positive[random.between(0, std::size(positive) - 1)])(around(x, 2, 0.7));
    case 3:
      return make<math::ClampFOp>(x, number(-0.6), number(0.6));
    default: {
      Value n = make<arith::ConstantOp>(b.getI32IntegerAttr(random.between(0, 3)));
      return make<math::FPowIOp>(around(x, 0, 1), n);
    }
    }
  }
  template <typename Op> Value apply(Value x) { return make<Op>(x); }

  Value binary(Value x, Value y) {
    switch (random.between(0, 12)) {
    case 0:
      return make<arith::AddFOp>(x, y);
    case 1:
      return make<arith::SubFOp>(x, y);
    case 2:
      return make<arith::MulFOp>(x, y);
    case 3:
      return make<arith::DivFOp>(x, around(y, 2, 0.7));
    case 4:
      return make<arith::MaximumFOp>(x, random.percent(50) ? y : number(0.1));
    case 5:
      return make<arith::MinimumFOp>(x, random.percent(50) ? y : number(0.1));
    case 6:
      return make<arith::MaxNumFOp>(x, y);
    case 7:
      return make<math::PowFOp>(around(x, 2, 0.7), random.percent(50) ? y : number(2));
    case 8:
      return make<math::Atan2Op>(around(x, 2, 0.7), y);
    case 9:
      return make<math::CopySignOp>(x, y);
    case 10:
      return make<arith::RemFOp>(x, around(y, 2, 0.7));
    case 11: {
      Value less = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
      return make<arith::SelectOp>(less, make<arith::MulFOp>(x, y), x);
    }
    default:
      return make<math::FmaOp>(x, y, y);
    }
  }

  Random &random;
  OpBuilder &b;
  Location loc;
};

} // namespace

/// One operand over some of the loops: each dimension is a loop, rarely used a second time; one
/// window over two loops, if there is none yet; or of extent 1.
static std::pair<Shape, AffineMap> anyMap(ProgramBuilder &p, const std::vector<int64_t> &extents,
                                          bool all, bool &windows) {
  std::vector<int64_t> loops;
  for (int64_t loop = 0; loop < static_cast<int64_t>(extents.size()); ++loop)
    if (all || p.random.percent(60))
      loops.push_back(loop);
  p.random.shuffle(loops);
  Shape shape;
  SmallVector<AffineExpr> exprs;
  while (!loops.empty()) {
    int64_t loop = loops.back();
    loops.pop_back();
    AffineExpr expr = p.b.getAffineDimExpr(loop);
    int64_t extent = extents[loop];
    if (!all && windows && p.random.percent(30)) {
      int64_t stride = p.random.between(1, 3), shift = p.random.between(0, 1);
      expr = expr * stride + shift;
      extent = (extent - 1) * stride + shift + 1;
      if (!loops.empty() && p.random.percent(70)) {
        int64_t dilation = p.random.between(1, 2);
        expr = expr + p.b.getAffineDimExpr(loops.back()) * dilation;
        extent += (extents[loops.back()] - 1) * dilation;
        loops.pop_back();
      }
      windows = false;
      if (!isa<AffineDimExpr>(expr))
        extent += p.random.between(0, 2); // elements outside of all windows
    } else if (!all && shape.size() < 2 && p.random.percent(8)) {
      exprs.push_back(expr);
      shape.push_back(extent);
    }
    exprs.push_back(expr);
    shape.push_back(extent);
  }
  if (p.random.percent(10)) {
    exprs.push_back(p.b.getAffineConstantExpr(0));
    shape.push_back(1);
  }
  return {shape, AffineMap::get(extents.size(), 0, exprs, p.b.getContext())};
}

/// A generic with random maps and a random body; loops that the result lacks are reduced by a sum,
/// a product or an extremum, sometimes only where a condition holds.
static bool randomGeneric(ProgramBuilder &p) {
  std::vector<int64_t> extents;
  for (int64_t loops = p.random.between(1, 4); loops > 0; --loops)
    extents.push_back(p.random.between(1, 4));
  Type element = p.b.getF64Type();
  SmallVector<Entry> inputs;
  SmallVector<AffineMap> maps;
  bool windows = true;
  for (int64_t count = p.random.between(1, 3); count > 0; --count) {
    // The first has every loop, so that the others may have any.
    auto [shape, map] = anyMap(p, extents, inputs.empty(), windows);
    Entry input = p.ofType(shape, element);
    inputs.push_back(input);
    maps.push_back(map);
  }
  Shape shape;
  SmallVector<AffineExpr> exprs;
  SmallVector<bool> isReduction;
  bool reduces = false, keeps = p.random.percent(40);
  std::vector<int64_t> order;
  for (int64_t loop = 0; loop < static_cast<int64_t>(extents.size()); ++loop) {
    isReduction.push_back(!keeps && p.random.percent(50));
    reduces |= isReduction.back();
    if (!isReduction.back())
      order.push_back(loop);
  }
  p.random.shuffle(order);
  for (int64_t loop : order) {
    shape.push_back(extents[loop]);
    exprs.push_back(p.b.getAffineDimExpr(loop));
  }
  maps.push_back(AffineMap::get(extents.size(), 0, exprs, p.b.getContext()));
  int64_t how = p.random.between(0, 4);
  Entry init = p.init(shape, element, how == 1 ? 1 : how == 2 ? -4 : how == 3 ? 4 : 0);
  Location loc = p.loc;
  Value result =
      p.generic(inputs, init.value, maps, isReduction, [&](OpBuilder &b, ValueRange args) {
        Value term = BodyWriter(p.random, b, loc).write(args.drop_back());
        Value acc = args.back();
        if (!reduces)
          return p.random.percent(50) ? term : arith::AddFOp::create(b, loc, term, acc).getResult();
        switch (how) {
        case 1:
          return arith::MulFOp::create(b, loc, acc, term).getResult();
        case 2:
          return arith::MaximumFOp::create(b, loc, acc, term).getResult();
        case 3:
          return arith::MinimumFOp::create(b, loc, term, acc).getResult();
        case 4: {
          Value index = linalg::IndexOp::create(b, loc, 0);
          Value one = arith::ConstantIndexOp::create(b, loc, 1);
          Value keep = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, one);
          Value sum = arith::AddFOp::create(b, loc, acc, term);
          return arith::SelectOp::create(b, loc, keep, sum, acc).getResult();
        }
        default:
          return arith::AddFOp::create(b, loc, acc, term).getResult();
        }
      });
  double most = 256 + std::max(4.0, init.magnitude());
  p.push(result, -most, most, false, 4);
  return true;
}

void tessera::fuzz::addDerivativeKinds(std::vector<Kind> &kinds) {
  kinds.push_back({"random-generic", 40, randomGeneric});
}
