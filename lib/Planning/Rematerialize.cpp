//===- Rematerialize.cpp - Make values again instead of keeping them --------===//
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
    profile.add(buffer.from, buffer.from, buffer.onTheWay);
    if (buffer.base >= 0)
      buffer.base += first;
    buffers.push_back(std::move(buffer));
  }
}

void Rematerializer::makeLate() {
  for (LiveBuffer &buffer : buffers) {
    double base = buffer.base >= 0 ? buffers[buffer.base].bytes : 0;
    if (buffer.reads.empty() || buffer.reads.front().first <= buffer.from || base > buffer.bytes)
      continue;
    int64_t first = buffer.reads.front().first;
    profile.add(buffer.from, buffer.to, -buffer.bytes);
    profile.add(buffer.from, buffer.from, -buffer.onTheWay);
    buffer.from = first;
    buffer.to = std::max(buffer.to, first); // others may be made from it
    profile.add(buffer.from, buffer.to, buffer.bytes);
    profile.add(buffer.from, buffer.from, buffer.onTheWay);
    keepUntil(buffer.base, first);
  }
}

void Rematerializer::keepUntil(int64_t index, int64_t time) {
  if (index < 0 || buffers[index].to >= time)
    return;
  profile.add(buffers[index].to + 1, time, buffers[index].bytes);
  buffers[index].to = time;
}

std::optional<Rematerializer::Gap> Rematerializer::gapOf(size_t index, int64_t time) const {
  const LiveBuffer &buffer = buffers[index];
  if (time < buffer.from || time > buffer.to)
    return std::nullopt;
  int64_t from = buffer.from;
  size_t read = 0;
  for (; read < buffer.reads.size() && buffer.reads[read].first <= time; ++read)
    from = std::max(from, buffer.reads[read].second);
  if (read == buffer.reads.size() || from >= time || (read == 0 && !buffer.isRepeatable))
    return std::nullopt;
  Gap gap{index, read, from + 1, buffer.reads[read].first - 1};
  // What it is made from must be live, at the price of its bytes.
  for (const LiveBuffer *made = &buffer;; made = &buffers[gap.base]) {
    gap.seconds += made->seconds;
    gap.base = made->base;
    ++gap.steps;
    bool isLive = gap.base < 0 || buffers[gap.base].to >= gap.to;
    bool isLast = isLive || !buffers[gap.base].isRepeatable;
    gap.freed = buffer.bytes - (isLive ? 0 : buffers[gap.base].bytes);
    if (isLast && gap.freed > 0)
      return gap;
    if (isLast)
      return std::nullopt;
  }
}

/// The gap that frees most for a second; bytes beyond `excess` count for nothing.
std::optional<Rematerializer::Gap> Rematerializer::cheapest(int64_t time, double excess) const {
  std::optional<Gap> best;
  auto priceOf = [&](const Gap &gap) { return gap.seconds / std::min(gap.freed, excess); };
  for (size_t index = 0; index < buffers.size(); ++index)
    if (std::optional<Gap> gap = gapOf(index, time);
        gap && (!best || priceOf(*gap) < priceOf(*best)))
      best = gap;
  return best;
}

size_t Rematerializer::split(const Gap &gap) {
  LiveBuffer again = buffers[gap.buffer];
  LiveBuffer &buffer = buffers[gap.buffer];
  profile.add(gap.from, buffer.to, -buffer.bytes);
  again.reads.erase(again.reads.begin(),
                    again.reads.begin() + static_cast<std::ptrdiff_t>(gap.read));
  again.from = gap.to + 1;
  again.base = gap.base;
  again.seconds = gap.seconds;
  buffer.reads.resize(gap.read);
  buffer.to = gap.from - 1;
  profile.add(again.from, again.to, again.bytes);
  profile.add(again.from, again.from, again.onTheWay);
  keepUntil(again.base, again.from);
  buffers.push_back(std::move(again));
  return buffers.size() - 1;
}

double Rematerializer::run(double budget, llvm::function_ref<void(const Split &)> onSplit) {
  double seconds = 0;
  while (peak() > budget) {
    std::optional<Gap> gap = cheapest(worst(), peak() - budget);
    if (!gap)
      break;
    seconds += gap->seconds;
    size_t again = split(*gap);
    if (onSplit)
      onSplit({gap->buffer, again, gap->to + 1, gap->steps});
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
