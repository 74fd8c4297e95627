//===- Rematerialize.h - Recompute values, not keep them --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight that is gathered for the forward pass and read again in the backward pass is
// live in between. Under a budget it is gathered twice, as in ZeRO-3 (S. Rajbhandari et
// al., "ZeRO: memory optimizations toward training trillion parameter models", 2020):
// of all buffers that are idle at the worst time, the one that frees the most bytes per
// second of communication is rematerialized, until the plan fits. The search uses this
// to estimate the effect of dist-limit-memory.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_REMATERIALIZE_H
#define TESSERA_PLANNING_REMATERIALIZE_H

#include "tessera/Planning/MemoryProfile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <utility>

namespace tessera::dist {

/// A buffer and its live range.
struct LiveBuffer {
  int64_t owner = -1; ///< an id chosen by the caller
  int64_t from = 0, to = -1;
  double bytes = 0;
  /// Begin and end of each read, ascending. Empty if the buffer cannot be rematerialized.
  std::vector<std::pair<int64_t, int64_t>> reads = {};
  int64_t base = -1;    ///< index of the buffer that it is computed from; -1: an always live one
  double seconds = 0;   ///< of computing it from its base
  double temporary = 0; ///< bytes of intermediate results between collectives, while it is computed
  /// Whether buffers computed from it may be computed from its own base instead, and whether it may
  /// be computed later.
  bool isRepeatable = false;
};

/// Chooses the buffers to rematerialize, greedily, until the peak is within a budget.
class Rematerializer {
public:
  explicit Rematerializer(int64_t end) : profile(end) {}

  /// Adds buffers; their bases are indices within `group`.
  void add(std::vector<LiveBuffer> group);
  /// Computes each buffer that is at least as large as its base just before its first reader.
  void delayToFirstReader();

  /// A buffer that is rematerialized.
  struct Split {
    size_t buffer, again; ///< the indices of both
    int64_t from;         ///< later reads are of the second buffer, from this time on
    int steps;            ///< number of bases from it to the live source, including the source
  };
  /// Splits buffers until the peak is within the budget or no split helps; returns the seconds of
  /// rematerialization.
  double run(double budget, llvm::function_ref<void(const Split &)> onSplit = nullptr);

  double peak() const { return profile.peak(); }
  int64_t worst() const { return profile.worst(); }
  /// The owner of the first of the largest buffers at the worst time; -1 if there is none.
  int64_t largestOwner() const;

private:
  /// The time between two reads of a buffer, with the gain and cost of rematerializing it.
  struct IdleRange {
    size_t buffer, read; ///< the first read after the idle range
    int64_t from, to;
    double freed = 0, seconds = 0;
    int64_t base = -1;
    int steps = 0;
  };
  std::optional<IdleRange> idleRangeOf(size_t index, int64_t time) const;
  std::optional<IdleRange> cheapest(int64_t time, double excess) const;
  size_t split(const IdleRange &idle);
  void keepUntil(int64_t index, int64_t time);

  std::vector<LiveBuffer> buffers;
  MemoryProfile profile;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_REMATERIALIZE_H
