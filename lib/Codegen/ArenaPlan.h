//===- ArenaPlan.h - Plan the arena from live ranges ------------*- C++ -*-===//
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

/// Memory with live ranges (both ends included), between which others may use it.
struct Buffer {
  int64_t bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> lives;
  int64_t offset = 0; ///< the result of the plan

  void live(int64_t from, int64_t to) { lives.push_back({from, to}); }
};

/// Gives every buffer an offset such that simultaneously live buffers do not overlap: the largest
/// first, each into the smallest gap that holds it (greedy by size, best fit; Pisarchyk and Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", 2020). If the arena exceeds the
/// peak of live bytes, tries other orders (by peak, start, length; the lowest gap), then places the
/// topmost buffers first, and takes the smallest arena. `reuse` false: no sharing. Returns the size
/// of the arena. Deterministic.
int64_t planArena(std::vector<Buffer *> buffers, bool reuse = true);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_ARENAPLAN_H
