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

#include "../CPU/Trigonometry.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// The functions in f64 arithmetic on scalars or vectors.
class Formula : public ElementBuilder {
public:
  using ElementBuilder::ElementBuilder;

  /// `x` within bounds beyond which the result is 0 or infinite; 0 for NaN.
  Value within(Value x, double low, double high) {
    Value safe = pick(isNaN(x), c(0), x);
    safe = pick(less(safe, c(low)), c(low), safe);
    return pick(less(c(high), safe), c(high), safe);
  }
  Value exp(Value x) {
    Value safe = within(x, -746, 710);
    Value k = nearest(mul(safe, c(1.4426950408889634074)));
    Value r = fma(k, c(-6.93147180369123816490e-01), safe);
    r = fma(k, c(-1.90821492927058770002e-10), r);
    return pick(isNaN(x), x, scaled(r, k));
  }
  Value exp2(Value x) {
    Value safe = within(x, -1076, 1025);
    Value k = nearest(safe);
    return pick(isNaN(x), x, scaled(mul(sub(safe, k), c(0.69314718055994530942)), k));
  }
  /// 2^k exp(r) with |r| <= ln(2) / 2; the power in two factors, so that neither overflows.
  Value scaled(Value r, Value k) {
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
    return mul(mul(series(r, inverse), power(half)), power(rest));
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
    result = pick(less(c(1e150), x), add(log(x), c(0.69314718055994530942)), result);
    return pick(less(x, c(1)), c(std::numeric_limits<double>::quiet_NaN()), result);
  }
  Value atanh(Value x) {
    Value a = abs(x);
    return sign(mul(c(0.5), log1p(div(mul(c(2), a), sub(c(1), a)))), x);
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
    double infinity = std::numeric_limits<double>::infinity();
    Value nan = c(std::numeric_limits<double>::quiet_NaN());
    Value invalid = both(both(less(x, c(0)), less(c(-infinity), x)),
                         is(arith::CmpFPredicate::UNE, y, floor(y)));
    signedResult = pick(invalid, nan, signedResult);
    Value unit = both(equal(abs(x), c(1)), equal(abs(y), c(infinity)));
    signedResult = pick(either(unit, equal(x, c(1))), c(1), signedResult);
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
};

/// The function of `op`, in f64; null for what is no function of these.
Value expand(Operation *op, Formula &f, ValueRange x, bool wasF32) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<math::ExpOp>([&](auto) { return f.exp(x[0]); })
      .Case<math::Exp2Op>([&](auto) { return f.exp2(x[0]); })
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
      .Case<math::SinOp>([&](auto) { return sine(f, x[0], 0, wasF32); })
      .Case<math::CosOp>([&](auto) { return sine(f, x[0], 1, wasF32); })
      .Case<math::TanOp>(
          [&](auto) { return f.div(sine(f, x[0], 0, wasF32), sine(f, x[0], 1, wasF32)); })
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
    bool wasF32 = element.isF32();
    if (isa<math::SincosOp>(op)) {
      for (auto [shift, from] : llvm::enumerate(op->getResults())) {
        Value result = sine(formula, operands[0], static_cast<int64_t>(shift), wasF32);
        from.replaceAllUsesWith(
            element.isF32() ? arith::TruncFOp::create(b, loc, type, result).getResult() : result);
      }
      op->erase();
      continue;
    }
    Value result = isa<math::FPowIOp>(op) ? formula.pow(operands[0], operands[1])
                                          : expand(op, formula, operands, wasF32);
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
