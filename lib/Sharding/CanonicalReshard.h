//===- CanonicalReshard.h - One form of equal reshards ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reshards of different tensors have one price, or prices in the ratio of their bytes:
//
//   64x8x4096  [t] [] []  -> [] [t] []      the order of dimensions does not matter, nor do
//   8x64x4096  [] [t] []  -> [t] [] []      dimensions that are not cut,
//   64x8x128   [t] [] []  -> [] [t] []      and without latencies this takes 1/32 of the time
//   64x8x4096  [u] [] []  -> [] [u] []      the same where u has the size and the links of t
//
// so that prices of a few forms suffice for many tensors.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_CANONICALRESHARD_H
#define TESSERA_LIB_SHARDING_CANONICALRESHARD_H

#include "tessera/Sharding/ReshardPlanner.h"

namespace tessera::sharding {

/// A reshard, and the ratio of another reshard's time to its time.
struct CanonicalReshard {
  ReshardProblem problem;
  double scale = 1;
};

/// The form that stands for a reshard without windows, on links whose copies do not count.
CanonicalReshard canonicalReshard(const ReshardProblem &problem, const LinkModel &links);

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_CANONICALRESHARD_H
