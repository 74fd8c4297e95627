//===- Comparison.h - Comparison of two tensors of numbers ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_COMPARISON_H
#define TESSERA_SUPPORT_COMPARISON_H

#include <cstdint>
#include <functional>

namespace tessera {

/// The rounding of an element type. `half`: 16 bits, either format.
enum class Rounding { exact, f64, f32, half };

/// Relative tolerance after at least one rounding step: 1e-10 f64, 1e-4 f32, 2e-2 half, times
/// sqrt(steps); 0 for exact types.
double toleranceOf(Rounding rounding, int64_t steps);

/// A tensor as numbers, by element in row-major order.
struct Numbers {
  int64_t count = 0;
  std::function<double(int64_t)> real;     ///< integers beyond 2^53 are rounded
  std::function<int64_t(int64_t)> integer; ///< of exact types
};

/// The result of comparing two lists of numbers element by element, b being the expected one.
struct NumberComparison {
  bool equal = true;
  double maxError = 0;      ///< largest |a - b| of finite elements
  double maxRelative = 0;   ///< largest |a - b| / max(|b|, rms(b)), of finite elements
  double tolerance = 0;     ///< limit on maxRelative
  int64_t worst = -1;       ///< the element of maxRelative, or the first that differs in kind
  bool kindDiffers = false; ///< NaN against a number, or an infinity: an error for any tolerance
  int64_t differing = 0;    ///< elements beyond the tolerance
  /// Of the expected values, which then prove little. Both are false without elements.
  bool allNaN = false, allSame = false;
};

/// Compares the same number of elements: |a - b| <= tolerance * max(|b|, rms of the finite b),
/// where b is the expected value; NaN equals NaN, infinities by sign, exact types by `integer`.
NumberComparison compareNumbers(const Numbers &actual, const Numbers &expected, Rounding rounding,
                                int64_t steps);

} // namespace tessera

#endif // TESSERA_SUPPORT_COMPARISON_H
