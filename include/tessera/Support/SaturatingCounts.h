//===- SaturatingCounts.h - Counts that do not overflow ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_SATURATINGCOUNTS_H
#define TESSERA_SUPPORT_SATURATINGCOUNTS_H

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace tessera {

inline constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// Sums and products of non-negative counts, clamped to the maximum.
inline int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? kMost : sum;
}
inline int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? kMost : product;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_SATURATINGCOUNTS_H
