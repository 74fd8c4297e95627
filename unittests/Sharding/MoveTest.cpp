//===- MoveTest.cpp - A collective leads to one target and to no other ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Sharding/ReshardPlanner.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

namespace {

const Mesh kMesh = makeMesh({2, 4});
const AxisList kA{whole(kMesh, 0)}, kB{whole(kMesh, 1)}, kAB{whole(kMesh, 0), whole(kMesh, 1)};
const AxisList kMajorB{{1, 1, 2}}, kMinorB{{1, 2, 2}};

TensorSharding cut(std::vector<AxisList> dims, const AxisList &partial = {}) {
  TensorSharding result{std::move(dims), {}, {}, {}};
  for (const AxisRef &axis : partial)
    result.partial.push_back({axis, ReduceKind::sum});
  return canonical(result);
}

bool leads(CollectiveKind kind, AxisList axes, TensorSharding source, TensorSharding target,
           int64_t dim = 0, int64_t splitDim = 0, bool makesPartial = false) {
  return leadsToTarget({kind, std::move(axes), dim, splitDim, makesPartial, ReduceKind::sum,
                        std::move(source), std::move(target)});
}

} // namespace

TEST(Move, GathersTheAxesThatTheTargetLacks) {
  using enum CollectiveKind;
  EXPECT_TRUE(leads(all_gather, kB, cut({kAB, {}}), cut({kA, {}})));
  EXPECT_TRUE(leads(all_gather, kAB, cut({kA, kB}), cut({{}, {}})));
  EXPECT_TRUE(leads(all_gather, kMinorB, cut({kB, {}}), cut({kMajorB, {}})));
  EXPECT_FALSE(leads(all_gather, kA, cut({kAB, {}}), cut({kB, {}}))); // the major axis must stay
  EXPECT_FALSE(leads(all_gather, kA, cut({kAB, {}}), cut({kA, {}})));
  EXPECT_FALSE(leads(all_gather, kB, cut({kB, {}}, kA), cut({{}, {}}))); // the partial axis is lost
}

TEST(Move, ReducesTheAxesOfItsGroup) {
  using enum CollectiveKind;
  EXPECT_TRUE(leads(all_reduce, kAB, cut({{}, {}}, kAB), cut({{}, {}})));
  EXPECT_TRUE(leads(all_reduce, kMajorB, cut({{}, {}}, kB), cut({{}, {}}, kMinorB)));
  EXPECT_FALSE(leads(all_reduce, kA, cut({{}, {}}, kAB), cut({{}, {}})));
  EXPECT_TRUE(leads(reduce_scatter, kB, cut({kA, {}}, kB), cut({kAB, {}})));
  EXPECT_FALSE(leads(reduce_scatter, kB, cut({kA, {}}, kB), cut({kAB, {}}), 1));
  EXPECT_FALSE(leads(reduce_scatter, kB, cut({kA, {}}), cut({kAB, {}})));
  EXPECT_FALSE(leads(reduce_scatter, kB, cut({kA, {}}, kB), cut({kAB, {}}), 7));
}

TEST(Move, MovesAxesBetweenDimensions) {
  using enum CollectiveKind;
  EXPECT_TRUE(leads(all_to_all, kB, cut({kAB, {}}), cut({kA, kB}), 0, 1));
  EXPECT_FALSE(leads(all_to_all, kB, cut({kAB, {}}), cut({kA, kB}), 1, 0));
  EXPECT_FALSE(leads(all_to_all, kB, cut({kB, {}}), cut({kB, {}}), 0, 0));
  EXPECT_TRUE(leads(slice, kB, cut({kA, {}}), cut({kAB, {}})));
  EXPECT_FALSE(leads(slice, kB, cut({kA, {}}), cut({kA, kB})));
  EXPECT_TRUE(leads(permute, kAB, cut({kA, {}}), cut({{{1, 1, 2}}, {}})));
  EXPECT_FALSE(leads(permute, kAB, cut({kA, {}}), cut({kB, {}})));
}

TEST(Move, MakesPartialsFromReplicasAndShards) {
  using enum CollectiveKind;
  EXPECT_TRUE(leads(slice, kB, cut({kA, {}}), cut({kA, {}}, kB), 0, 0, true));
  EXPECT_TRUE(leads(slice, kB, cut({kAB, {}}), cut({kA, {}}, kB), 0, 0, true));
  EXPECT_FALSE(leads(slice, kA, cut({kAB, {}}), cut({kB, {}}, kA), 0, 0, true));
  EXPECT_TRUE(leads(exchange, {}, cut({kA, kB}), cut({kB, kA})));
  EXPECT_FALSE(leads(exchange, {}, cut({kA, {}}), cut({kA, {}}, kB)));
}
