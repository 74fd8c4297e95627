//===- GpuAngles.cpp - Inverse trigonometric and error functions ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuFormula.h"

using namespace mlir;

namespace tessera::codegen {

/// Halves the angle twice, so that the series converges quickly.
Value Formula::atan(Value x) {
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

Value Formula::atan2(Value y, Value x) {
  Value a = abs(y), d = abs(x);
  double infinity = std::numeric_limits<double>::infinity();
  Value angle = atan(div(a, d));
  angle = pick(both(equal(a, c(0)), equal(d, c(0))), c(0), angle);
  angle =
      pick(both(equal(a, c(infinity)), equal(d, c(infinity))), c(0.78539816339744830962), angle);
  Value left = less(sign(c(1), x), c(0));
  return sign(pick(left, sub(c(3.14159265358979323846), angle), angle), y);
}

Value Formula::cosineOf(Value x) {
  return sqrt(mul(sub(c(1), x), add(c(1), x)));
}

/// erfc of a >= 0 is exp(-a^2) / (1 + 2 a) times a function between 1 and 1.3, whose Chebyshev
/// series in (a - 3.75) / (a + 3.75) converges fast: M. Shepherd, J. Laframboise, "Chebyshev
/// Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", Math. Comp. 36 (1981). The
/// coefficients are our own: 25 terms, computed with 70 digits and converted to powers. The
/// truncation error is below 10^-16.
Value Formula::complementaryError(Value a) {
  static const double coefficients[] = {
      1.2375126308378275,      -0.14024059858554697,    0.0035854154854644293,
      0.0822767384901452,      -0.10880393014174886,    0.09230432116037748,
      -0.05869339858963677,    0.028362277418956406,    -0.009746579558029276,
      0.0017556258528952954,   0.0002937136655913448,   -0.0002901540805408417,
      5.164909889268241e-05,   2.238423915508223e-05,   -1.1444146237700524e-05,
      -9.73559896736775e-07,   1.751637648849062e-06,   -5.7218230603224086e-08,
      -2.5866850716155884e-07, 2.3263508708859124e-08,  3.8675334242222354e-08,
      -3.744210080962018e-09,  -5.1739902140113095e-09, 3.1114333809799254e-10,
      4.2514714447963895e-10};
  a = pick(less(c(40), a), c(40), a); // the result is 0 there
  // The rounding error of the square is a factor of the result.
  Value square = mul(a, a), rest = fma(a, a, neg(square));
  Value decay = exp(neg(square));
  decay = sub(decay, mul(decay, rest));
  Value f = series(div(sub(a, c(3.75)), add(a, c(3.75))), coefficients);
  return mul(decay, div(f, fma(c(2), a, c(1))));
}

/// For |x| <= 1, the series of positive terms (Abramowitz and Stegun 7.1.6).
Value Formula::erf(Value x, bool complement) {
  Value a = abs(x), far = complementaryError(a), result;
  if (complement) {
    result = pick(less(x, c(0)), sub(c(2), far), far);
  } else {
    Value z = mul(a, a), sum = c(1);
    for (int k = 24; k > 0; --k)
      sum = fma(mul(sum, z), c(2.0 / (2 * k + 1)), c(1));
    Value near = mul(mul(c(1.12837916709551257390), exp(neg(z))), mul(a, sum));
    result = sign(pick(less(a, c(1)), near, sub(c(1), far)), x);
  }
  return pick(isNaN(x), x, result);
}

} // namespace tessera::codegen
