//===- Compare.h - Comparison of results ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_COMPARE_H
#define TESSERA_INTERPRETER_COMPARE_H

#include "tessera/Interpreter/Tensor.h"

namespace tessera::interpreter {

/// The result of comparing a tensor with the expected one.
struct Comparison {
  bool ok = true;
  /// Largest |a - b| / max(|b|, rms of the finite b) over all elements; infinite if only one is NaN
  /// or an infinity, or if infinities differ. For integers the largest |a - b|.
  double maxError = 0;
  /// Limit on maxError.
  double tolerance = 0;
  int64_t worst = -1; ///< linear index of the largest error; -1 if all are equal
  /// Reasons why the comparison proves little: all expected values are NaN, or equal.
  llvm::SmallVector<std::string> warnings;
};

/// Compares `actual` with `expected`, of the same type, as in tessera/Support/Comparison.h.
Comparison compare(const Tensor &actual, const Tensor &expected, int64_t steps = 1);

/// Linear index of the first element whose bits differ (NaN equals NaN), or -1.
int64_t firstDifference(const Tensor &actual, const Tensor &expected);

/// `[1, 0]`: the index of a linear position.
std::string indexText(const Tensor &tensor, int64_t linear);
/// `element [1, 0] is 3.5, expected 2; error 0.75 > 0.0001`.
std::string describe(const Comparison &comparison, const Tensor &actual, const Tensor &expected);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_COMPARE_H
