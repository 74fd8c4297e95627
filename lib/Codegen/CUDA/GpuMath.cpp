//===- GpuMath.cpp - Functions that a GPU has no instruction for ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CPU has a math library for what KernelMath.cpp leaves: functions of f64, and powers, roots
// and inverse hyperbolic functions of f32. Here they are written out in f64, to some units in the
// last place: exponential and logarithm by argument reduction and a series, the others from these
// two.
//
//===----------------------------------------------------------------------===//

#include "GpuStages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// f64 arithmetic on scalars or vectors.
class Formula {
public:
  Formula(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type), integers(like(b.getI64Type())) {}

  Value c(double value) { return constant(type, b.getF64FloatAttr(value)); }
  Value n(int64_t value) { return constant(integers, b.getI64IntegerAttr(value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
  Value floor(Value x) { return math::FloorOp::create(b, loc, x); }
  Value nearest(Value x) { return math::RoundEvenOp::create(b, loc, x); }
  Value sign(Value x, Value of) { return math::CopySignOp::create(b, loc, x, of); }
  Value is(arith::CmpFPredicate p, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  Value less(Value x, Value y) { return is(arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) { return is(arith::CmpFPredicate::OEQ, x, y); }
  Value isNaN(Value x) { return is(arith::CmpFPredicate::UNO, x, x); }
  Value both(Value p, Value q) { return arith::AndIOp::create(b, loc, p, q); }
  Value pick(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value bits(Value x) { return arith::BitcastOp::create(b, loc, integers, x); }
  Value floats(Value n) { return arith::BitcastOp::create(b, loc, type, n); }
  Value toInteger(Value x) { return arith::FPToSIOp::create(b, loc, integers, x); }
  Value toFloat(Value n) { return arith::SIToFPOp::create(b, loc, type, n); }

  /// a0 + a1 x + a2 x^2 + ... by Horner's rule.
  Value series(Value x, ArrayRef<double> a) {
    Value sum = c(a.back());
    for (double coefficient : llvm::reverse(a.drop_back()))
      sum = fma(sum, x, c(coefficient));
    return sum;
  }

  /// 2^n exp(r) with |r| <= ln(2) / 2; the power in two factors, so that neither overflows.
  Value exp(Value x) {
    Value safe = pick(isNaN(x), c(0), x);
    safe = pick(less(safe, c(-746)), c(-746), safe);
    safe = pick(less(c(710), safe), c(710), safe);
    Value k = nearest(mul(safe, c(1.4426950408889634074)));
    Value r = fma(k, c(-6.93147180369123816490e-01), safe);
    r = fma(k, c(-1.90821492927058770002e-10), r);
    SmallVector<double> inverse{1};
    for (int i = 1; i <= 13; ++i)
      inverse.push_back(inverse.back() / i);
    Value whole = toInteger(k);
    Value half = arith::ShRSIOp::create(b, loc, whole, n(1));
    Value rest = arith::SubIOp::create(b, loc, whole, half);
    auto power = [&](Value e) {
      Value biased = arith::AddIOp::create(b, loc, e, n(1023));
      return floats(arith::ShLIOp::create(b, loc, biased, n(52)));
    };
    Value result = mul(mul(series(r, inverse), power(half)), power(rest));
    return pick(isNaN(x), x, result);
  }

  /// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 artanh((m - 1) / (m + 1)).
  Value log(Value x) {
    Value tiny = less(x, c(2.2250738585072014e-308));
    Value raised = pick(tiny, mul(x, c(18014398509481984.0)), x);
    Value raw = bits(raised);
    Value e = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, raw, n(52)), n(0x7ff));
    e = arith::SubIOp::create(b, loc, e,
                              arith::SelectOp::create(b, loc, tiny, n(1023 + 54), n(1023)));
    Value m = arith::AndIOp::create(b, loc, raw, n(0xfffffffffffffLL));
    m = floats(arith::OrIOp::create(b, loc, m, n(0x3ff0000000000000LL)));
    Value high = less(c(1.4142135623730951), m);
    m = pick(high, mul(m, c(0.5)), m);
    e = arith::AddIOp::create(b, loc, e, arith::SelectOp::create(b, loc, high, n(1), n(0)));
    Value f = sub(m, c(1));
    Value s = div(f, add(m, c(1)));
    SmallVector<double> odd;
    for (int i = 0; i <= 11; ++i)
      odd.push_back(2.0 / (2 * i + 1));
    Value part = mul(s, series(mul(s, s), odd));
    Value k = toFloat(e);
    Value result =
        fma(k, c(6.93147180369123816490e-01), fma(k, c(1.90821492927058770002e-10), part));
    double infinity = std::numeric_limits<double>::infinity();
    result = pick(equal(x, c(infinity)), x, result);
    result = pick(equal(x, c(0)), c(-infinity), result);
    result = pick(less(x, c(0)), c(std::numeric_limits<double>::quiet_NaN()), result);
    return pick(isNaN(x), x, result);
  }

  /// Kahan: the errors of 1 + x and of the logarithm cancel.
  Value log1p(Value x) {
    Value u = add(x, c(1)), d = sub(u, c(1));
    Value result = mul(log(u), div(x, d));
    result = pick(equal(u, c(1)), x, result);
    double infinity = std::numeric_limits<double>::infinity();
    result = pick(equal(x, c(infinity)), x, result);
    return pick(equal(x, c(-1)), c(-infinity), result);
  }
  Value expm1(Value x) {
    Value u = exp(x), d = sub(u, c(1));
    Value result = div(mul(d, x), log(u));
    result = pick(equal(u, c(std::numeric_limits<double>::infinity())), u, result);
    result = pick(equal(d, c(-1)), c(-1), result);
    return pick(equal(u, c(1)), x, result);
  }

  Value tanh(Value x) {
    Value a = abs(x);
    Value t = expm1(mul(c(2), pick(less(c(22), a), c(22), a)));
    return sign(div(t, add(t, c(2))), x);
  }
  Value sinh(Value x) {
    Value t = expm1(abs(x));
    Value finite = mul(c(0.5), add(t, div(t, add(t, c(1)))));
    return sign(pick(less(c(709), abs(x)), mul(c(0.5), t), finite), x);
  }
  Value cosh(Value x) {
    Value u = exp(abs(x));
    return fma(c(0.5), u, div(c(0.5), u));
  }
  Value asinh(Value x) {
    Value a = abs(x), square = mul(a, a);
    Value result = log1p(add(a, div(square, add(c(1), sqrt(add(c(1), square))))));
    // Where the square overflows: log(2 a).
    result = pick(less(c(1e150), a), add(log(a), c(0.69314718055994530942)), result);
    return sign(result, x);
  }
  Value acosh(Value x) {
    Value t = sub(x, c(1));
    Value result = log1p(add(t, sqrt(mul(t, add(x, c(1))))));
    return pick(less(c(1e150), x), add(log(x), c(0.69314718055994530942)), result);
  }
  Value atanh(Value x) {
    Value a = abs(x);
    return sign(mul(c(0.5), log1p(div(mul(c(2), a), sub(c(1), a)))), x);
  }

  /// Quadrants by Cody and Waite's reduction in three parts.
  Value sine(Value x, int64_t shift) {
    Value k = nearest(mul(x, c(0.63661977236758134308)));
    Value r = fma(k, c(-1.57079632673412561417e+00), x);
    r = fma(k, c(-6.07710050630396597660e-11), r);
    r = fma(k, c(-2.02226624879595063154e-21), r);
    Value z = mul(r, r);
    SmallVector<double> odd{1}, even{1};
    for (int i = 1; i <= 9; ++i) {
      odd.push_back(-odd.back() / ((2 * i) * (2 * i + 1)));
      even.push_back(-even.back() / ((2 * i - 1) * (2 * i)));
    }
    Value s = mul(r, series(z, odd)), co = series(z, even);
    Value huge = is(arith::CmpFPredicate::UGE, abs(x), c(1e15));
    Value quadrant = arith::AddIOp::create(b, loc, toInteger(pick(huge, c(0), k)), n(shift));
    auto bit = [&](int64_t mask) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                   arith::AndIOp::create(b, loc, quadrant, n(mask)), n(0));
    };
    Value result = pick(bit(1), co, s);
    return pick(bit(2), neg(result), result);
  }

  /// Twice the half angle's, twice: then the series converges quickly.
  Value atan(Value x) {
    Value a = abs(x), inverted = less(c(1), a);
    a = pick(inverted, div(c(1), a), a);
    for (int i = 0; i < 2; ++i)
      a = div(a, add(c(1), sqrt(fma(a, a, c(1)))));
    SmallVector<double> odd;
    for (int i = 0; i <= 12; ++i)
      odd.push_back((i % 2 ? -4.0 : 4.0) / (2 * i + 1));
    Value angle = mul(a, series(mul(a, a), odd));
    angle = pick(inverted, sub(c(1.57079632679489661923), angle), angle);
    return pick(isNaN(x), x, sign(angle, x));
  }
  Value atan2(Value y, Value x) {
    Value a = abs(y), d = abs(x);
    double infinity = std::numeric_limits<double>::infinity();
    Value angle = atan(div(a, d));
    angle = pick(both(equal(a, c(0)), equal(d, c(0))), c(0), angle);
    angle =
        pick(both(equal(a, c(infinity)), equal(d, c(infinity))), c(0.78539816339744830962), angle);
    Value left = less(sign(c(1), x), c(0));
    return sign(pick(left, sub(c(3.14159265358979323846), angle), angle), y);
  }
  Value cosineOf(Value x) { return sqrt(mul(sub(c(1), x), add(c(1), x))); }

  Value cbrt(Value x) {
    Value a = abs(x);
    Value y = exp(div(log(a), c(3)));
    y = sub(y, div(sub(mul(y, mul(y, y)), a), mul(c(3), mul(y, y))));
    Value plain = both(less(c(0), a), less(a, c(std::numeric_limits<double>::infinity())));
    return pick(plain, sign(y, x), x);
  }

  Value pow(Value x, Value y) {
    Value result = exp(mul(y, log(abs(x))));
    Value whole = equal(y, floor(y)), half = mul(y, c(0.5));
    Value odd = both(whole, is(arith::CmpFPredicate::UNE, half, floor(half)));
    Value negative = less(sign(c(1), x), c(0));
    Value signedResult = pick(both(negative, odd), neg(result), result);
    Value nan = c(std::numeric_limits<double>::quiet_NaN());
    Value invalid = arith::AndIOp::create(
        b, loc, less(x, c(0)),
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, y, floor(y)));
    signedResult = pick(invalid, nan, signedResult);
    signedResult = pick(equal(x, c(1)), c(1), signedResult);
    return pick(equal(y, c(0)), c(1), signedResult);
  }

  /// Up to 3 the series of positive terms (Abramowitz and Stegun 7.1.6), beyond it the continued
  /// fraction of erfc (7.1.14).
  Value erf(Value x, bool complement) {
    Value a = abs(x), z = mul(a, a);
    Value sum = c(1);
    for (int k = 50; k > 0; --k)
      sum = fma(mul(sum, z), c(2.0 / (2 * k + 1)), c(1));
    Value decay = exp(neg(z));
    Value inner = mul(mul(c(1.12837916709551257390), decay), mul(a, sum));
    Value safe = pick(less(a, c(3)), c(3), a);
    Value fraction = safe;
    for (int k = 24; k > 0; --k)
      fraction = add(safe, div(c(0.5 * k), fraction));
    Value outer = div(mul(c(0.56418958354775628695), decay), fraction);
    Value near = less(a, c(3));
    if (!complement)
      return pick(isNaN(x), x, sign(pick(near, inner, sub(c(1), outer)), x));
    Value positive = pick(near, sub(c(1), inner), outer);
    Value result = pick(less(x, c(0)), sub(c(2), positive), positive);
    return pick(isNaN(x), x, result);
  }

private:
  Type like(Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(Type t, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(t))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(b, loc, value);
  }

  OpBuilder &b;
  Location loc;
  Type type, integers;
};

/// The function of `op`, in f64; null for what is no function of these.
Value expand(Operation *op, Formula &f, ValueRange x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::ExpOp>([&](auto) { return f.exp(x[0]); })
      .Case<math::Exp2Op>([&](auto) { return f.exp(f.mul(x[0], f.c(0.69314718055994530942))); })
      .Case<math::ExpM1Op>([&](auto) { return f.expm1(x[0]); })
      .Case<math::LogOp>([&](auto) { return f.log(x[0]); })
      .Case<math::Log2Op>([&](auto) { return f.mul(f.log(x[0]), f.c(1.4426950408889634074)); })
      .Case<math::Log10Op>([&](auto) { return f.mul(f.log(x[0]), f.c(0.43429448190325182765)); })
      .Case<math::Log1pOp>([&](auto) { return f.log1p(x[0]); })
      .Case<math::TanhOp>([&](auto) { return f.tanh(x[0]); })
      .Case<math::SinhOp>([&](auto) { return f.sinh(x[0]); })
      .Case<math::CoshOp>([&](auto) { return f.cosh(x[0]); })
      .Case<math::AsinhOp>([&](auto) { return f.asinh(x[0]); })
      .Case<math::AcoshOp>([&](auto) { return f.acosh(x[0]); })
      .Case<math::AtanhOp>([&](auto) { return f.atanh(x[0]); })
      .Case<math::SinOp>([&](auto) { return f.sine(x[0], 0); })
      .Case<math::CosOp>([&](auto) { return f.sine(x[0], 1); })
      .Case<math::TanOp>([&](auto) { return f.div(f.sine(x[0], 0), f.sine(x[0], 1)); })
      .Case<math::AtanOp>([&](auto) { return f.atan(x[0]); })
      .Case<math::Atan2Op>([&](auto) { return f.atan2(x[0], x[1]); })
      .Case<math::AsinOp>([&](auto) { return f.atan2(x[0], f.cosineOf(x[0])); })
      .Case<math::AcosOp>([&](auto) { return f.atan2(f.cosineOf(x[0]), x[0]); })
      .Case<math::CbrtOp>([&](auto) { return f.cbrt(x[0]); })
      .Case<math::RsqrtOp>([&](auto) { return f.div(f.c(1), f.sqrt(x[0])); })
      .Case<math::PowFOp>([&](auto) { return f.pow(x[0], x[1]); })
      .Case<math::ErfOp>([&](auto) { return f.erf(x[0], /*complement=*/false); })
      .Case<math::ErfcOp>([&](auto) { return f.erf(x[0], /*complement=*/true); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

LogicalResult expandGpuMath(ModuleOp launches) {
  SmallVector<Operation *> ops;
  launches.walk([&](Operation *op) {
    if (isa<math::MathDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      continue;
    OpBuilder b(op);
    Location loc = op->getLoc();
    auto vector = dyn_cast<VectorType>(type);
    Type wide = vector ? Type(vector.clone(b.getF64Type())) : b.getF64Type();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Type from = getElementTypeOrSelf(operand.getType());
      if (isa<IntegerType>(from)) // the exponent of fpowi
        operand = arith::SIToFPOp::create(b, loc, wide, operand);
      else if (from.isF32())
        operand = arith::ExtFOp::create(b, loc, wide, operand);
      operands.push_back(operand);
    }
    Formula formula(b, loc, wide);
    Value result = isa<math::FPowIOp>(op) ? formula.pow(operands[0], operands[1])
                                          : expand(op, formula, operands);
    if (!result)
      continue;
    if (element.isF32())
      result = arith::TruncFOp::create(b, loc, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  // Extensions that were made for nothing.
  RewritePatternSet none(launches.getContext());
  return applyPatternsGreedily(launches, std::move(none));
}

} // namespace tessera::codegen
