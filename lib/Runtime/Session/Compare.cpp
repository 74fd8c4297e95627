//===- Compare.cpp - Whether two runs agree -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tessera::runtime {

double toleranceOf(DType dtype, int64_t steps) {
  double base = dtype == DType::f64 ? 1e-10 : dtype == DType::f32 ? 1e-4 : isHalf(dtype) ? 2e-2 : 0;
  return base * std::sqrt(static_cast<double>(std::max<int64_t>(steps, 1)));
}

static std::string numberText(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  return buffer;
}

static double rmsOfFinite(const HostTensor &tensor) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0, n = tensor.numElements(); i < n; ++i)
    if (double value = tensor.number(i); std::isfinite(value)) {
      sum += value * value;
      ++count;
    }
  return count ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

static void warn(const HostTensor &expected, Comparison &result) {
  int64_t n = expected.numElements();
  if (n == 0)
    return;
  bool allNan = true, constant = true;
  double first = expected.number(0);
  for (int64_t i = 0; i < n; ++i) {
    double value = expected.number(i);
    allNan = allNan && std::isnan(value);
    constant = constant && value == first;
  }
  if (allNan)
    result.warnings.push_back("every element is NaN: the check says little");
  else if (constant && n > 1)
    result.warnings.push_back("every element is " + numberText(first) + ": the check says little");
}

Comparison compare(const HostTensor &actual, const HostTensor &expected, int64_t steps) {
  Comparison result;
  result.tolerance = toleranceOf(expected.dtype, steps);
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    result.equal = false;
    return result;
  }
  warn(expected, result);
  bool floating = isFloat(expected.dtype);
  double rms = floating ? rmsOfFinite(expected) : 0;
  bool kindDiffers = false;
  for (int64_t i = 0, n = expected.numElements(); i < n; ++i) {
    double a = actual.number(i), b = expected.number(i);
    if (!floating) {
      if (actual.integer(i) == expected.integer(i))
        continue;
    } else if ((std::isnan(a) && std::isnan(b)) || a == b) {
      continue;
    }
    if (floating && !(std::isfinite(a) && std::isfinite(b))) {
      // NaN against a number, or an infinity: wrong whatever the tolerance.
      ++result.differing;
      if (!kindDiffers)
        result.worst = i;
      kindDiffers = true;
      continue;
    }
    double error = std::abs(a - b);
    double scale = std::max(std::abs(b), rms);
    double relative = scale > 0 ? error / scale : std::numeric_limits<double>::infinity();
    result.maxError = std::max(result.maxError, error);
    if (!kindDiffers && (relative > result.maxRelative || result.worst < 0))
      result.worst = i;
    result.maxRelative = std::max(result.maxRelative, relative);
    if (!floating || relative > result.tolerance)
      ++result.differing;
  }
  result.equal = result.differing == 0;
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
