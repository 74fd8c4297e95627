//===- Compare.h - Compare two runs -----------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_COMPARE_H
#define TESSERA_RUNTIME_SESSION_COMPARE_H

#include "tessera/Runtime/Session/HostTensor.h"
#include "tessera/Support/Comparison.h"

namespace tessera::runtime {

/// `tolerance` is 0 for integers.
struct Comparison : NumberComparison {
  std::vector<std::string> warnings; ///< the expected value is all NaN, or constant

  /// "max error 1.2e-6 at [3, 5] (0.25 instead of 0.26), 12 elements beyond 1e-4"
  std::string text(const HostTensor &actual, const HostTensor &expected) const;
};

/// Relative tolerance of a dtype after a number of steps: 1e-10 f64, 1e-4 f32, 2e-2 f16 and bf16,
/// times sqrt(steps); 0 for integers.
double toleranceOf(DType dtype, int64_t steps);

/// |a - b| <= r * max(|b|, rms of the finite b); NaN equals NaN, infinities by sign, integers
/// exactly. Different dtypes or shapes are unequal.
Comparison compare(const HostTensor &actual, const HostTensor &expected, int64_t steps = 1);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_SESSION_COMPARE_H
