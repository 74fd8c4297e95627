//===- Hazards.cpp - Detect unordered accesses ----------------------------===//
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

/// Fails if an access of the interval did not happen before `touch`.
static Status check(uintptr_t begin, const AccessMap<uintptr_t, Accessor>::Interval &interval,
                    const Touch &touch, const Accessor &by, const VectorClock &clock) {
  auto hazard = [&](const Accessor &other, const char *verb) {
    auto offset = static_cast<int64_t>(begin) - reinterpret_cast<intptr_t>(touch.data);
    return Status::error("hazard: " + describe(by) + (touch.write ? " writes" : " reads") +
                         " what " + describe(other) + " " + verb + " (" +
                         std::to_string(interval.end - begin) + " bytes at offset " +
                         std::to_string(std::max<int64_t>(offset, 0)) +
                         " of its buffer), and the two are not ordered");
  };
  if (interval.writer && !happenedBefore(*interval.writer, clock))
    return hazard(*interval.writer, "writes");
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
  for (const auto &[at, interval] : touched.within(begin, end))
    TESSERA_RETURN_IF_ERROR(check(at, interval, touch, by, clock));
  if (touch.write)
    touched.write(begin, end, by);
  else
    touched.read(begin, end, by);
  return {};
}

} // namespace tessera::runtime::gpu
