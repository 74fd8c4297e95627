//===- Rematerialize.cpp - Recompute values instead of keeping them -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Rematerialize.h"

using namespace tessera::dist;

void Rematerializer::add(std::vector<LiveBuffer> group) {
  auto first = static_cast<int64_t>(buffers.size());
  for (LiveBuffer &buffer : group) {
    profile.add(buffer.from, buffer.to, buffer.bytes);
    profile.add(buffer.from, buffer.from, buffer.temporary);
    if (buffer.base >= 0)
      buffer.base += first;
    buffers.push_back(std::move(buffer));
  }
}

void Rematerializer::delayToFirstReader() {
  for (LiveBuffer &buffer : buffers) {
    double base = buffer.base >= 0 ? buffers[buffer.base].bytes : 0;
    if (buffer.reads.empty() || buffer.reads.front().first <= buffer.from || base > buffer.bytes)
      continue;
    int64_t first = buffer.reads.front().first;
    profile.add(buffer.from, buffer.to, -buffer.bytes);
    profile.add(buffer.from, buffer.from, -buffer.temporary);
    buffer.from = first;
    buffer.to = std::max(buffer.to, first); // other buffers may be computed from it
    profile.add(buffer.from, buffer.to, buffer.bytes);
    profile.add(buffer.from, buffer.from, buffer.temporary);
    keepUntil(buffer.base, first);
  }
}

void Rematerializer::keepUntil(int64_t index, int64_t time) {
  if (index < 0 || buffers[index].to >= time)
    return;
  profile.add(buffers[index].to + 1, time, buffers[index].bytes);
  buffers[index].to = time;
}

std::optional<Rematerializer::IdleRange> Rematerializer::idleRangeOf(size_t index,
                                                                     int64_t time) const {
  const LiveBuffer &buffer = buffers[index];
  if (time < buffer.from || time > buffer.to)
    return std::nullopt;
  int64_t from = buffer.from;
  size_t read = 0;
  for (; read < buffer.reads.size() && buffer.reads[read].first <= time; ++read)
    from = std::max(from, buffer.reads[read].second);
  if (read == buffer.reads.size() || from >= time || (read == 0 && !buffer.isRepeatable))
    return std::nullopt;
  IdleRange idle{index, read, from + 1, buffer.reads[read].first - 1};
  // The base must be live, which costs its bytes.
  for (const LiveBuffer *made = &buffer;; made = &buffers[idle.base]) {
    idle.seconds += made->seconds;
    idle.base = made->base;
    ++idle.steps;
    bool isLive = idle.base < 0 || buffers[idle.base].to >= idle.to;
    bool isLast = isLive || !buffers[idle.base].isRepeatable;
    idle.freed = buffer.bytes - (isLive ? 0 : buffers[idle.base].bytes);
    if (isLast && idle.freed > 0)
      return idle;
    if (isLast)
      return std::nullopt;
  }
}

/// The idle range that frees the most bytes per second of rematerialization; bytes beyond `excess`
/// do not count.
std::optional<Rematerializer::IdleRange> Rematerializer::cheapest(int64_t time,
                                                                  double excess) const {
  std::optional<IdleRange> best;
  auto priceOf = [&](const IdleRange &idle) { return idle.seconds / std::min(idle.freed, excess); };
  for (size_t index = 0; index < buffers.size(); ++index)
    if (std::optional<IdleRange> idle = idleRangeOf(index, time);
        idle && (!best || priceOf(*idle) < priceOf(*best)))
      best = idle;
  return best;
}

size_t Rematerializer::split(const IdleRange &idle) {
  LiveBuffer again = buffers[idle.buffer];
  LiveBuffer &buffer = buffers[idle.buffer];
  profile.add(idle.from, buffer.to, -buffer.bytes);
  again.reads.erase(again.reads.begin(),
                    again.reads.begin() + static_cast<std::ptrdiff_t>(idle.read));
  again.from = idle.to + 1;
  again.base = idle.base;
  again.seconds = idle.seconds;
  buffer.reads.resize(idle.read);
  buffer.to = idle.from - 1;
  profile.add(again.from, again.to, again.bytes);
  profile.add(again.from, again.from, again.temporary);
  keepUntil(again.base, again.from);
  buffers.push_back(std::move(again));
  return buffers.size() - 1;
}

double Rematerializer::run(double budget, llvm::function_ref<void(const Split &)> onSplit) {
  double seconds = 0;
  while (peak() > budget) {
    std::optional<IdleRange> idle = cheapest(worst(), peak() - budget);
    if (!idle)
      break;
    seconds += idle->seconds;
    size_t again = split(*idle);
    if (onSplit)
      onSplit({idle->buffer, again, idle->to + 1, idle->steps});
  }
  return seconds;
}

int64_t Rematerializer::largestOwner() const {
  int64_t time = worst(), largest = -1;
  double most = -1;
  for (const LiveBuffer &buffer : buffers)
    if (buffer.from <= time && time <= buffer.to && buffer.bytes > most) {
      most = buffer.bytes;
      largest = buffer.owner;
    }
  return largest;
}
