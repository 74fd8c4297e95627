//===- Rematerialize.h - Make values again instead of keeping them *- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A weight that is gathered for the forward pass and read again in the backward pass
// is live in between. Under a budget it is gathered twice, as ZeRO-3 does (S.
// Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
// models", 2020): of all buffers that are idle at the worst time, the one that frees
// most bytes for a second of sending is made again, until everything fits. The search
// estimates by it what dist-limit-memory does.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_REMATERIALIZE_H
#define TESSERA_PLANNING_REMATERIALIZE_H

#include "tessera/Planning/MemoryProfile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <utility>

namespace tessera::dist {

/// Memory that is live for a while.
struct LiveBuffer {
  int64_t owner = -1; ///< whatever the caller numbers
  int64_t from = 0, to = -1;
  double bytes = 0;
  /// When each reader begins and ends to read it, ascending. Empty for what cannot be made again.
  std::vector<std::pair<int64_t, int64_t>> reads = {};
  int64_t base = -1;    ///< index of the buffer that it is made from; -1: that is always live
  double seconds = 0;   ///< of making it from its base
  double temporary = 0; ///< bytes of what lies between two collectives, while it is made
  /// Whether what is made from it may be made from its own base, too, and whether it may be made
  /// later than it is.
  bool isRepeatable = false;
};

class Rematerializer {
public:
  explicit Rematerializer(int64_t end) : profile(end) {}

  /// Adds buffers whose bases are counted from the first of them.
  void add(std::vector<LiveBuffer> group);
  /// Makes everything that grows by being made just before its first reader.
  void makeLate();

  /// A buffer that is made again.
  struct Split {
    size_t buffer, again; ///< the indices of both
    int64_t from;         ///< reads from this time on are of the second
    int steps;            ///< bases between it and what it is made from, that included
  };
  /// Splits buffers until the peak is within the budget or none helps; returns the seconds of
  /// making them.
  double run(double budget, llvm::function_ref<void(const Split &)> onSplit = nullptr);

  double peak() const { return profile.peak(); }
  int64_t worst() const { return profile.worst(); }
  /// The owner of the first of the largest buffers at the worst time; -1: there is none.
  int64_t largestOwner() const;

private:
  /// The times between two reads of a buffer, and what making it again frees and costs.
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
