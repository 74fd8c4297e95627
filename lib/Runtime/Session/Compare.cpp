//===- Compare.cpp - Compare two runs -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Compare.h"

#include <cstdio>

namespace tessera::runtime {

static Rounding roundingOf(DType dtype) {
  return dtype == DType::f64   ? Rounding::f64
         : dtype == DType::f32 ? Rounding::f32
         : isHalf(dtype)       ? Rounding::half
                               : Rounding::exact;
}

double toleranceOf(DType dtype, int64_t steps) {
  return tessera::toleranceOf(roundingOf(dtype), steps);
}

static std::string numberText(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  return buffer;
}

static Numbers numbersOf(const HostTensor &tensor) {
  return {tensor.numElements(), [&](int64_t i) { return tensor.number(i); },
          [&](int64_t i) { return tensor.integer(i); }};
}

Comparison compare(const HostTensor &actual, const HostTensor &expected, int64_t steps) {
  Comparison result;
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    result.equal = false;
    result.tolerance = toleranceOf(expected.dtype, steps);
    return result;
  }
  static_cast<NumberComparison &>(result) =
      compareNumbers(numbersOf(actual), numbersOf(expected), roundingOf(expected.dtype), steps);
  if (result.allNaN)
    result.warnings.push_back("every element is NaN: the check says little");
  else if (result.allSame && expected.numElements() > 1)
    result.warnings.push_back("every element is " + numberText(expected.number(0)) +
                              ": the check says little");
  return result;
}

std::string Comparison::text(const HostTensor &actual, const HostTensor &expected) const {
  if (actual.dtype != expected.dtype || actual.shape != expected.shape)
    return typeText(actual.dtype, actual.shape) + " instead of " +
           typeText(expected.dtype, expected.shape);
  if (worst < 0)
    return "equal";
  std::string result = "max error " + numberText(maxError) + " (relative " +
                       numberText(maxRelative) + "), worst at " + indexText(expected.shape, worst) +
                       ": " + numberText(actual.number(worst)) + " against " +
                       numberText(expected.number(worst));
  if (differing > 0)
    result += ", " + std::to_string(differing) + " of " + std::to_string(expected.numElements()) +
              " elements beyond the tolerance of " + numberText(tolerance);
  return result;
}

} // namespace tessera::runtime
