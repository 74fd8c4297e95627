//===- AccessMap.h - Latest accesses of byte intervals ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two accesses to the same bytes must be ordered if one of them is a write. A new
// access is ordered after the last write and, if it is a write itself, after the
// reads since then. The planner derives waits from these pairs (OrderSegment.cpp);
// the emulated device checks that the waits suffice (Hazards.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_ACCESSMAP_H
#define TESSERA_LIB_RUNTIME_GPU_ACCESSMAP_H

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace tessera::runtime::gpu {

/// Disjoint byte intervals by begin. `Address` is an integer; an `Accessor` has a `stream`, and the
/// accesses of one stream are ordered.
template <typename Address, typename Accessor> class AccessMap {
public:
  struct Interval {
    Address end = 0;
    std::optional<Accessor> writer; ///< the last
    std::vector<Accessor> readers;  ///< since then, the latest of each stream
  };
  using Iterator = typename std::map<Address, Interval>::iterator;
  struct Range {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };

  /// The accessed parts of [begin, end), as pairs of begin and `Interval` clipped to these bounds;
  /// valid until the next call.
  Range within(Address begin, Address end) {
    cutAt(begin);
    cutAt(end);
    return {intervals.lower_bound(begin), intervals.lower_bound(end)};
  }

  /// Records a write of [begin, end), which must not be empty.
  void write(Address begin, Address end, const Accessor &by) {
    Range range = within(begin, end);
    intervals.erase(range.first, range.last);
    intervals[begin] = {end, by, {}};
  }

  /// Records a read of [begin, end), which must not be empty.
  void read(Address begin, Address end, const Accessor &by) {
    Address at = begin;
    for (auto &[start, interval] : within(begin, end)) {
      if (at < start)
        intervals[at] = {start, std::nullopt, {by}};
      auto same = std::find_if(interval.readers.begin(), interval.readers.end(),
                               [&](const Accessor &reader) { return reader.stream == by.stream; });
      if (same != interval.readers.end())
        *same = by;
      else
        interval.readers.push_back(by);
      at = interval.end;
    }
    if (at < end)
      intervals[at] = {end, std::nullopt, {by}};
  }

private:
  void cutAt(Address address) {
    auto it = intervals.lower_bound(address);
    if (it == intervals.begin())
      return;
    --it;
    if (it->first < address && address < it->second.end) {
      Interval upper = it->second;
      it->second.end = address;
      intervals.emplace(address, std::move(upper));
    }
  }

  std::map<Address, Interval> intervals;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_ACCESSMAP_H
