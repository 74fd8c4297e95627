//===- TensorShardingTest.cpp - Shardings and their canonical form --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

TEST(ReduceKind, RoundTrip) {
  for (const char *name : {"sum", "avg", "max", "min", "prod"})
    EXPECT_EQ(toString(*parseReduceKind(name)), name);
  EXPECT_FALSE(parseReduceKind("mean"));
}

TEST(CollectiveKind, RoundTrip) {
  for (int kind = 0; kind <= static_cast<int>(CollectiveKind::transfer); ++kind)
    EXPECT_EQ(parseCollectiveKind(toString(static_cast<CollectiveKind>(kind))),
              static_cast<CollectiveKind>(kind));
  EXPECT_FALSE(parseCollectiveKind("allreduce"));
}

TEST(TensorSharding, Predicates) {
  Mesh mesh = makeMesh({2, 4});
  TensorSharding open = TensorSharding::allOpen(mesh, 2);
  EXPECT_TRUE(open.isReplicated());
  EXPECT_EQ(open.open.size(), 2u);
  EXPECT_TRUE(open.closed().open.empty());

  TensorSharding sharding{{{whole(mesh, 0)}, {}}, {{whole(mesh, 1), ReduceKind::sum}}, {}, {}};
  EXPECT_FALSE(sharding.isReplicated());
  EXPECT_TRUE(sharding.isPartial());
  EXPECT_FALSE(sharding.isFree({1, 2, 2}));
  EXPECT_TRUE(sharding.withoutPartial().isFree({1, 2, 2}));
  EXPECT_EQ(sharding.usedAxes(), (AxisList{whole(mesh, 0), whole(mesh, 1)}));
  EXPECT_EQ(sharding.partialAxes(), (AxisList{whole(mesh, 1)}));
  EXPECT_EQ(toString(mesh, sharding), "[[\"a\"], []] partial sum(\"b\")");
}

TEST(TensorSharding, CanonicalMergesNeighbours) {
  TensorSharding split{{{{0, 1, 2}, {0, 2, 2}}},
                       {{{1, 2, 2}, ReduceKind::sum}, {{1, 1, 2}, ReduceKind::sum}},
                       {{2, 2, 2}, {2, 1, 2}},
                       {}};
  TensorSharding merged{{{{0, 1, 4}}}, {{{1, 1, 4}, ReduceKind::sum}}, {{2, 1, 4}}, {}};
  EXPECT_EQ(canonical(split), merged);
  TensorSharding kinds{{}, {{{1, 1, 2}, ReduceKind::sum}, {{1, 2, 2}, ReduceKind::max}}, {}, {}};
  EXPECT_EQ(canonical(kinds), kinds) << "different reductions stay apart";
}
