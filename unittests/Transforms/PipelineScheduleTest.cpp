//===- PipelineScheduleTest.cpp - The order of stages and micro-batches ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Pipeline/Schedule.h"
#include "tessera/Transforms/Pipeline/Timeline.h"

#include "gtest/gtest.h"

#include <map>

using namespace tessera::pipeline;

namespace {

std::vector<std::string> texts(Schedule schedule, const Shape &shape) {
  std::vector<std::string> result;
  for (const std::vector<Segment> &segments : order(schedule, shape))
    result.push_back(text(segments, shape.chunks > 1));
  return result;
}

/// Fraction of idle time if each mesh executes its order and waits for its operands; -1 if they
/// wait for each other.
double simulated(Schedule schedule, const Shape &shape, const Times &times) {
  auto orders = order(schedule, shape);
  int64_t stages = shape.meshes * shape.chunks;
  std::vector<double> now(shape.meshes, 0);
  std::vector<size_t> next(shape.meshes, 0);
  std::map<std::tuple<Pass, int64_t, int64_t>, double> done; // by pass, stage, micro-batch
  double busy = 0;
  for (bool progressed = true; std::exchange(progressed, false);)
    for (int64_t mesh = 0; mesh < shape.meshes; ++mesh)
      for (; next[mesh] < orders[mesh].size(); ++next[mesh], progressed = true) {
        const Segment &each = orders[mesh][next[mesh]];
        int64_t stage = each.chunk * shape.meshes + mesh;
        std::optional<std::tuple<Pass, int64_t, int64_t>> source;
        if (each.pass == Pass::weight)
          source = {Pass::backward, stage, each.microBatch};
        else if (each.pass == Pass::backward && stage + 1 < stages)
          source = {Pass::backward, stage + 1, each.microBatch};
        else if (each.pass == Pass::backward)
          source = {Pass::forward, stage, each.microBatch};
        else if (stage > 0)
          source = {Pass::forward, stage - 1, each.microBatch};
        if (source && !done.count(*source))
          break;
        double seconds = each.pass == Pass::forward    ? times.forward
                         : each.pass == Pass::backward ? times.backward
                                                       : times.weight;
        now[mesh] = std::max(now[mesh], source ? done[*source] : 0) + seconds;
        busy += seconds;
        done[{each.pass, stage, each.microBatch}] = now[mesh];
      }
  for (int64_t mesh = 0; mesh < shape.meshes; ++mesh)
    if (next[mesh] < orders[mesh].size())
      return -1;
  return 1 - busy / (static_cast<double>(shape.meshes) * *std::max_element(now.begin(), now.end()));
}

TEST(PipelineSchedule, Orders) {
  Shape shape{2, 3};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(Schedule::sequential, shape), (Texts{"F0 B0 F1 B1 F2 B2", "F0 B0 F1 B1 F2 B2"}));
  EXPECT_EQ(texts(Schedule::gpipe, shape), (Texts{"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"}));
  EXPECT_EQ(texts(Schedule::one_f_one_b, shape), (Texts{"F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"}));
  EXPECT_EQ(texts(Schedule::zb_h1, shape),
            (Texts{"F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 W0 F2 B2 W1 W2"}));
  EXPECT_EQ(texts(Schedule::interleaved, {2, 2, 2}),
            (Texts{"F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0",
                   "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0"}));
}

TEST(PipelineSchedule, ForwardOnly) {
  Shape shape{2, 3, 1, false};
  for (Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zb_h1})
    EXPECT_EQ(texts(schedule, shape), (std::vector<std::string>{"F0 F1 F2", "F0 F1 F2"}));
}

TEST(PipelineSchedule, IdleTimeEqualsTheFormula) {
  for (int64_t meshes : {1, 2, 4, 8})
    for (int64_t microBatches : {meshes, 2 * meshes, 4 * meshes})
      for (const Times &times : {Times{1, 1, 1}, Times{1, 1.2, 1}, Times{1, 1.2, 0.8}})
        for (Schedule schedule : allSchedules()) {
          Shape shape{meshes, microBatches};
          if (schedule == Schedule::interleaved)
            shape.chunks = 2;
          if (refuse(schedule, shape))
            continue;
          EXPECT_NEAR(simulated(schedule, shape, times), idleShare(schedule, shape, times), 0.005)
              << std::string(toString(schedule)) << " " << meshes << " " << microBatches;
        }
}

TEST(PipelineSchedule, LiveMicroBatches) {
  auto alive = [](Schedule schedule, const Shape &shape) {
    std::vector<int64_t> most;
    for (const std::vector<Segment> &segments : order(schedule, shape))
      most.push_back(mostAlive(segments));
    return most;
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(alive(Schedule::sequential, {4, 8}), (Counts{1, 1, 1, 1}));
  EXPECT_EQ(alive(Schedule::gpipe, {4, 8}), (Counts{8, 8, 8, 8}));
  EXPECT_EQ(alive(Schedule::one_f_one_b, {4, 8}), (Counts{4, 3, 2, 1}));
  EXPECT_EQ(alive(Schedule::one_f_one_b, {4, 2}), (Counts{2, 2, 2, 1}));
  EXPECT_EQ(alive(Schedule::zb_h1, {4, 8}), (Counts{4, 4, 4, 4}));
  EXPECT_EQ(alive(Schedule::interleaved, {4, 8, 2}), (Counts{11, 9, 7, 5}));
}

TEST(PipelineSchedule, FewerMicroBatchesThanMeshes) {
  for (Schedule schedule :
       {Schedule::sequential, Schedule::gpipe, Schedule::one_f_one_b, Schedule::zb_h1})
    for (int64_t microBatches : {1, 2, 3, 5})
      EXPECT_GE(simulated(schedule, {4, microBatches}, {}), 0);
}

TEST(PipelineSchedule, Refusals) {
  EXPECT_EQ(refuse(Schedule::interleaved, {2, 3, 2}),
            "needs a multiple of 2 micro-batches, one per mesh, and there are 3; use 4");
  EXPECT_EQ(refuse(Schedule::interleaved, {2, 4}),
            "needs several stages per mesh, and meshes have one; use 1f1b");
  EXPECT_EQ(refuse(Schedule::gpipe, {2, 4, 2}),
            "needs one stage per mesh, and meshes have 2; use interleaved");
  EXPECT_FALSE(refuse(Schedule::one_f_one_b, {3, 4}));
}

TEST(PipelineSchedule, Names) {
  for (Schedule schedule : allSchedules())
    EXPECT_EQ(parseSchedule(toString(schedule)), schedule);
  EXPECT_FALSE(parseSchedule("2f2b"));
}

} // namespace
