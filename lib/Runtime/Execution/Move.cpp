//===- Move.cpp - Strided copies, reductions and fills --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Move.h"

#include "StreamCopy.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

static void copyBytes(std::byte *to, const std::byte *from, int64_t bytes, bool streams) {
  if (streams)
    streamCopy(to, from, static_cast<size_t>(bytes));
  else
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

void Move::copyRun(const MovePiece &piece, int64_t sourceAt, int64_t targetAt, int64_t count,
                   const std::byte *const *sources, std::byte *const *targets) const {
  const End &from = piece.sources.front();
  const std::byte *data = sources[from.position] + (from.offset + sourceAt) * elementSize;
  for (const End &to : piece.targets) {
    std::byte *out = targets[to.position] + (to.offset + targetAt) * elementSize;
    if (out != data)
      copyBytes(out, data, count * elementSize, streams);
  }
}

void Move::reduceRun(const MovePiece &piece, int64_t sourceAt, int64_t targetAt, int64_t count,
                     const std::byte *const *sources, std::byte *const *targets) const {
  // Grows to the largest group once per thread; afterwards there are no allocations.
  static thread_local std::vector<const std::byte *> data;
  data.resize(piece.sources.size());
  for (int64_t done = 0; done < count; done += kReduceChunk) {
    int64_t chunk = std::min(kReduceChunk, count - done);
    for (size_t i = 0; i < data.size(); ++i) {
      const End &from = piece.sources[i];
      data[i] = sources[from.position] + (from.offset + sourceAt + done) * elementSize;
    }
    auto address = [&](const End &to) {
      return targets[to.position] + (to.offset + targetAt + done) * elementSize;
    };
    // Streamed results are reduced in the cache first. A source in the cache is overwritten.
    alignas(64) std::array<std::byte, kReduceChunk * sizeof(double)> local;
    std::byte *first = streams ? local.data() : address(piece.targets.front());
    reduce(data.data(), static_cast<int64_t>(data.size()), chunk, scale, first);
    for (const End &to : piece.targets) {
      std::byte *out = address(to);
      if (out != first)
        copyBytes(out, first, chunk * elementSize,
                  streams && std::find(data.begin(), data.end(), out) == data.end());
    }
  }
}

void Move::fillRun(const MovePiece &piece, int64_t targetAt, int64_t count,
                   std::byte *const *targets) const {
  auto bytes = static_cast<size_t>(count * elementSize);
  for (const End &to : piece.targets) {
    std::byte *out = targets[to.position] + (to.offset + targetAt) * elementSize;
    if (piece.value == ElementBytes{}) {
      std::memset(out, 0, bytes);
      continue;
    }
    // Writes one element, then doubles the written prefix until it covers the run.
    auto filled = static_cast<size_t>(elementSize);
    std::memcpy(out, piece.value.data(), filled);
    for (; filled < bytes; filled *= 2)
      std::memcpy(out + filled, out, std::min(filled, bytes - filled));
  }
}

void Move::run(const MovePiece &piece, int64_t begin, int64_t end, const std::byte *const *sources,
               std::byte *const *targets, TrafficCounter *counter) const {
  const Strides &strides = piece.strides;
  bool copies = piece.sources.size() == 1 && scale == 1.0;
  int64_t row = begin / strides.run, column = begin % strides.run;
  for (int64_t at = begin; at < end; ++row, column = 0) {
    int64_t count = std::min(strides.run - column, end - at);
    int64_t sourceAt = column, targetAt = column;
    int64_t index = row;
    for (size_t d = strides.extents.size(); d-- > 0; index /= strides.extents[d]) {
      int64_t place = index % strides.extents[d];
      sourceAt += place * strides.source[d];
      targetAt += place * strides.target[d];
    }
    if (piece.isFill())
      fillRun(piece, targetAt, count, targets);
    else if (copies)
      copyRun(piece, sourceAt, targetAt, count, sources, targets);
    else
      reduceRun(piece, sourceAt, targetAt, count, sources, targets);
    at += count;
  }
  if (streams)
    streamFence();
  if (counter && !piece.isFill() && end > begin)
    count(piece, begin, end, *counter);
}

void Move::runAll(const std::byte *const *sources, std::byte *const *targets,
                  TrafficCounter *counter) const {
  for (const MovePiece &piece : list)
    run(piece, 0, piece.strides.elements, sources, targets, counter);
}

void Move::countAll(TrafficCounter &counter) const {
  for (const MovePiece &piece : list)
    if (!piece.isFill() && piece.strides.elements > 0)
      count(piece, 0, piece.strides.elements, counter);
}

/// Counts `bytes` from `from` to every other target.
static void countDelivery(int64_t from, const std::vector<End> &targets, bool relayed,
                          int64_t bytes, TrafficCounter &counter) {
  // A ring starts after its source, so that each device forwards all but its neighbor's part.
  size_t n = targets.size(), start = 0;
  while (relayed && start < n && targets[start].device <= from)
    ++start;
  int64_t holder = from;
  for (size_t i = 0; i < n; ++i) {
    int64_t to = targets[(start + i) % n].device;
    if (to == from)
      continue;
    counter.add(relayed ? holder : from, to, bytes);
    holder = to;
  }
}

void Move::count(const MovePiece &piece, int64_t begin, int64_t end,
                 TrafficCounter &counter) const {
  bool relayed = attribution == Attribution::relayed;
  if (piece.sources.size() == 1) {
    countDelivery(piece.sources[0].device, piece.targets, relayed, (end - begin) * elementSize,
                  counter);
    return;
  }
  if (relayed && piece.targets.size() == 1) {
    // A chain to the root: every other contributor forwards one (partly reduced) value.
    int64_t root = piece.targets[0].device, holder = -1;
    for (const End &from : piece.sources) {
      if (from.device == root)
        continue;
      if (holder >= 0)
        counter.add(holder, from.device, (end - begin) * elementSize);
      holder = from.device;
    }
    if (holder >= 0)
      counter.add(holder, root, (end - begin) * elementSize);
    return;
  }
  // Each target owns an equal share of the elements, collects it from all contributors and
  // delivers it: what rings and pairwise algorithms send.
  auto owners = static_cast<int64_t>(piece.targets.size());
  for (int64_t share = 0; share < owners; ++share) {
    int64_t from = std::max(begin, piece.strides.elements * share / owners);
    int64_t to = std::min(end, piece.strides.elements * (share + 1) / owners);
    if (from >= to)
      continue;
    int64_t owner = piece.targets[share].device, bytes = (to - from) * elementSize;
    for (const End &source : piece.sources)
      if (source.device != owner)
        counter.add(source.device, owner, bytes);
    countDelivery(owner, piece.targets, false, bytes, counter);
  }
}

} // namespace tessera::runtime
