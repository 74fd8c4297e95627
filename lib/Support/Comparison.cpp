//===- Comparison.cpp - Whether two tensors of numbers agree --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

double toleranceOf(Rounding rounding, int64_t steps) {
  static constexpr double kRelative[] = {0, 1e-10, 1e-4, 2e-2};
  return kRelative[static_cast<int>(rounding)] *
         std::sqrt(static_cast<double>(std::max<int64_t>(steps, 1)));
}

static double rmsOfFinite(const Numbers &numbers) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < numbers.count; ++i)
    if (double value = numbers.real(i); std::isfinite(value)) {
      sum += value * value;
      ++count;
    }
  return count ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

NumberComparison compareNumbers(const Numbers &actual, const Numbers &expected, Rounding rounding,
                                int64_t steps) {
  NumberComparison result;
  bool exact = rounding == Rounding::exact;
  result.tolerance = toleranceOf(rounding, steps);
  result.allNaN = result.allSame = expected.count > 0;
  double rms = exact ? 0 : rmsOfFinite(expected);
  double first = expected.count > 0 ? expected.real(0) : 0;
  for (int64_t i = 0; i < expected.count; ++i) {
    double a = actual.real(i), b = expected.real(i);
    result.allNaN &= std::isnan(b);
    result.allSame &= b == first;
    if (exact ? actual.integer(i) == expected.integer(i)
              : a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (!exact && !(std::isfinite(a) && std::isfinite(b))) {
      ++result.differing;
      if (!result.kindDiffers)
        result.worst = i;
      result.kindDiffers = true;
      continue;
    }
    double error = std::fabs(a - b), scale = std::max(std::fabs(b), rms);
    // Where all expected are 0 any difference is infinitely large.
    double relative = scale > 0 ? error / scale : std::numeric_limits<double>::infinity();
    result.maxError = std::max(result.maxError, error);
    if (!result.kindDiffers && (relative > result.maxRelative || result.worst < 0))
      result.worst = i;
    result.maxRelative = std::max(result.maxRelative, relative);
    result.differing += exact || relative > result.tolerance;
  }
  result.equal = result.differing == 0;
  return result;
}

} // namespace tessera
