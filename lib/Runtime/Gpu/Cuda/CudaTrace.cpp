//===- CudaTrace.cpp - Times of operations on a GPU -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTrace.h"

namespace tessera::runtime::gpu {

CudaTrace::~CudaTrace() {
  for (CuEvent event : events)
    (void)api.eventDestroy(event);
}

Expected<CuEvent> CudaTrace::recorded(CuStream stream) {
  CuEvent event = nullptr;
  TESSERA_RETURN_IF_ERROR(api.check(api.eventCreate(&event, 0), "cannot create a timed event"));
  events.push_back(event);
  TESSERA_RETURN_IF_ERROR(api.check(api.eventRecord(event, stream), "cannot record an event"));
  return event;
}

Status CudaTrace::start() {
  CuStream stream = nullptr;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.streamCreate(&stream, kCuStreamNonBlocking), "cannot create a stream"));
  auto event = recorded(stream);
  if (!event)
    return event.status();
  origin = *event;
  Status done = api.check(api.streamSynchronize(stream), "the GPU");
  (void)api.streamDestroy(stream);
  return done;
}

Status CudaTrace::begin(const Issue &issue, int64_t device) {
  full |= spans.size() >= kMaxOperations;
  if (full)
    return {};
  auto event = recorded(reinterpret_cast<CuStream>(issue.stream));
  if (!event)
    return event.status();
  spans.push_back({issue.step, issue.what, device, *event, nullptr});
  open = true;
  return {};
}

Status CudaTrace::end(const Issue &issue) {
  if (!open)
    return {};
  open = false;
  auto event = recorded(reinterpret_cast<CuStream>(issue.stream));
  if (!event)
    return event.status();
  spans.back().to = *event;
  return {};
}

Expected<std::vector<Track>> CudaTrace::tracks(int64_t devices) {
  TESSERA_RETURN_IF_ERROR(api.check(api.ctxSynchronize(), "the GPU"));
  std::vector<Track> tracks(static_cast<size_t>(devices));
  auto since = [&](CuEvent event, int64_t &nanoseconds) {
    float milliseconds = 0;
    Status status = api.check(api.eventElapsedTime(&milliseconds, origin, event),
                              "cannot get the time of an event");
    nanoseconds = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
    return status;
  };
  for (const Span &span : spans) {
    if (!span.to || !span.step)
      continue; // an operation that failed
    TraceEvent event{span.step, span.what, 0, 0};
    TESSERA_RETURN_IF_ERROR(since(span.from, event.beginNs));
    TESSERA_RETURN_IF_ERROR(since(span.to, event.endNs));
    tracks[static_cast<size_t>(span.device)].add(event);
  }
  for (Track &track : tracks)
    track.full |= full;
  return tracks;
}

} // namespace tessera::runtime::gpu
