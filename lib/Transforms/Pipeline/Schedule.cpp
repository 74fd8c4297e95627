//===- Schedule.cpp - The order of stages and micro-batches ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Pipeline/Schedule.h"

#include <algorithm>
#include <array>
#include <deque>

using namespace tessera::pipeline;

static constexpr std::array<std::string_view, 5> kNames = {"sequential", "gpipe", "1f1b",
                                                           "interleaved", "zb-h1"};

std::string_view tessera::pipeline::toString(Schedule schedule) {
  return kNames[static_cast<size_t>(schedule)];
}

std::vector<Schedule> tessera::pipeline::allSchedules() {
  return {Schedule::sequential, Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
          Schedule::zb_h1};
}

std::optional<Schedule> tessera::pipeline::parseSchedule(std::string_view name) {
  for (Schedule schedule : allSchedules())
    if (toString(schedule) == name)
      return schedule;
  return std::nullopt;
}

std::string tessera::pipeline::scheduleNames() {
  std::string names;
  for (std::string_view name : kNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

std::optional<std::string> tessera::pipeline::refuse(Schedule schedule, const Shape &shape) {
  if (schedule != Schedule::interleaved && schedule != Schedule::sequential && shape.chunks > 1)
    return "needs one stage per mesh, and meshes have " + std::to_string(shape.chunks) +
           "; use interleaved";
  if (schedule != Schedule::interleaved)
    return std::nullopt;
  if (shape.chunks == 1)
    return "needs several stages per mesh, and meshes have one; use 1f1b";
  if (shape.microBatches % shape.meshes != 0)
    return "needs a multiple of " + std::to_string(shape.meshes) +
           " micro-batches, one per mesh, and there are " + std::to_string(shape.microBatches) +
           "; use " + std::to_string((shape.microBatches / shape.meshes + 1) * shape.meshes);
  return std::nullopt;
}

namespace {

/// The order of one mesh under construction.
class Writer {
public:
  /// Weight gradients of a micro-batch are delayed by `delay` backward segments.
  explicit Writer(const Shape &shape, int64_t delay = 0) : shape(shape), delay(delay) {}

  void forward(int64_t microBatch, int64_t chunk = 0) {
    segments.push_back({Pass::forward, microBatch, chunk});
  }
  void backward(int64_t microBatch, int64_t chunk = 0) {
    if (!shape.hasBackward)
      return;
    segments.push_back({Pass::backward, microBatch, chunk});
    delayed.push_back({Pass::weight, microBatch, chunk});
    if (std::ssize(delayed) > delay)
      addWeight();
  }
  std::vector<Segment> take() {
    while (!delayed.empty())
      addWeight();
    return std::move(segments);
  }

private:
  void addWeight() {
    segments.push_back(delayed.front());
    delayed.pop_front();
  }

  const Shape &shape;
  int64_t delay;
  std::vector<Segment> segments;
  std::deque<Segment> delayed;
};

} // namespace

static std::vector<Segment> sequential(const Shape &shape) {
  Writer writer(shape);
  for (int64_t microBatch = 0; microBatch < shape.microBatches; ++microBatch) {
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      writer.forward(microBatch, chunk);
    for (int64_t chunk = shape.chunks; chunk-- > 0;)
      writer.backward(microBatch, chunk);
  }
  return writer.take();
}

/// `ahead` forward segments, then alternating forward and backward ones, then the remaining
/// backward ones.
static std::vector<Segment> inTurn(const Shape &shape, int64_t ahead, int64_t delay = 0) {
  Writer writer(shape, delay);
  for (int64_t i = 0; i < shape.microBatches + ahead; ++i) {
    if (i < shape.microBatches)
      writer.forward(i);
    if (i >= ahead)
      writer.backward(i - ahead);
  }
  return writer.take();
}

static std::vector<Segment> interleaved(const Shape &shape, int64_t mesh) {
  int64_t group = shape.meshes * shape.chunks, all = shape.microBatches * shape.chunks;
  auto microBatchOf = [&](int64_t i) { return i / group * shape.meshes + i % shape.meshes; };
  auto chunkOf = [&](int64_t i) { return i % group / shape.meshes; };
  int64_t ahead = std::min(all, 2 * (shape.meshes - mesh - 1) + (shape.chunks - 1) * shape.meshes);
  Writer writer(shape);
  for (int64_t i = 0; i < all + ahead; ++i) {
    if (i < all)
      writer.forward(microBatchOf(i), chunkOf(i));
    if (i >= ahead)
      writer.backward(microBatchOf(i - ahead), shape.chunks - 1 - chunkOf(i - ahead));
  }
  return writer.take();
}

static std::vector<Segment> orderOf(Schedule schedule, const Shape &shape, int64_t mesh) {
  int64_t behind = std::min(shape.microBatches, shape.meshes - mesh - 1);
  switch (schedule) {
  case Schedule::sequential:
    return sequential(shape);
  case Schedule::gpipe:
    return inTurn(shape, shape.microBatches);
  case Schedule::one_f_one_b:
    return inTurn(shape, behind);
  case Schedule::interleaved:
    return interleaved(shape, mesh);
  case Schedule::zb_h1:
    return inTurn(shape, behind, mesh);
  }
  return {};
}

std::vector<std::vector<Segment>> tessera::pipeline::order(Schedule schedule, const Shape &shape) {
  std::vector<std::vector<Segment>> orders;
  for (int64_t mesh = 0; mesh < shape.meshes; ++mesh)
    orders.push_back(orderOf(schedule, shape, mesh));
  return orders;
}

double tessera::pipeline::idleShare(Schedule schedule, const Shape &shape, const Times &times) {
  auto meshes = static_cast<double>(shape.meshes), chunks = static_cast<double>(shape.chunks);
  auto microBatches = static_cast<double>(shape.microBatches);
  double backward = shape.hasBackward ? times.backward : 0;
  double weight = shape.hasBackward ? times.weight : 0;
  double there = times.forward + backward, idle = (meshes - 1) * there;
  if (schedule == Schedule::sequential)
    idle = microBatches * (chunks * (meshes - 1) * there - (chunks - 1) * weight);
  else if (schedule == Schedule::zb_h1)
    idle -= (meshes - 1) * weight;
  idle = std::max(0.0, idle);
  double busy = chunks * microBatches * (there + weight);
  return idle + busy > 0 ? idle / (idle + busy) : 0;
}

int64_t tessera::pipeline::mostAlive(const std::vector<Segment> &segments) {
  int64_t alive = 0, most = 0;
  auto has = [&](Pass pass, const Segment &of) {
    return std::find(segments.begin(), segments.end(), Segment{pass, of.microBatch, of.chunk}) !=
           segments.end();
  };
  for (const Segment &each : segments) {
    if (each.pass == Pass::forward) {
      most = std::max(most, ++alive);
      alive -= !has(Pass::backward, each) && !has(Pass::weight, each);
    } else if (each.pass == Pass::weight || !has(Pass::weight, each)) {
      --alive;
    }
  }
  return most;
}
