//===- Schedule.h - The order of stages and micro-batches -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chain of S meshes, each with v chunks: stage c * S + s is chunk c of mesh s. M micro-batches
// pass forward through all stages and back. Each mesh executes its segments in its own order; F, B
// and W are the times of the forward pass, the input gradient and the weight gradients
// through one stage. The first of these gradients is sent before the others are computed, so that W
// is not part of a bubble:
//
//   schedule     order of mesh s                   idle seconds                alive
//   sequential   F0 B0 W0 F1 B1 W1 …               M (v S - v) (F + B) -       1
//                                                  M (v - 1) W
//   gpipe        F0 F1 … B0 W0 B1 W1 …             (S - 1) (F + B)             M
//   1f1b         S - s - 1 times F, then F B W     (S - 1) (F + B)             S - s
//                in turn
//   interleaved  1f1b over stages in groups of     (S - 1) (F + B)             2 (S - s - 1) +
//                S micro-batches, v chunks                                     (v - 1) S + 1
//   zb-h1        1f1b, W of s micro-batches        (S - 1) (F + B - W)         S
//                before
//
// A mesh is busy for v M (F + B + W); the bubble is idle time over idle and busy time.
//
// gpipe: Huang et al. 2019; 1f1b and interleaved: Narayanan et al. 2021; zb-h1: Qi et al. 2023.
// Micro-batches pass every stage in their order, so that sums of gradients are the same in every
// schedule.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_SCHEDULE_H
#define TESSERA_TRANSFORMS_PIPELINE_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::pipeline {

/// The orders in the table above.
enum class Schedule { sequential, gpipe, one_f_one_b, interleaved, zb_h1 };

std::string_view toString(Schedule schedule);
std::optional<Schedule> parseSchedule(std::string_view name);
/// "sequential, gpipe, …", for messages.
std::string scheduleNames();
/// In the order of the table.
std::vector<Schedule> allSchedules();

/// F, B and W: the forward pass, the input gradient and the weight gradients.
enum class Pass { forward, backward, weight };

/// One pass of one micro-batch through one chunk of a mesh.
struct Segment {
  Pass pass = Pass::forward;
  int64_t microBatch = 0, chunk = 0;
  friend bool operator==(const Segment &a, const Segment &b) {
    return a.pass == b.pass && a.microBatch == b.microBatch && a.chunk == b.chunk;
  }
};

/// The size of a pipeline: S meshes, M micro-batches, v chunks per mesh.
struct Shape {
  int64_t meshes = 1, microBatches = 1, chunks = 1;
  bool hasBackward = true;
};

/// Why the schedule does not support the shape, with a fix; nothing if it does.
std::optional<std::string> refuse(Schedule schedule, const Shape &shape);

/// The segments of each mesh in the order in which it executes them. Each backward segment is
/// followed by a weight segment, not necessarily directly. The schedule must support the shape.
std::vector<std::vector<Segment>> order(Schedule schedule, const Shape &shape);

/// Seconds of a segment of each pass; the backward one excludes the weights' gradients.
struct Times {
  double forward = 1, backward = 1, weight = 1;
};

/// The formula of the table: idle time over all time of a mesh, from the first segment of all
/// meshes to the last, if all stages take the same time and transfers none.
double idleShare(Schedule schedule, const Shape &shape, const Times &times);

/// The largest number of micro-batches with live activations on a mesh, counted per chunk: from the
/// forward segment to the weight segment, or to the backward one if there is none.
int64_t mostAlive(const std::vector<Segment> &segments);

} // namespace tessera::pipeline

#endif // TESSERA_TRANSFORMS_PIPELINE_SCHEDULE_H
