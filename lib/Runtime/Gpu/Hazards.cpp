//===- Hazards.cpp - Accesses that nothing orders -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hazards.h"

#include <algorithm>

namespace tessera::runtime::gpu {

void join(VectorClock &clock, const VectorClock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

std::string describe(const Accessor &accessor) {
  std::string text = accessor.what;
  if (accessor.step && !accessor.step->name.empty())
    text += " '" + accessor.step->name + "'";
  if (accessor.step && !accessor.step->loc.empty())
    text += " at " + accessor.step->loc;
  else if (accessor.step)
    text += " of step " + std::to_string(accessor.step->order);
  return text + " on device " + std::to_string(accessor.device);
}

static bool happenedBefore(const Accessor &access, const VectorClock &clock) {
  return static_cast<size_t>(access.stream) < clock.size() &&
         clock[access.stream] >= access.sequence;
}

void Hazards::cutAt(uintptr_t address) {
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

Status Hazards::check(const Interval &interval, uintptr_t begin, const Touch &touch,
                      const Accessor &by, const VectorClock &clock) const {
  auto hazard = [&](const Accessor &other, const char *verb) {
    auto offset = static_cast<int64_t>(begin) - reinterpret_cast<intptr_t>(touch.data);
    return Status::error("hazard: " + describe(by) + (touch.write ? " writes" : " reads") +
                         " what " + describe(other) + " " + verb + " (" +
                         std::to_string(interval.end - begin) + " bytes, " +
                         std::to_string(std::max<int64_t>(offset, 0)) +
                         " into its buffer), and neither waits for the other");
  };
  if (interval.written && !happenedBefore(interval.writer, clock))
    return hazard(interval.writer, "writes");
  if (touch.write)
    for (const Accessor &reader : interval.readers)
      if (!happenedBefore(reader, clock))
        return hazard(reader, "reads");
  return {};
}

Status Hazards::access(const Touch &touch, const Accessor &by, const VectorClock &clock) {
  if (touch.bytes <= 0)
    return {};
  auto begin = reinterpret_cast<uintptr_t>(touch.data);
  uintptr_t end = begin + static_cast<uintptr_t>(touch.bytes);
  cutAt(begin);
  cutAt(end);
  auto first = intervals.lower_bound(begin), last = intervals.lower_bound(end);
  for (auto it = first; it != last; ++it)
    TESSERA_RETURN_IF_ERROR(check(it->second, it->first, touch, by, clock));
  if (touch.write) {
    intervals.erase(first, last);
    intervals[begin] = {end, true, by, {}};
    return {};
  }
  uintptr_t at = begin;
  for (auto it = first; it != last; at = it->second.end, ++it) {
    if (at < it->first)
      intervals[at] = {it->first, false, {}, {by}};
    auto &readers = it->second.readers;
    auto same = std::find_if(readers.begin(), readers.end(),
                             [&](const Accessor &each) { return each.stream == by.stream; });
    if (same != readers.end())
      *same = by;
    else
      readers.push_back(by);
  }
  if (at < end)
    intervals[at] = {end, false, {}, {by}};
  return {};
}

} // namespace tessera::runtime::gpu
