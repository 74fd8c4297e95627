//===- MeshTest.cpp - Meshes and axis references --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

TEST(Mesh, CoordinatesAreRowMajor) {
  Mesh mesh = makeMesh({2, 4}, 10);
  EXPECT_EQ(mesh.coordinate(6), (Shape{1, 2}));
  for (int64_t position = 0; position < 8; ++position)
    EXPECT_EQ(mesh.position(mesh.coordinate(position)), position);
  EXPECT_EQ(mesh.positionOf(13), 3);
  EXPECT_EQ(mesh.positionOf(3), -1);
  EXPECT_EQ(mesh.axisIndex("b"), 1);
  EXPECT_EQ(mesh.axisIndex("z"), -1);
}

TEST(DeviceIds, ConsecutiveIdsAreARange) {
  DeviceIds range = DeviceIds::range(4, 2), listed({2, 3, 4, 5}), other({5, 3, 2, 4});
  EXPECT_TRUE(listed.isRange());
  EXPECT_FALSE(other.isRange());
  EXPECT_EQ(range, listed);
  EXPECT_FALSE(range == other);
  EXPECT_EQ(other.sorted(), range);
  EXPECT_EQ(other, DeviceIds({5, 3, 2, 4}));
  EXPECT_EQ(range.vec(), (Shape{2, 3, 4, 5}));
  for (const DeviceIds &ids : {range, other}) {
    EXPECT_EQ(ids.size(), 4u);
    for (size_t position = 0; position < 4; ++position)
      EXPECT_EQ(ids.find(ids[position]), static_cast<int64_t>(position));
    EXPECT_EQ(ids.find(6), -1);
  }
  EXPECT_EQ(DeviceIds(), DeviceIds::range(0, 7));
}

TEST(Mesh, SubAxisCoordinates) {
  Mesh mesh = makeMesh({8});
  struct {
    AxisRef axis;
    int64_t expected; // of device 6 = 0b110
  } table[] = {{{0, 1, 8}, 6}, {{0, 1, 2}, 1}, {{0, 2, 2}, 1}, {{0, 4, 2}, 0}, {{0, 2, 4}, 2}};
  for (auto &row : table)
    EXPECT_EQ(coordinateIn(mesh, row.axis, {6}), row.expected) << toString(mesh, row.axis);
}

TEST(Mesh, LinearIndexIsMajorFirst) {
  Mesh mesh = makeMesh({2, 4});
  EXPECT_EQ(linearIndex(mesh, {whole(mesh, 0), whole(mesh, 1)}, {1, 2}), 6);
  EXPECT_EQ(linearIndex(mesh, {whole(mesh, 1), whole(mesh, 0)}, {1, 2}), 5);
  EXPECT_EQ(linearIndex(mesh, {}, {1, 2}), 0);
}

TEST(AxisRef, OverlapsContainsMerges) {
  AxisRef full{0, 1, 8}, major{0, 1, 2}, middle{0, 2, 2}, minor{0, 4, 2}, low{0, 2, 4};
  struct {
    AxisRef a, b;
    bool overlaps, contains, merges;
  } table[] = {
      {full, major, true, true, false},       {major, full, true, false, false},
      {major, middle, false, false, true},    {major, minor, false, false, false},
      {major, low, false, false, true},       {low, minor, true, true, false},
      {full, {1, 1, 8}, false, false, false},
  };
  for (auto &row : table) {
    EXPECT_EQ(row.a.overlaps(row.b), row.overlaps);
    EXPECT_EQ(row.b.overlaps(row.a), row.overlaps);
    EXPECT_EQ(row.a.contains(row.b), row.contains);
    EXPECT_EQ(row.a.canMerge(row.b), row.merges);
  }
}

TEST(AxisList, MergeAxes) {
  EXPECT_EQ(mergeAxes({{0, 1, 2}, {0, 2, 4}}), (AxisList{{0, 1, 8}}));
  EXPECT_EQ(mergeAxes({{0, 2, 4}, {0, 1, 2}}), (AxisList{{0, 2, 4}, {0, 1, 2}}));
  EXPECT_EQ(mergeAxes({{0, 1, 2}, {1, 2, 4}}), (AxisList{{0, 1, 2}, {1, 2, 4}}));
}

TEST(AxisList, CommonPrefix) {
  AxisRef x{0, 1, 8}, y{1, 1, 2}, z{2, 1, 2}, xMajor{0, 1, 2};
  struct {
    AxisList a, b, expected;
  } table[] = {
      {{x, y}, {x, z}, {x}},
      {{x}, {xMajor}, {xMajor}},
      {{xMajor}, {x, y}, {xMajor}},
      {{y}, {x}, {}},
      {{}, {x}, {}},
      {{x, y}, {x, y}, {x, y}},
  };
  for (auto &row : table)
    EXPECT_EQ(commonPrefix(row.a, row.b), row.expected);
  EXPECT_TRUE(isPrefix({xMajor}, {x, y}));
  EXPECT_TRUE(isPrefix({}, {x}));
  EXPECT_FALSE(isPrefix({x}, {xMajor}));
  EXPECT_FALSE(isPrefix({y}, {x, y}));
  EXPECT_EQ(removePrefix({xMajor}, {x, y}), (AxisList{{0, 2, 4}, y}));
  EXPECT_EQ(removePrefix({x}, {x, y}), (AxisList{y}));
}

TEST(AxisList, SplitAt) {
  AxisRef x{0, 1, 4}, y{1, 1, 2};
  AxisList major, minor;
  ASSERT_TRUE(splitAt({x}, 2, major, minor));
  EXPECT_EQ(major, (AxisList{{0, 1, 2}}));
  EXPECT_EQ(minor, (AxisList{{0, 2, 2}}));
  ASSERT_TRUE(splitAt({x, y}, 4, major, minor));
  EXPECT_EQ(major, (AxisList{x}));
  EXPECT_EQ(minor, (AxisList{y}));
  ASSERT_TRUE(splitAt({x, y}, 8, major, minor));
  EXPECT_EQ(major, (AxisList{x, y}));
  ASSERT_TRUE(splitAt({x}, 1, major, minor));
  EXPECT_TRUE(major.empty());
  EXPECT_FALSE(splitAt({x}, 3, major, minor));
  EXPECT_FALSE(splitAt({x}, 8, major, minor)) << "there are only 4 values";
  EXPECT_FALSE(splitAt({}, 2, major, minor));
}

TEST(AxisList, OverlapsAny) {
  AxisList axes{{0, 1, 2}, {1, 1, 4}};
  EXPECT_TRUE(overlapsAny(axes, {0, 1, 8}));
  EXPECT_FALSE(overlapsAny(axes, {0, 2, 4}));
  EXPECT_TRUE(overlapsAny(axes, {1, 2, 2}));
  EXPECT_FALSE(overlapsAny({}, {0, 1, 8}));
  EXPECT_TRUE(overlapsAny({{0, 1, 1}}, {0, 1, 1})) << "an axis of extent 1 is used once, too";
}

TEST(AxisList, DeviceGroups) {
  Mesh mesh = makeMesh({2, 4});
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(deviceGroups(mesh, {whole(mesh, 1)}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(deviceGroups(mesh, {whole(mesh, 0)}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(deviceGroups(mesh, {whole(mesh, 1), whole(mesh, 0)}),
            (Groups{{0, 4, 1, 5, 2, 6, 3, 7}}));
  EXPECT_EQ(deviceGroups(mesh, {{1, 2, 2}}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(deviceGroups(mesh, {{1, 1, 2}}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(deviceGroups(makeMesh({3}), {}), (Groups{{0}, {1}, {2}}));
}

TEST(AxisList, Text) {
  Mesh mesh = makeMesh({2, 4});
  EXPECT_EQ(toString(mesh, {whole(mesh, 0), {1, 2, 2}}), "[\"a\", \"b\":(2)2]");
}
