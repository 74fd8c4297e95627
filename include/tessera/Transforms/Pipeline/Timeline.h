//===- Timeline.h - Modelled timeline of a pipeline -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_PIPELINE_TIMELINE_H
#define TESSERA_TRANSFORMS_PIPELINE_TIMELINE_H

#include "tessera/Transforms/Pipeline/Schedule.h"

namespace tessera::pipeline {

/// The timeline of one mesh.
struct MeshTimeline {
  std::string mesh;
  std::vector<Segment> segments; ///< in its order
  std::vector<Times> seconds;    ///< by chunk: the mean over micro-batches
  double busy = 0;               ///< seconds in segments
  int64_t alive = 0;             ///< mostAlive of its segments
};

/// A program ordered by dist-schedule-pipeline, with modelled times.
struct PipelineTimeline {
  Schedule schedule = Schedule::sequential;
  Shape shape;
  std::vector<MeshTimeline> meshes; ///< in the order of the stages
  double seconds = 0;               ///< from the start of the program to its end, updates included
  double span = 0;                  ///< from the first segment to the end of the last
  double formulaIdle = 0;           ///< idleShare with the mean times of all stages
  double modelledIdle = 0;          ///< the mean idle fraction of `span` over meshes
};

/// "F0 F1 B0 W0 …"; for meshes with several chunks "F0.1": micro-batch 0, chunk 1. A backward
/// segment followed by its weight segment is one "B0".
std::string text(const std::vector<Segment> &segments, bool hasChunks);

} // namespace tessera::pipeline

#endif // TESSERA_TRANSFORMS_PIPELINE_TIMELINE_H
