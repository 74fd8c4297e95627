//===- RematerializeTest.cpp - Delayed and rematerialized buffers ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Rematerialize.h"

#include "gtest/gtest.h"

using namespace tessera::dist;

namespace {

/// A weight's shard, which is always live, is gathered at 1 and read at 2 and at 8; another buffer
/// is live from 4 to 6.
Rematerializer gatheredWeight() {
  Rematerializer buffers(10);
  LiveBuffer gathered{0, 1, 8, 100};
  gathered.reads = {{2, 2}, {8, 8}};
  gathered.seconds = 0.5;
  buffers.add({gathered});
  buffers.add({{1, 4, 6, 50}});
  return buffers;
}

} // namespace

TEST(Rematerialize, SplitsValuesIdleAtThePeak) {
  Rematerializer buffers = gatheredWeight();
  EXPECT_EQ(buffers.peak(), 150);
  EXPECT_EQ(buffers.worst(), 4);
  EXPECT_EQ(buffers.largestOwner(), 0);
  int splits = 0;
  EXPECT_EQ(buffers.run(100,
                        [&](const Rematerializer::Split &split) {
                          ++splits;
                          EXPECT_EQ(split.buffer, 0u);
                          EXPECT_EQ(split.again, 2u);
                          EXPECT_EQ(split.from, 8);
                          EXPECT_EQ(split.steps, 1);
                        }),
            0.5);
  EXPECT_EQ(splits, 1);
  EXPECT_EQ(buffers.peak(), 100);
}

TEST(Rematerialize, KeepsValuesWithinTheBudget) {
  Rematerializer buffers = gatheredWeight();
  EXPECT_EQ(buffers.run(150), 0);
  EXPECT_EQ(buffers.peak(), 150);
}

TEST(Rematerialize, KeepsOperandsOfRematerializedValues) {
  // The base, of 40 bytes, ends at 1: it is kept until 8, so 60 bytes are freed.
  Rematerializer buffers(10);
  LiveBuffer base{0, 0, 1, 40}, gathered{1, 1, 8, 100, {{2, 2}, {8, 8}}, 0, 0.5};
  buffers.add({base, gathered});
  buffers.add({{2, 4, 6, 80}});
  EXPECT_EQ(buffers.run(140), 0.5);
  EXPECT_EQ(buffers.peak(), 140);
  // Nothing is freed if the base has the same size.
  Rematerializer same(10);
  base.bytes = 100;
  same.add({base, gathered});
  same.add({{2, 4, 6, 80}});
  EXPECT_EQ(same.run(140), 0);
  EXPECT_EQ(same.peak(), 200);
}

TEST(Rematerialize, RepeatsAChainWithALiveEnd) {
  // Sliced from a value that is always live, then gathered: both steps are repeated.
  Rematerializer buffers(10);
  LiveBuffer slice{0, 1, 1, 40, {{1, 1}}, -1, 0.25};
  slice.isRepeatable = true;
  LiveBuffer gathered{1, 1, 8, 100, {{2, 2}, {8, 8}}, 0, 0.5};
  gathered.isRepeatable = true;
  buffers.add({slice, gathered});
  buffers.add({{2, 4, 6, 80}});
  int steps = 0;
  EXPECT_EQ(buffers.run(140, [&](const Rematerializer::Split &split) { steps = split.steps; }),
            0.75);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(buffers.peak(), 140);
}

TEST(Rematerialize, DelaysOpsWithLargerResults) {
  Rematerializer buffers(10);
  buffers.add({{0, 1, 8, 100, {{5, 5}, {8, 8}}}});
  buffers.add({{1, 2, 3, 100}});
  EXPECT_EQ(buffers.peak(), 200);
  buffers.delayToFirstReader();
  EXPECT_EQ(buffers.peak(), 100);
}
