//===- Compare.h - Whether two runs agree -----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_SESSION_COMPARE_H
#define TESSERA_RUNTIME_SESSION_COMPARE_H

#include "tessera/Runtime/Session/HostTensor.h"

namespace tessera::runtime {

struct Comparison {
  bool equal = true;
  double maxError = 0;    ///< largest |a - b| of finite elements
  double maxRelative = 0; ///< largest |a - b| / max(|b|, rms(b)): compared with `tolerance`
  double tolerance = 0;   ///< 0 for integers
  int64_t worst = -1;     ///< the element of maxRelative, or the first that differs in kind
  int64_t differing = 0;  ///< elements beyond tolerance
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
