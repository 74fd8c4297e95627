//===- ArenaPlanTest.cpp - Intervals of memory for intervals of time ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"

#include "gtest/gtest.h"

#include <random>

using namespace tessera::codegen;

static Buffer buffer(int64_t bytes, std::vector<std::pair<int64_t, int64_t>> lives) {
  Buffer result;
  result.bytes = bytes;
  result.lives = std::move(lives);
  return result;
}

TEST(ArenaPlan, SimultaneousBuffersAreDisjoint) {
  Buffer a = buffer(100, {{0, 5}}), b = buffer(100, {{5, 9}});
  EXPECT_EQ(planArena({&a, &b}), 256);
  EXPECT_NE(a.offset, b.offset);
}

TEST(ArenaPlan, DisjointLiveRangesShareMemory) {
  Buffer a = buffer(128, {{0, 4}}), b = buffer(128, {{5, 9}});
  EXPECT_EQ(planArena({&a, &b}), 128);
  EXPECT_EQ(planArena({&a, &b}, /*reuse=*/false), 256);
}

TEST(ArenaPlan, ReusesMemoryBetweenTwoLiveRanges) {
  Buffer a = buffer(64, {{0, 2}, {8, 9}}), b = buffer(64, {{3, 7}});
  EXPECT_EQ(planArena({&a, &b}), 64);
}

TEST(ArenaPlan, TakesTheSmallestSufficientGap) {
  Buffer a = buffer(640, {{0, 1}}), b = buffer(320, {{0, 8}}), c = buffer(256, {{0, 1}}),
         d = buffer(192, {{1, 9}}), e = buffer(128, {{5, 6}});
  EXPECT_EQ(planArena({&a, &b, &c, &d, &e}), 640 + 320 + 256 + 192);
  EXPECT_EQ(e.offset, c.offset);
}

TEST(ArenaPlan, PermanentBuffersAreAtTheBottom) {
  Buffer a = buffer(640, {{0, 1}}), b = buffer(64, {{0, 9}}), c = buffer(640, {{5, 9}});
  EXPECT_EQ(planArena({&a, &b, &c}), 704);
  EXPECT_EQ(b.offset, 0);
}

TEST(ArenaPlan, ArenaEqualsThePeak) {
  std::mt19937 random(7);
  int least = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 24; ++i) {
      int64_t from = random() % 20, to = from + random() % 8;
      buffers.push_back(buffer(64 * (1 + random() % 6), {{from, to}}));
    }
    std::vector<Buffer *> pointers;
    for (Buffer &one : buffers)
      pointers.push_back(&one);
    int64_t most = 0;
    for (int64_t time = 0; time < 30; ++time) {
      int64_t alive = 0;
      for (const Buffer &one : buffers)
        if (one.lives[0].first <= time && time <= one.lives[0].second)
          alive += one.bytes;
      most = std::max(most, alive);
    }
    int64_t arena = planArena(pointers);
    EXPECT_GE(arena, most);
    least += arena == most;
  }
  EXPECT_GE(least, 190); // three orders alone give 132
}

TEST(ArenaPlan, NeverOverlaps) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 60; ++i) {
      int64_t from = random() % 100, to = from + random() % 20;
      buffers.push_back(buffer(random() % 5 == 0 ? 0 : random() % 1000, {{from, to}}));
    }
    std::vector<Buffer *> pointers;
    for (Buffer &one : buffers)
      pointers.push_back(&one);
    int64_t arena = planArena(pointers);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Buffer &a = buffers[i];
      EXPECT_EQ(a.offset % kArenaAlignment, 0);
      EXPECT_LE(a.offset + a.bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        const Buffer &b = buffers[j];
        bool together =
            a.lives[0].first <= b.lives[0].second && b.lives[0].first <= a.lives[0].second;
        bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && overlap && a.bytes && b.bytes);
      }
    }
  }
}
