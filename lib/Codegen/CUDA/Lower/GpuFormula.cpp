//===- GpuFormula.cpp - Exponential, logarithm and functions of these -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuFormula.h"

using namespace mlir;

namespace tessera::codegen {

/// Clamps `x` to bounds beyond which a result is 0 or infinite; returns 0 for NaN.
Value Formula::within(Value x, double low, double high) {
  Value safe = pick(isNaN(x), c(0), x);
  safe = pick(less(safe, c(low)), c(low), safe);
  return pick(less(c(high), safe), c(high), safe);
}

Value Formula::exp(Value x) {
  Value safe = within(x, -746, 710);
  Value k = nearest(mul(safe, c(1.4426950408889634074)));
  Value r = fma(k, c(-6.93147180369123816490e-01), safe);
  r = fma(k, c(-1.90821492927058770002e-10), r);
  return pick(isNaN(x), x, scaled(r, k));
}

Value Formula::exp2(Value x) {
  Value safe = within(x, -1076, 1025);
  Value k = nearest(safe);
  return pick(isNaN(x), x, scaled(mul(sub(safe, k), c(0.69314718055994530942)), k));
}

/// 2^k exp(r) with |r| <= ln(2) / 2; the power is split into two factors, so that neither
/// overflows.
Value Formula::scaled(Value r, Value k) {
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

/// x > 0 is 2^e m with m in [sqrt(1/2), sqrt(2)). Returns m, and e as a float.
std::pair<Value, Value> Formula::split(Value x) {
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
  return {m, toFloat(e)};
}

/// log(m) = 2 artanh((m - 1) / (m + 1)).
Value Formula::log(Value x) {
  auto [m, k] = split(x);
  Value f = sub(m, c(1));
  Value s = div(f, add(m, c(1)));
  SmallVector<double> odd;
  for (int i = 0; i <= 11; ++i)
    odd.push_back(2.0 / (2 * i + 1));
  Value part = mul(s, series(mul(s, s), odd));
  Value result = fma(k, c(6.93147180369123816490e-01), fma(k, c(1.90821492927058770002e-10), part));
  double infinity = std::numeric_limits<double>::infinity();
  result = pick(equal(x, c(infinity)), x, result);
  result = pick(equal(x, c(0)), c(-infinity), result);
  result = pick(less(x, c(0)), c(std::numeric_limits<double>::quiet_NaN()), result);
  return pick(isNaN(x), x, result);
}

/// By Kahan: the errors of 1 + x and of the logarithm cancel.
Value Formula::log1p(Value x) {
  Value u = add(x, c(1)), d = sub(u, c(1));
  Value result = mul(log(u), div(x, d));
  result = pick(equal(u, c(1)), x, result);
  double infinity = std::numeric_limits<double>::infinity();
  result = pick(equal(x, c(infinity)), x, result);
  return pick(equal(x, c(-1)), c(-infinity), result);
}

Value Formula::expm1(Value x) {
  Value u = exp(x), d = sub(u, c(1));
  Value result = div(mul(d, x), log(u));
  result = pick(equal(u, c(std::numeric_limits<double>::infinity())), u, result);
  result = pick(equal(d, c(-1)), c(-1), result);
  return pick(equal(u, c(1)), x, result);
}

Value Formula::tanh(Value x) {
  Value a = abs(x);
  Value t = expm1(mul(c(2), pick(less(c(22), a), c(22), a)));
  return sign(div(t, add(t, c(2))), x);
}

Value Formula::sinh(Value x) {
  Value t = expm1(abs(x));
  Value finite = mul(c(0.5), add(t, div(t, add(t, c(1)))));
  return sign(pick(less(c(709), abs(x)), mul(c(0.5), t), finite), x);
}

Value Formula::cosh(Value x) {
  Value u = exp(abs(x));
  return fma(c(0.5), u, div(c(0.5), u));
}

Value Formula::asinh(Value x) {
  Value a = abs(x), square = mul(a, a);
  Value result = log1p(add(a, div(square, add(c(1), sqrt(add(c(1), square))))));
  // If the square overflows: log(2 a).
  result = pick(less(c(1e150), a), add(log(a), c(0.69314718055994530942)), result);
  return sign(result, x);
}

Value Formula::acosh(Value x) {
  Value t = sub(x, c(1));
  Value result = log1p(add(t, sqrt(mul(t, add(x, c(1))))));
  result = pick(less(c(1e150), x), add(log(x), c(0.69314718055994530942)), result);
  return pick(less(x, c(1)), c(std::numeric_limits<double>::quiet_NaN()), result);
}

Value Formula::atanh(Value x) {
  Value a = abs(x);
  return sign(mul(c(0.5), log1p(div(mul(c(2), a), sub(c(1), a)))), x);
}

Value Formula::cbrt(Value x) {
  Value given = abs(x), tiny = less(given, c(0x1p-1022));
  Value a = pick(tiny, mul(given, c(0x1p54)), given);
  Value y = exp(div(log(a), c(3)));
  y = sub(y, div(sub(mul(y, mul(y, y)), a), mul(c(3), mul(y, y))));
  y = pick(tiny, mul(y, c(0x1p-18)), y);
  Value plain = both(less(c(0), a), less(a, c(std::numeric_limits<double>::infinity())));
  return pick(plain, sign(y, x), x);
}

Formula::Pair Formula::sum(Value x, Value y) {
  Value s = add(x, y), of = sub(s, x);
  return {s, add(sub(x, sub(s, of)), sub(y, of))};
}

Formula::Pair Formula::product(Pair x, Pair y) {
  Value p = mul(x.high, y.high);
  Value rest = fma(x.high, y.high, neg(p));
  return {p, add(rest, fma(x.high, y.low, mul(x.low, y.high)))};
}

/// The series of log with its first two terms as pairs: 2 s + s^3 (2/3 + 2/5 s^2 + ...).
Formula::Pair Formula::logPair(Value x) {
  auto [m, k] = split(x);
  Value f = sub(m, c(1));
  Pair bottom = sum(m, c(1));
  Value s = div(f, bottom.high);
  Value rest = sub(fma(neg(s), bottom.high, f), mul(s, bottom.low));
  Pair quotient{s, div(rest, bottom.high)};
  Pair square = product(quotient, quotient);
  SmallVector<double> odd;
  for (int i = 2; i <= 12; ++i)
    odd.push_back(2.0 / (2 * i + 1));
  Pair factor = sum(c(2.0 / 3), mul(square.high, series(square.high, odd)));
  factor.low = add(factor.low, c(3.70074341541718826e-17)); // 2/3 minus its double
  Pair cubic = product(product(square, quotient), factor);
  Pair twice = sum(mul(c(2), quotient.high), cubic.high);
  Value low = add(twice.low, fma(c(2), quotient.low, cubic.low));
  Pair whole = sum(mul(k, c(6.93147180369123816490e-01)), twice.high);
  return sum(whole.high, fma(k, c(1.90821492927058770002e-10), add(whole.low, low)));
}

/// exp(y log|x|), where the logarithm and the product have twice the digits: the absolute error of
/// an exponent is the relative error of the result.
Value Formula::pow(Value x, Value y) {
  double large = std::numeric_limits<double>::infinity();
  Value amount = abs(x), plain = both(less(c(0), amount), less(amount, c(large)));
  Pair exponent = product(logPair(pick(plain, amount, c(1))), {y, c(0)});
  Value power = exp(exponent.high);
  Value finite = both(less(power, c(large)), less(abs(exponent.low), c(1)));
  power = pick(finite, fma(power, exponent.low, power), power);
  Value result = pick(plain, power, exp(mul(y, log(amount))));
  Value whole = equal(y, floor(y)), half = mul(y, c(0.5));
  Value odd = both(whole, is(arith::CmpFPredicate::UNE, half, floor(half)));
  Value negative = less(sign(c(1), x), c(0));
  Value signedResult = pick(both(negative, odd), neg(result), result);
  double infinity = std::numeric_limits<double>::infinity();
  Value nan = c(std::numeric_limits<double>::quiet_NaN());
  Value invalid =
      both(both(less(x, c(0)), less(c(-infinity), x)), is(arith::CmpFPredicate::UNE, y, floor(y)));
  signedResult = pick(invalid, nan, signedResult);
  Value unit = both(equal(abs(x), c(1)), equal(abs(y), c(infinity)));
  signedResult = pick(either(unit, equal(x, c(1))), c(1), signedResult);
  return pick(equal(y, c(0)), c(1), signedResult);
}

} // namespace tessera::codegen
