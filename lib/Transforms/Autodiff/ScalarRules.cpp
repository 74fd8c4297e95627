//===- ScalarRules.cpp - Derivatives of operations on scalars -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using arith::CmpFPredicate;

namespace {

/// A float scalar for formulas; its operators append operations.
struct E {
  OpBuilder *b;
  Location loc;
  Value v;

  E of(Value value) const { return {b, loc, value}; }
  E constant(double value) const {
    return of(arith::ConstantOp::create(*b, loc, b->getFloatAttr(v.getType(), value)));
  }
  template <typename Op, typename... Rest> E make(Rest... rest) const {
    return of(b->createOrFold<Op>(loc, v, rest...));
  }
  /// Selects `then` if the comparison with `other` holds, else `otherwise`.
  Value compare(CmpFPredicate predicate, E other) const {
    return arith::CmpFOp::create(*b, loc, predicate, v, other.v);
  }
};

E operator+(E x, E y) {
  return x.make<arith::AddFOp>(y.v);
}
E operator-(E x, E y) {
  return x.make<arith::SubFOp>(y.v);
}
E operator*(E x, E y) {
  // A constant factor is folded if it is on the right.
  return matchPattern(x.v, m_Constant()) ? y.make<arith::MulFOp>(x.v) : x.make<arith::MulFOp>(y.v);
}
E operator/(E x, E y) {
  return x.make<arith::DivFOp>(y.v);
}
E operator-(E x) {
  return x.make<arith::NegFOp>();
}
E operator+(E x, double y) {
  return x + x.constant(y);
}
E operator-(E x, double y) {
  return x - x.constant(y);
}
E operator-(double x, E y) {
  return y.constant(x) - y;
}
E operator*(E x, double y) {
  return x * x.constant(y);
}
E choose(Value condition, E x, E y) {
  return x.of(arith::SelectOp::create(*x.b, x.loc, condition, x.v, y.v));
}

/// The inputs of every rule: the cotangent g, the operands x, y, z and the result r of the op.
struct Rule {
  OpBuilder &b;
  const ScalarReverse &reverse;
  E g;

  E operand(unsigned i) const { return g.of(reverse.primal(reverse.op->getOperand(i))); }
  E x() const { return operand(0); }
  E y() const { return operand(1); }
  E z() const { return operand(2); }
  E r() const { return g.of(reverse.primal(reverse.op->getResult(0))); }
  bool wanted(unsigned i) const { return reverse.wanted(i); }
  void give(unsigned i, E value) const {
    if (wanted(i))
      reverse.give(i, value.v);
  }
  bool isConstant(unsigned i) const {
    return matchPattern(reverse.primal(reverse.op->getOperand(i)), m_Constant());
  }
};

} // namespace

/// The rule of max and min: `strict` holds if operand 0 wins.
static void reverseExtremum(const Rule &rule, CmpFPredicate strict, CmpFPredicate loose) {
  CmpFPredicate predicate = rule.isConstant(1) ? strict : loose;
  Value first = rule.x().compare(predicate, rule.y());
  E zero = rule.g.constant(0);
  if (rule.wanted(0))
    rule.give(0, choose(first, rule.g, zero));
  if (rule.wanted(1))
    rule.give(1, choose(first, zero, rule.g));
}

static void reversePower(const Rule &rule) {
  E x = rule.x();
  FloatAttr exponent;
  if (matchPattern(rule.reverse.primal(rule.reverse.op->getOperand(1)), m_Constant(&exponent))) {
    double p = exponent.getValueAsDouble();
    if (p == 2)
      return rule.give(0, rule.g * (x * 2.0));
    return p == 0 ? void()
                  : rule.give(0, rule.g * (x.make<math::PowFOp>((x.constant(p - 1)).v) * p));
  }
  E y = rule.y();
  if (rule.wanted(0)) {
    // x^(y-1) at y = 0 would be infinite at x = 0, and 0 · inf is NaN.
    Value flat = y.compare(CmpFPredicate::OEQ, y.constant(0));
    E lower = choose(flat, y.constant(1), y - 1.0);
    rule.give(0, rule.g * (y * x.make<math::PowFOp>(lower.v)));
  }
  if (rule.wanted(1)) {
    Value positive = x.compare(CmpFPredicate::OGT, x.constant(0));
    rule.give(1, rule.g * (rule.r() * choose(positive, x, x.constant(1)).make<math::LogOp>()));
  }
}

static void reverseIntegerPower(const Rule &rule) {
  E x = rule.x();
  OpBuilder &b = rule.b;
  Value n = rule.reverse.primal(rule.reverse.op->getOperand(1));
  Value one = arith::ConstantOp::create(b, x.loc, b.getIntegerAttr(n.getType(), 1));
  Value zero = arith::ConstantOp::create(b, x.loc, b.getIntegerAttr(n.getType(), 0));
  Value flat = arith::CmpIOp::create(b, x.loc, arith::CmpIPredicate::eq, n, zero);
  Value lower = arith::SubIOp::create(b, x.loc, n, one);
  // As in reversePower.
  lower = arith::SelectOp::create(b, x.loc, flat, zero, lower);
  E factor = x.of(arith::SIToFPOp::create(b, x.loc, x.v.getType(), n));
  rule.give(0, rule.g * (factor * x.make<math::FPowIOp>(lower)));
}

static LogicalResult reverseArith(const Rule &rule) {
  const E &g = rule.g;
  return llvm::TypeSwitch<Operation *, LogicalResult>(rule.reverse.op)
      .Case([&](arith::AddFOp) { return rule.give(0, g), rule.give(1, g), success(); })
      .Case([&](arith::SubFOp) {
        rule.give(0, g);
        return rule.wanted(1) ? rule.give(1, -g) : void(), success();
      })
      .Case([&](arith::MulFOp) {
        if (rule.wanted(0))
          rule.give(0, g * rule.y());
        if (rule.wanted(1))
          rule.give(1, g * rule.x());
        return success();
      })
      .Case([&](arith::DivFOp) {
        E quotient = g / rule.y();
        rule.give(0, quotient);
        if (rule.wanted(1))
          rule.give(1, -(quotient * rule.r()));
        return success();
      })
      .Case([&](arith::RemFOp) {
        rule.give(0, g);
        if (rule.wanted(1))
          rule.give(1, -(g * (rule.x() / rule.y()).make<math::TruncOp>()));
        return success();
      })
      .Case([&](arith::NegFOp) { return rule.give(0, -g), success(); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        return reverseExtremum(rule, CmpFPredicate::OGT, CmpFPredicate::OGE), success();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        return reverseExtremum(rule, CmpFPredicate::OLT, CmpFPredicate::OLE), success();
      })
      .Case([&](arith::SelectOp op) {
        Value condition = rule.reverse.primal(op.getCondition());
        if (rule.wanted(1))
          rule.give(1, choose(condition, g, g.constant(0)));
        if (rule.wanted(2))
          rule.give(2, choose(condition, g.constant(0), g));
        return success();
      })
      .Case([&](arith::ExtFOp op) {
        Value narrow = arith::TruncFOp::create(rule.b, g.loc, op.getIn().getType(), g.v);
        return rule.give(0, g.of(narrow)), success();
      })
      .Case([&](arith::TruncFOp op) {
        Value wide = arith::ExtFOp::create(rule.b, g.loc, op.getIn().getType(), g.v);
        return rule.give(0, g.of(wide)), success();
      })
      .Default([](Operation *) { return failure(); });
}

/// Functions of one variable: dx = g · f'(x), in terms of the result where that is cheaper.
static LogicalResult reverseUnary(const Rule &rule) {
  const E &g = rule.g;
  auto x = [&] { return rule.x(); };
  auto r = [&] { return rule.r(); };
  auto square = [&] { return x() * x(); };
  using std::numbers::inv_sqrtpi, std::numbers::ln10, std::numbers::ln2;
  std::optional<E> result =
      llvm::TypeSwitch<Operation *, std::optional<E>>(rule.reverse.op)
          .Case([&](math::ExpOp) { return g * r(); })
          .Case([&](math::Exp2Op) { return g * (r() * ln2); })
          .Case([&](math::ExpM1Op) { return g * (r() + 1.0); })
          .Case([&](math::LogOp) { return g / x(); })
          .Case([&](math::Log2Op) { return g / (x() * ln2); })
          .Case([&](math::Log10Op) { return g / (x() * ln10); })
          .Case([&](math::Log1pOp) { return g / (x() + 1.0); })
          .Case([&](math::SqrtOp) { return g * 0.5 / r(); })
          .Case([&](math::RsqrtOp) { return g * (r() * r() * r() * -0.5); })
          .Case([&](math::CbrtOp) { return g / (r() * r() * 3.0); })
          .Case(
              [&](math::ErfOp) { return g * ((-square()).make<math::ExpOp>() * (2 * inv_sqrtpi)); })
          .Case([&](math::ErfcOp) {
            return g * ((-square()).make<math::ExpOp>() * (-2 * inv_sqrtpi));
          })
          .Case([&](math::SinOp) { return g * x().make<math::CosOp>(); })
          .Case([&](math::CosOp) { return -(g * x().make<math::SinOp>()); })
          .Case([&](math::TanOp) { return g * (r() * r() + 1.0); })
          .Case([&](math::AsinOp) { return g * (1.0 - square()).make<math::RsqrtOp>(); })
          .Case([&](math::AcosOp) { return -(g * (1.0 - square()).make<math::RsqrtOp>()); })
          .Case([&](math::AtanOp) { return g / (square() + 1.0); })
          .Case([&](math::SinhOp) { return g * x().make<math::CoshOp>(); })
          .Case([&](math::CoshOp) { return g * x().make<math::SinhOp>(); })
          .Case([&](math::TanhOp) { return g * (1.0 - r() * r()); })
          .Case([&](math::AsinhOp) { return g * (square() + 1.0).make<math::RsqrtOp>(); })
          .Case([&](math::AcoshOp) { return g * (square() - 1.0).make<math::RsqrtOp>(); })
          .Case([&](math::AtanhOp) { return g / (1.0 - square()); })
          .Case([&](math::AbsFOp) {
            E zero = g.constant(0);
            Value above = x().compare(CmpFPredicate::OGT, zero);
            Value below = x().compare(CmpFPredicate::OLT, zero);
            return choose(above, g, choose(below, -g, zero));
          })
          .Default([](Operation *) { return std::nullopt; });
  if (!result)
    return failure();
  rule.give(0, *result);
  return success();
}

static LogicalResult reverseSeveralOperands(const Rule &rule) {
  const E &g = rule.g;
  return llvm::TypeSwitch<Operation *, LogicalResult>(rule.reverse.op)
      // Piecewise constant.
      .Case<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(
          [](auto) { return success(); })
      .Case([&](math::FmaOp) {
        if (rule.wanted(0))
          rule.give(0, g * rule.y());
        if (rule.wanted(1))
          rule.give(1, g * rule.x());
        return rule.give(2, g), success();
      })
      .Case([&](math::PowFOp) { return reversePower(rule), success(); })
      .Case([&](math::FPowIOp) { return reverseIntegerPower(rule), success(); })
      .Case([&](math::Atan2Op) {
        E x = rule.x(), y = rule.y(), scaled = g / (x * x + y * y);
        if (rule.wanted(0))
          rule.give(0, scaled * y);
        if (rule.wanted(1))
          rule.give(1, -(scaled * x));
        return success();
      })
      .Case([&](math::CopySignOp) {
        E one = g.constant(1);
        if (rule.wanted(0))
          rule.give(0, g * (one.make<math::CopySignOp>(rule.x().v) *
                            one.make<math::CopySignOp>(rule.y().v)));
        return success();
      })
      .Case([&](math::ClampFOp) {
        E zero = g.constant(0);
        // The upper bound wins, even over a larger lower bound (docs/numerics.md).
        Value low = rule.x().compare(CmpFPredicate::OLE, rule.y());
        Value high = rule.x().compare(CmpFPredicate::OGE, rule.z());
        Value crossed = rule.y().compare(CmpFPredicate::OGE, rule.z());
        auto unlessHigh = [&](E value) { return choose(high, zero, choose(crossed, zero, value)); };
        if (rule.wanted(0))
          rule.give(0, unlessHigh(choose(low, zero, g)));
        if (rule.wanted(1))
          rule.give(1, unlessHigh(choose(low, g, zero)));
        if (rule.wanted(2))
          rule.give(2, choose(high, g, choose(crossed, g, zero)));
        return success();
      })
      .Default([](Operation *) { return failure(); });
}

/// For sine and cosine together, either of whose cotangents may be null.
static void reverseSincos(OpBuilder &b, const ScalarReverse &reverse, math::SincosOp op) {
  Value sum;
  auto term = [&](unsigned result, unsigned other, bool negative) {
    if (!reverse.cotangents[result])
      return;
    E g{&b, op.getLoc(), reverse.cotangents[result]};
    E product = g * g.of(reverse.primal(op->getResult(other)));
    sum = addScalars(b, op.getLoc(), sum, (negative ? -product : product).v);
  };
  term(0, 1, false);
  term(1, 0, true);
  reverse.give(0, sum);
}

LogicalResult dist::reverseScalar(OpBuilder &b, const ScalarReverse &reverse) {
  if (auto both = dyn_cast<math::SincosOp>(reverse.op)) {
    reverseSincos(b, reverse, both);
    return success();
  }
  if (reverse.cotangents.size() != 1)
    return failure();
  Rule rule{b, reverse, E{&b, reverse.op->getLoc(), reverse.cotangents[0]}};
  if (succeeded(reverseArith(rule)) || succeeded(reverseUnary(rule)))
    return success();
  return reverseSeveralOperands(rule);
}

Value dist::addScalars(OpBuilder &b, Location loc, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  // select(c, g, 0) + select(c, 0, g) = g: a masked accumulator forwards the whole cotangent.
  auto first = x.getDefiningOp<arith::SelectOp>(), second = y.getDefiningOp<arith::SelectOp>();
  if (first && second && first.getCondition() == second.getCondition()) {
    auto isZero = [](Value value) { return matchPattern(value, m_AnyZeroFloat()); };
    for (auto [one, two] : {std::pair(first, second), std::pair(second, first)})
      if (isZero(one.getFalseValue()) && isZero(two.getTrueValue()) &&
          one.getTrueValue() == two.getFalseValue())
        return one.getTrueValue();
  }
  return arith::AddFOp::create(b, loc, x, y);
}
