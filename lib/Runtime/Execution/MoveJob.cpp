//===- MoveJob.cpp - Strided moves on the host ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MoveJob.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

int64_t spanOf(const Strides &strides, const std::vector<int64_t> &steps) {
  if (strides.elements == 0)
    return 0;
  int64_t last = strides.run - 1;
  for (size_t d = 0; d < strides.extents.size(); ++d)
    last += (strides.extents[d] - 1) * steps[d];
  return last + 1;
}

/// Calls `visit(sourceAt, targetAt)` for every contiguous run.
template <typename Visit> static void forEachRun(const Strides &strides, Visit visit) {
  int64_t rows = strides.run > 0 ? strides.elements / strides.run : 0;
  bool hasSource = strides.source.size() == strides.extents.size();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t source = 0, target = 0, index = row;
    for (size_t d = strides.extents.size(); d-- > 0; index /= strides.extents[d]) {
      int64_t place = index % strides.extents[d];
      source += hasSource ? place * strides.source[d] : 0;
      target += place * strides.target[d];
    }
    visit(source, target);
  }
}

std::vector<Touch> touchesOf(const MoveJob &job) {
  // Touches each run separately if there are few: boxes of neighbors interleave in one buffer.
  constexpr int64_t kMaxRuns = 4096;
  const Strides &strides = *job.strides;
  int64_t size = sizeOf(job.dtype);
  std::vector<Touch> touches;
  if (strides.elements == 0)
    return touches;
  if (strides.elements / strides.run > kMaxRuns) {
    for (const std::byte *from : job.sources)
      touches.push_back({from, spanOf(strides, strides.source) * size, false});
    for (std::byte *to : job.targets)
      touches.push_back({to, spanOf(strides, strides.target) * size, true});
    return touches;
  }
  forEachRun(strides, [&](int64_t source, int64_t target) {
    for (const std::byte *from : job.sources)
      touches.push_back({from + source * size, strides.run * size, false});
    for (std::byte *to : job.targets)
      touches.push_back({to + target * size, strides.run * size, true});
  });
  return touches;
}

static void fillRun(const MoveJob &job, std::byte *out, int64_t count) {
  int64_t size = sizeOf(job.dtype);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * size, job.value.data(), static_cast<size_t>(size));
}

void runMoveJob(const MoveJob &job) {
  const Strides &strides = *job.strides;
  int64_t size = sizeOf(job.dtype);
  ReduceFunction reduce = reduces(job) ? reduceFunction(job.dtype, job.reduction) : nullptr;
  std::vector<const std::byte *> data(job.sources.size());
  forEachRun(strides, [&](int64_t source, int64_t target) {
    for (int64_t done = 0; done < strides.run; done += kReduceChunk) {
      int64_t count = std::min(kReduceChunk, strides.run - done);
      std::byte *first = job.targets.front() + (target + done) * size;
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = job.sources[i] + (source + done) * size;
      if (data.empty())
        fillRun(job, first, count);
      else if (reduce)
        reduce(data.data(), static_cast<int64_t>(data.size()), count, job.scale, first);
      else
        std::memmove(first, data[0], static_cast<size_t>(count * size));
      for (size_t i = 1; i < job.targets.size(); ++i)
        std::memmove(job.targets[i] + (target + done) * size, first,
                     static_cast<size_t>(count * size));
    }
  });
}

} // namespace tessera::runtime
