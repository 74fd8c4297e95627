//===- MemoryProfile.h - Live bytes by time ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_MEMORYPROFILE_H
#define TESSERA_PLANNING_MEMORYPROFILE_H

#include "tessera/Fusion/FuseGraph.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tessera::dist {

/// The bytes that a buffer takes in the arena.
inline double alignedBytes(double bytes) {
  return kArenaAlignment * std::ceil(bytes / kArenaAlignment);
}

/// Live bytes per device by time.
class MemoryProfile {
public:
  /// For times 0 to `end`.
  explicit MemoryProfile(int64_t end) : live(end + 2, 0.0) {}
  /// Adds bytes that are live from one time to another, both inclusive.
  void add(int64_t from, int64_t to, double bytes) {
    for (int64_t time = from; time <= to; ++time)
      live[time] += bytes;
  }
  /// The first time with the most live bytes.
  int64_t worst() const { return std::max_element(live.begin(), live.end()) - live.begin(); }
  double peak() const { return *std::max_element(live.begin(), live.end()); }
  /// The most live bytes between two times, both inclusive.
  double peak(int64_t from, int64_t to) const {
    return *std::max_element(live.begin() + from, live.begin() + to + 1);
  }
  const std::vector<double> &byTime() const { return live; }

private:
  std::vector<double> live;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_MEMORYPROFILE_H
