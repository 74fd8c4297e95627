//===- MinimumCutTest.cpp - Minimum cuts against all cuts -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/MinimumCut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

using tessera::solver::Capacity;
using tessera::solver::MinimumCut;

namespace {

struct Edge {
  int64_t from, to, capacity;
};

int64_t capacityOf(const std::vector<Edge> &edges, uint64_t sourceSide) {
  int64_t total = 0;
  for (const Edge &edge : edges)
    if ((sourceSide >> edge.from & 1) && !(sourceSide >> edge.to & 1))
      total += edge.capacity;
  return total;
}

TEST(MinimumCut, EqualsBruteForceAndIsNearestToTheSource) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    int64_t nodes = 2 + static_cast<int64_t>(random() % 7);
    std::vector<Edge> edges;
    MinimumCut cut;
    for (int64_t n = 2; n < nodes; ++n)
      cut.addNode();
    for (size_t e = random() % 20; e-- > 0;) {
      edges.push_back({static_cast<int64_t>(random() % nodes),
                       static_cast<int64_t>(random() % nodes), static_cast<int64_t>(random() % 9)});
      cut.addEdge(edges.back().from, edges.back().to, edges.back().capacity);
    }
    int64_t least = std::numeric_limits<int64_t>::max(), fewest = 0;
    for (uint64_t side = 0; side < (uint64_t(1) << nodes); ++side)
      if ((side & 1) && !(side & 2)) {
        int64_t capacity = capacityOf(edges, side), size = __builtin_popcountll(side);
        if (capacity < least || (capacity == least && size < fewest)) {
          least = capacity;
          fewest = size;
        }
      }
    EXPECT_EQ(cut.solve(), least);
    uint64_t found = 0;
    for (int64_t n = 0; n < nodes; ++n)
      found |= uint64_t(cut.onSourceSide(n)) << n;
    EXPECT_EQ(capacityOf(edges, found), least);
    EXPECT_EQ(__builtin_popcountll(found), fewest);
  }
}

/// Bytes times executions: 2^30 to 2^100.
TEST(MinimumCut, ComparesCapacitiesBeyond64Bits) {
  for (int exponent : {0, 29, 31, 59, 61, 63, 100}) {
    Capacity large = Capacity(1) << exponent;
    MinimumCut cut;
    int64_t node = cut.addNode();
    cut.addEdge(MinimumCut::kSource, node, 3 * large);
    cut.addEdge(node, MinimumCut::kSink, large);
    cut.addEdge(node, MinimumCut::kSink, large);
    EXPECT_TRUE(cut.solve() == 2 * large) << exponent;
    EXPECT_TRUE(cut.onSourceSide(node)) << exponent;
  }
}

TEST(MinimumCut, LongChainsTerminate) {
  MinimumCut cut;
  int64_t last = MinimumCut::kSource;
  for (int64_t n = 0; n < 100000; ++n) {
    int64_t next = cut.addNode();
    cut.addEdge(last, next, n == 70000 ? 3 : 5);
    last = next;
  }
  cut.addEdge(last, MinimumCut::kSink, MinimumCut::kInfinite);
  EXPECT_EQ(cut.solve(), 3);
  EXPECT_TRUE(cut.onSourceSide(2 + 69999));
  EXPECT_FALSE(cut.onSourceSide(2 + 70000));
}

} // namespace
