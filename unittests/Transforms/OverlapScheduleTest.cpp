//===- OverlapScheduleTest.cpp - Times of collectives ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives/OverlapSchedule.h"

#include "gtest/gtest.h"

#include <random>
#include <string>

using namespace tessera::dist;

namespace {

OverlapStep computes(double seconds, std::vector<unsigned> sources = {}) {
  return {seconds, -1, false, false, std::move(sources)};
}
OverlapStep reduces(double seconds, std::vector<unsigned> sources, int queue = 0) {
  return {seconds, queue, false, false, std::move(sources)};
}
OverlapStep gathers(double seconds, std::vector<unsigned> sources = {}, int queue = 0) {
  return {seconds, queue, true, false, std::move(sources)};
}

/// "0 s1 2 w1 3": steps that run, and starts and waits of collectives.
std::string scheduled(const std::vector<OverlapStep> &steps, const OverlapLimits &limits = {}) {
  std::string text;
  for (const OverlapEvent &event : scheduleOverlap(steps, limits).events)
    text += (text.empty() ? "" : " ") +
            std::string(event.kind == OverlapEvent::Kind::start  ? "s"
                        : event.kind == OverlapEvent::Kind::wait ? "w"
                                                                 : "") +
            std::to_string(event.step);
  return text;
}

TEST(OverlapSchedule, StartsAfterOperandsAndWaitsBeforeTheFirstReader) {
  EXPECT_EQ(scheduled({computes(1), reduces(1, {0}), computes(1, {0}), computes(1, {1, 2})}),
            "0 s1 2 w1 3");
}

TEST(OverlapSchedule, LaterStepsRunBeforeAWaitingOne) {
  EXPECT_EQ(scheduled({computes(1), reduces(1, {0}), computes(1, {1}), computes(2, {0})}),
            "0 s1 3 w1 2");
  EXPECT_EQ(scheduled({computes(1), reduces(1, {0}), computes(1, {1}), computes(2, {0})},
                      {false, false, 2}),
            "0 1 2 3");
}

TEST(OverlapSchedule, CollectivesWithoutOverlapStaySynchronous) {
  EXPECT_EQ(scheduled({computes(1), reduces(5, {0}), computes(1, {1})}), "0 1 2");
}

TEST(OverlapSchedule, CollectivesOfTwoQueuesOverlap) {
  EXPECT_EQ(scheduled({computes(1), reduces(1, {0}), reduces(1, {0}, 1), computes(1, {1, 2})}),
            "0 s1 2 w1 3");
}

TEST(OverlapSchedule, GathersEndJustBeforeTheirReaders) {
  // Three layers of one second each, whose weights take half a second to gather.
  EXPECT_EQ(scheduled({gathers(0.5), computes(1, {0}), gathers(0.5), computes(1, {1, 2}),
                       gathers(0.5), computes(1, {3, 4})}),
            "0 s2 1 s4 w2 3 w4 5");
}

TEST(OverlapSchedule, LimitsPrefetchedGathers) {
  std::vector<OverlapStep> steps;
  for (unsigned layer = 0; layer < 6; ++layer) {
    steps.push_back(gathers(10));
    std::vector<unsigned> sources{2 * layer};
    if (layer)
      sources.push_back(2 * layer - 1);
    steps.push_back(computes(1, sources));
  }
  for (int most : {1, 2, 3}) {
    int ahead = 0, greatest = 0;
    for (const OverlapEvent &event : scheduleOverlap(steps, {true, true, most}).events) {
      ahead += event.kind == OverlapEvent::Kind::start;
      greatest = std::max(greatest, ahead);
      ahead -= event.kind == OverlapEvent::Kind::wait;
    }
    EXPECT_LE(greatest, most);
  }
}

TEST(OverlapSchedule, SecondsEndWithTheLastStepOrCollective) {
  EXPECT_EQ(scheduleOverlap({computes(1), reduces(5, {0}), computes(2, {0})}, {}).seconds, 6);
  EXPECT_EQ(scheduleOverlap({computes(1), reduces(1, {0}), computes(2, {0})}, {}).seconds, 3);
}

TEST(OverlapSchedule, LongestPathWithoutSlackRunsFirst) {
  // Nothing remains to hide 3 if 1, which has no users, runs in its turn.
  std::vector<OverlapStep> steps{computes(1), computes(3, {0}), computes(1, {0}), reduces(2, {2}),
                                 computes(1, {3})};
  EXPECT_EQ(scheduled(steps), "0 2 s3 1 w3 4");
  EXPECT_EQ(scheduled(steps, {true, false, 2}), "0 1 2 3 4");
}

TEST(OverlapSchedule, MostUrgentCollectiveOfAQueueStartsFirst) {
  std::vector<OverlapStep> steps{reduces(2, {}), reduces(1, {}), computes(3, {1}),
                                 computes(1, {0, 2})};
  EXPECT_EQ(scheduled(steps), "1 s0 2 w0 3");
  EXPECT_EQ(scheduleOverlap(steps, {}).seconds, 5);
  steps[0] = gathers(2);
  EXPECT_EQ(scheduled(steps), "1 s0 2 w0 3");
}

TEST(OverlapSchedule, QueuesAreFilledUntilTheNextStep) {
  // 4 becomes ready when 2 could have been in progress for long, and is more urgent.
  std::vector<OverlapStep> steps{computes(1),           reduces(2, {0}), reduces(2, {0}),
                                 computes(1, {0}),      reduces(1, {3}), computes(3, {4}),
                                 computes(1, {1, 2, 5})};
  EXPECT_EQ(scheduled(steps), "0 s1 3 4 s2 5 w1 w2 6");
  EXPECT_EQ(scheduleOverlap(steps, {}).seconds, 8);
}

TEST(OverlapSchedule, LoopsWaitForTheQueuesOfTheirCollectives) {
  OverlapStep loop = computes(3);
  loop.uses = {0};
  EXPECT_EQ(scheduleOverlap({computes(1), reduces(2, {0}), loop, computes(1, {1})}, {}).seconds, 7);
  loop.uses = {1};
  EXPECT_EQ(scheduleOverlap({computes(1), reduces(2, {0}), loop, computes(1, {1})}, {}).seconds, 5);
}

TEST(OverlapSchedule, LastCollectivesTakeTurnsBehindComputation) {
  // Gradients, updates of weights, sends of the weights: the first two are sent meanwhile.
  std::vector<OverlapStep> steps = {computes(2),      computes(2),      computes(2),
                                    computes(1, {0}), computes(1, {1}), computes(1, {2}),
                                    reduces(2, {3}),  reduces(2, {4}),  reduces(2, {5})};
  EXPECT_EQ(scheduled(steps), "0 1 3 s6 2 4 s7 5 8 w6 w7");
  EXPECT_EQ(scheduleOverlap(steps, {}).seconds, 12);
}

TEST(OverlapSchedule, FreeStepsRunBeforeTheirReader) {
  EXPECT_EQ(scheduled({computes(1), reduces(1, {0}), computes(0, {1}), computes(1, {0}),
                       computes(1, {2, 3})}),
            "0 s1 3 w1 2 4");
}

TEST(OverlapSchedule, EachStepRunsOnceAfterItsOperands) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<OverlapStep> steps;
    auto count = static_cast<unsigned>(1 + random() % 40);
    for (unsigned i = 0; i < count; ++i) {
      OverlapStep step;
      step.seconds = random() % 4;
      if (random() % 3 == 0)
        step.queue = static_cast<int>(random() % 3);
      step.grows = step.queue >= 0 && random() % 2;
      step.isOrdered = random() % 6 == 0;
      if (step.queue < 0 && random() % 8 == 0)
        step.uses = {static_cast<int>(random() % 4)};
      for (unsigned n = random() % 4; i > 0 && n > 0; --n)
        step.sources.push_back(random() % i);
      std::sort(step.sources.begin(), step.sources.end());
      step.sources.erase(std::unique(step.sources.begin(), step.sources.end()), step.sources.end());
      steps.push_back(step);
    }
    OverlapLimits limits{round % 2 == 0, round % 4 < 2, 1 + round % 3};
    std::vector<OverlapEvent> events = scheduleOverlap(steps, limits).events;
    EXPECT_EQ(events, scheduleOverlap(steps, limits).events);
    std::vector<bool> isBegun(count), isDone(count);
    unsigned numDone = 0;
    int64_t lastOrdered = -1;
    for (const OverlapEvent &event : events) {
      const OverlapStep &step = steps[event.step];
      if (event.kind != OverlapEvent::Kind::wait) {
        EXPECT_FALSE(isBegun[event.step]);
        isBegun[event.step] = true;
        for (unsigned source : step.sources)
          EXPECT_TRUE(isDone[source]) << "round " << round << " step " << event.step;
        if (step.isOrdered)
          EXPECT_LT(std::exchange(lastOrdered, event.step), event.step);
      }
      if (event.kind != OverlapEvent::Kind::start) {
        EXPECT_TRUE(isBegun[event.step] && !isDone[event.step]);
        isDone[event.step] = true;
        ++numDone;
      }
    }
    EXPECT_EQ(numDone, count) << "round " << round;
  }
}

} // namespace
