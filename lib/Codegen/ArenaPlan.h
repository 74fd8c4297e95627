//===- ArenaPlan.h - Intervals of memory for intervals of time --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_ARENAPLAN_H
#define TESSERA_LIB_CODEGEN_ARENAPLAN_H

#include "tessera/Fusion/FuseGraph.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::codegen {

using dist::kArenaAlignment;

/// Memory that is needed for some times (both ends included) and may be another's in between.
struct Buffer {
  int64_t bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> lives;
  int64_t offset = 0; ///< the plan's answer

  void live(int64_t from, int64_t to) { lives.push_back({from, to}); }
};

/// Gives every buffer an offset such that buffers alive at one time do not overlap: the largest
/// first, each into the smallest gap that holds it (greedy by size, best fit; Pisarchyk and Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", 2020). Where that takes more than
/// what is alive at the worst time, other orders are tried (where most is alive, begin, length;
/// the lowest gap), then what lies at the top is placed first; the smallest arena is taken. `reuse`
/// false: all at once. Returns the size of the arena. The same input gives the same plan.
int64_t planArena(std::vector<Buffer *> buffers, bool reuse = true);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_ARENAPLAN_H
