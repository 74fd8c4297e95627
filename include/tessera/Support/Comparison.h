//===- Comparison.h - Whether two tensors of numbers agree ------*- C++ -*-===//
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

/// What a type of element says of its rounding. `half` is of 16 bits, either format.
enum class Rounding { exact, f64, f32, half };

/// Relative tolerance after a number of steps that round, at least 1: 1e-10 f64, 1e-4 f32, 2e-2
/// half, times sqrt(steps); 0 for what is exact.
double toleranceOf(Rounding rounding, int64_t steps);

/// A tensor as numbers, by element in row-major order.
struct Numbers {
  int64_t count = 0;
  std::function<double(int64_t)> real;     ///< beyond 2^53 an integer rounds
  std::function<int64_t(int64_t)> integer; ///< of exact ones
};

struct NumberComparison {
  bool equal = true;
  double maxError = 0;      ///< largest |a - b| of finite elements
  double maxRelative = 0;   ///< largest |a - b| / max(|b|, rms(b)), of finite elements
  double tolerance = 0;     ///< of maxRelative
  int64_t worst = -1;       ///< the element of maxRelative, or the first that differs in kind
  bool kindDiffers = false; ///< NaN against a number, or an infinity: wrong whatever the tolerance
  int64_t differing = 0;    ///< elements beyond the tolerance
  /// Of the expected, which then say little. Without elements neither holds.
  bool allNaN = false, allSame = false;
};

/// Compares as many numbers: |a - b| <= tolerance * max(|b|, rms of the finite b), where b is what
/// is expected; NaN equals NaN, infinities by sign, exact ones by `integer`.
NumberComparison compareNumbers(const Numbers &actual, const Numbers &expected, Rounding rounding,
                                int64_t steps);

} // namespace tessera

#endif // TESSERA_SUPPORT_COMPARISON_H
