//===- ReshardTableTest.cpp - The table against the planner ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardTable.h"

#include "Fixtures.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

namespace {

/// Every way to lie with each axis whole, partial or cutting a dimension, in mesh order.
std::vector<TensorSharding> allShardings(const Mesh &mesh, int64_t rank) {
  std::vector<TensorSharding> all{TensorSharding::replicated(rank)};
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    std::vector<TensorSharding> more = all;
    for (const TensorSharding &before : all) {
      TensorSharding partial = before;
      partial.partial.push_back({AxisRef::full(mesh, axis), ReduceKind::sum});
      more.push_back(partial);
      for (int64_t d = 0; d < rank; ++d) {
        TensorSharding cut = before;
        cut.dims[d].push_back(AxisRef::full(mesh, axis));
        more.push_back(cut);
      }
    }
    all = more;
  }
  for (TensorSharding &sharding : all)
    sharding = canonical(sharding);
  return all;
}

TEST(ReshardTable, IsThePlannersTimeOfChains) {
  Mesh mesh = makeMesh({2, 4});
  Topology topology;
  ReshardPlanner planner(Objective::time, topology);
  std::vector<int64_t> shape{1024, 2048};
  ReshardTable table(mesh, shape, 4, planner);
  int64_t equal = 0, pairs = 0;
  for (const TensorSharding &source : allShardings(mesh, 2))
    for (const TensorSharding &target : allShardings(mesh, 2)) {
      if (target.isPartial())
        continue; // the planner reduces before it makes contributions; the table may do better
      double planned = planner.plan({mesh, shape, 4, source, target}).seconds;
      double seconds = table.seconds(source, target);
      // Never faster than the plan, and seldom slower: where an exchange replaces two collectives.
      EXPECT_GE(seconds, planned * (1 - 1e-9))
          << toString(mesh, source) << " to " << toString(mesh, target);
      EXPECT_LE(seconds, planned * 2.5)
          << toString(mesh, source) << " to " << toString(mesh, target);
      equal += seconds <= planned * (1 + 1e-9);
      ++pairs;
    }
  EXPECT_GE(equal, pairs * 7 / 10);
}

TEST(ReshardTable, AsksThePlannerForPartsOfAxes) {
  Mesh mesh = makeMesh({2, 4});
  ReshardPlanner planner;
  ReshardTable table(mesh, {64, 64}, 4, planner);
  TensorSharding half = TensorSharding::replicated(2);
  half.dims[0] = {{1, 1, 2}};
  TensorSharding whole = TensorSharding::replicated(2);
  EXPECT_EQ(table.seconds(half, whole), planner.plan({mesh, {64, 64}, 4, half, whole}).seconds);
  EXPECT_GT(table.seconds(half, whole), 0);
}

} // namespace
