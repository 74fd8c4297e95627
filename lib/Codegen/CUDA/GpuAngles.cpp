//===- GpuAngles.cpp - Functions of angles, and the error function --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuFormula.h"

using namespace mlir;

namespace tessera::codegen {

/// Twice the half angle's, twice: then the series converges quickly.
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

/// Up to 3 the series of positive terms (Abramowitz and Stegun 7.1.6), beyond it the continued
/// fraction of erfc (7.1.14).
Value Formula::erf(Value x, bool complement) {
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

} // namespace tessera::codegen
