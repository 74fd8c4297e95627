//===- LayoutTest.cpp - Boxes and layouts ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

TEST(Box, Basics) {
  EXPECT_EQ((Box{{}, {}}).numElements(), 1) << "rank 0 holds one element";
  EXPECT_TRUE((Box{{3}, {0}}).empty());
  Box a{{0, 0}, {4, 4}}, b{{2, 3}, {4, 4}};
  EXPECT_EQ(intersect(a, b), (Box{{2, 3}, {2, 1}}));
  EXPECT_TRUE(intersect(a, Box{{9, 9}, {1, 1}}).empty());
  EXPECT_TRUE(a.contains(Box{{1, 1}, {2, 2}}));
  EXPECT_FALSE(a.contains(b));
  EXPECT_TRUE(a.contains(Box{{7, 7}, {0, 3}}));
}

TEST(Box, SubtractCoversExactlyTheRest) {
  Box box{{0, 0, 0}, {4, 5, 3}};
  struct {
    Box hole;
    size_t pieces;
  } table[] = {
      {{{1, 1, 1}, {2, 2, 1}}, 6}, {{{0, 0, 0}, {4, 5, 3}}, 0}, {{{0, 0, 0}, {2, 5, 3}}, 1},
      {{{9, 9, 9}, {1, 1, 1}}, 1}, {{{3, 4, 2}, {5, 5, 5}}, 3}, {{{1, 0, 0}, {0, 5, 3}}, 1},
  };
  for (auto &row : table) {
    std::vector<Box> rest = subtract(box, row.hole);
    EXPECT_EQ(rest.size(), row.pieces);
    int64_t elements = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      elements += rest[i].numElements();
      EXPECT_TRUE(box.contains(rest[i]));
      EXPECT_TRUE(intersect(rest[i], row.hole).empty());
      for (size_t j = 0; j < i; ++j)
        EXPECT_TRUE(intersect(rest[i], rest[j]).empty());
    }
    EXPECT_EQ(elements, box.numElements() - intersect(box, row.hole).numElements());
  }
}

/// Valid extents along one dimension, by device.
static Shape extents(const Mesh &mesh, const Layout &layout) {
  Shape result;
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    result.push_back(layout.valid(mesh, mesh.coordinate(position)).size[0]);
  return result;
}

TEST(Layout, OneCeilingSplit) {
  Mesh line = makeMesh({4}), grid = makeMesh({2, 2});
  EXPECT_EQ(extents(line, layoutOf({7}, {{whole(line, 0)}})), (Shape{2, 2, 2, 1}));
  EXPECT_EQ(extents(line, layoutOf({5}, {{whole(line, 0)}})), (Shape{2, 2, 1, 0}));
  EXPECT_EQ(extents(line, layoutOf({1}, {{whole(line, 0)}})), (Shape{1, 0, 0, 0}));
  EXPECT_EQ(extents(grid, layoutOf({5}, {{whole(grid, 0), whole(grid, 1)}})), (Shape{2, 2, 1, 0}));
  EXPECT_EQ(extents(grid, layoutOf({5}, {{whole(grid, 1), whole(grid, 0)}})), (Shape{2, 1, 2, 0}));
  EXPECT_EQ(localShape({{{whole(line, 0)}, {}}, {}, {}, {}}, {7, 3}), (Shape{2, 3}));
}

TEST(Layout, HaloIsASpanBeyondTheShard) {
  Mesh mesh = makeMesh({4});
  Layout halo{{7}, {{{whole(mesh, 0)}, 2, -1, 4}}, {}};
  EXPECT_EQ(halo.span(mesh, {0}), (Box{{-1}, {4}}));
  EXPECT_EQ(halo.valid(mesh, {0}), (Box{{0}, {3}}));
  EXPECT_EQ(halo.valid(mesh, {1}), (Box{{1}, {4}}));
  EXPECT_EQ(halo.valid(mesh, {3}), (Box{{5}, {2}}));
  EXPECT_EQ(halo.localShape(), (Shape{4}));
  EXPECT_EQ(halo.maxValidElements(), 4);
}

TEST(Layout, WindowsOfASharding) {
  Mesh mesh = makeMesh({4});
  TensorSharding sharding{{{whole(mesh, 0)}, {}}, {}, {}, {{0, 2, -1, 4}}};
  Layout layout = makeLayout(sharding, {7, 3});
  EXPECT_EQ(layout.dims[0], (DimLayout{{whole(mesh, 0)}, 2, -1, 4}));
  EXPECT_EQ(layout.localShape(), (Shape{4, 3}));
  EXPECT_FALSE((TensorSharding{{{}}, {}, {}, {{0, 2, -1, 4}}}.isReplicated()));
}

TEST(Layout, MaxValidElementsIsTheLargestDevice) {
  Mesh mesh = makeMesh({3, 2});
  for (int64_t rows = 0; rows < 9; ++rows)
    for (int64_t columns = 1; columns < 6; ++columns) {
      Layout layout = layoutOf({rows, columns}, {{whole(mesh, 0)}, {whole(mesh, 1)}});
      int64_t most = 0;
      for (int64_t position = 0; position < 6; ++position)
        most = std::max(most, layout.valid(mesh, mesh.coordinate(position)).numElements());
      EXPECT_EQ(layout.maxValidElements(), most);
    }
}

TEST(Layout, RootHoldsAllElements) {
  // A step of the whole extent assigns everything to coordinate 0: the layout after gather and
  // reduce.
  Mesh mesh = makeMesh({3});
  Layout root{{5}, {{{whole(mesh, 0)}, 5, 0, 5}}, {}};
  EXPECT_EQ(extents(mesh, root), (Shape{5, 0, 0}));
}
