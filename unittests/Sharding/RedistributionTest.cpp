//===- RedistributionTest.cpp - Moves, against an obvious model -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "../../lib/Sharding/GridTraffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

using namespace tessera::sharding;

/// Calls `visit` with every index of a box.
static void forEachIndex(const Box &box, const std::function<void(const Shape &)> &visit) {
  if (box.empty())
    return;
  Shape index = box.offset;
  while (true) {
    visit(index);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == box.offset[d - 1] + box.size[d - 1]) {
      index[d - 1] = box.offset[d - 1];
      --d;
    }
    if (d == 0)
      return;
  }
}

/// The value of every element on every device as a multiset of contributing terms: a source device
/// that is not partial contributes the element itself (term -1), a partial one its own share,
/// identified by its index over the partial axes.
struct Model {
  std::vector<std::map<Shape, std::multiset<int64_t>>> devices;
};

static Model sourceModel(const Mesh &mesh, const Layout &layout) {
  Model model{std::vector<std::map<Shape, std::multiset<int64_t>>>(mesh.numDevices())};
  AxisList partial;
  for (const PartialAxis &part : layout.partial)
    partial.push_back(part.axis);
  for (int64_t p = 0; p < mesh.numDevices(); ++p) {
    Shape coordinate = mesh.coordinate(p);
    int64_t term = partial.empty() ? -1 : linearIndex(mesh, partial, coordinate);
    forEachIndex(layout.valid(mesh, coordinate),
                 [&](const Shape &index) { model.devices[p][index] = {term}; });
  }
  return model;
}

static Model apply(const Redistribution &move, const Model &source, int64_t targets) {
  Model result{std::vector<std::map<Shape, std::multiset<int64_t>>>(targets)};
  for (const Piece &piece : move.pieces)
    forEachIndex(piece.box, [&](const Shape &index) {
      std::multiset<int64_t> value;
      for (int64_t s : piece.sources) {
        auto it = source.devices[s].find(index);
        ASSERT_NE(it, source.devices[s].end()) << "a source without the element";
        value.insert(it->second.begin(), it->second.end());
      }
      for (int64_t t : piece.targets)
        EXPECT_TRUE(result.devices[t].emplace(index, value).second) << "written twice";
    });
  for (auto &[position, box] : move.fills)
    forEachIndex(box, [&, position = position](const Shape &index) {
      EXPECT_TRUE(result.devices[position].emplace(index, std::multiset<int64_t>{}).second);
    });
  return result;
}

/// Sums the shares of the partial devices of a result: the global value by element.
static std::map<Shape, std::multiset<int64_t>> total(const Mesh &mesh, const Layout &layout,
                                                     const Model &model, int64_t device) {
  AxisList partial;
  for (const PartialAxis &part : layout.partial)
    partial.push_back(part.axis);
  std::map<Shape, std::multiset<int64_t>> result;
  for (auto &group : deviceGroups(mesh, partial))
    if (std::find(group.begin(), group.end(), device) != group.end())
      for (int64_t member : group)
        for (auto &[index, terms] : model.devices[member])
          result[index].insert(terms.begin(), terms.end());
  return result;
}

static void check(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                  const Layout &target) {
  Redistribution move = redistribute(sourceMesh, source, targetMesh, target);
  Model before = sourceModel(sourceMesh, source);
  Model after = apply(move, before, targetMesh.numDevices());
  int64_t contributions = 1;
  for (const PartialAxis &part : source.partial)
    contributions *= part.axis.size;
  std::multiset<int64_t> expected;
  if (source.partial.empty())
    expected = {-1};
  else
    for (int64_t term = 0; term < contributions; ++term)
      expected.insert(term);
  for (int64_t p = 0; p < targetMesh.numDevices(); ++p) {
    Box wanted = target.valid(targetMesh, targetMesh.coordinate(p));
    EXPECT_EQ(static_cast<int64_t>(after.devices[p].size()), wanted.numElements());
    auto whole = total(targetMesh, target, after, p);
    forEachIndex(wanted, [&](const Shape &index) { EXPECT_EQ(whole[index], expected); });
  }
}

TEST(Redistribution, NamedCollectives) {
  Mesh mesh = makeMesh({2, 4});
  AxisRef a = whole(mesh, 0), b = whole(mesh, 1);
  PartialAxis sumB{b, ReduceKind::sum}, sumA{a, ReduceKind::sum};
  std::vector<std::pair<Layout, Layout>> table;
  for (int64_t n : {8, 7, 5, 3, 1}) {
    Layout full = layoutOf({n, 3}, {{}, {}});
    Layout rows = layoutOf({n, 3}, {{b}, {}});
    Layout both = layoutOf({n, 3}, {{a, b}, {}});
    Layout swapped = layoutOf({n, 3}, {{b, a}, {}});
    Layout grid = layoutOf({n, 3}, {{a}, {b}});
    Layout partial = layoutOf({n, 3}, {{}, {}}, {sumB});
    Layout partialRows = layoutOf({n, 3}, {{a}, {}}, {sumB});
    Layout partialBoth = layoutOf({n, 3}, {{}, {}}, {sumA, sumB});
    Layout halo = rows;
    halo.dims[0].offset = -1;
    halo.dims[0].length += 2;
    Layout root = full;
    root.dims[0] = {{b}, n, 0, n};
    table.insert(table.end(), {{full, rows},           {rows, full},        {rows, both},
                               {both, swapped},        {swapped, grid},     {grid, rows},
                               {rows, halo},           {rows, root},        {root, rows},
                               {root, full},           {partial, full},     {partial, rows},
                               {partial, root},        {partialRows, both}, {partialRows, partial},
                               {partialBoth, partial}, {partialBoth, full}, {full, partial},
                               {rows, partial},        {full, partialBoth}, {grid, partialRows}});
  }
  for (auto &[source, target] : table)
    check(mesh, source, mesh, target);
}

TEST(Redistribution, RandomPairs) {
  std::mt19937 random(7);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 400; ++round) {
    Mesh mesh = makeMesh({1 + pick(3), 1 + pick(3), 2 * (1 + pick(2))});
    Shape global{pick(8), 1 + pick(5)};
    auto randomLayout = [&] {
      TensorSharding sharding = TensorSharding::replicated(2);
      std::vector<AxisRef> axes{
          whole(mesh, 0), whole(mesh, 1), {2, 1, 2}, {2, 2, mesh.shape[2] / 2}};
      std::shuffle(axes.begin(), axes.end(), random);
      for (const AxisRef &axis : axes) {
        int64_t place = pick(4);
        if (place < 2)
          sharding.dims[place].push_back(axis);
        else if (place == 2 && axis.size > 1)
          sharding.partial.push_back({axis, ReduceKind::sum});
      }
      return makeLayout(sharding, global);
    };
    check(mesh, randomLayout(), mesh, randomLayout());
    if (HasFailure()) {
      ADD_FAILURE() << "round " << round;
      return;
    }
  }
}

// Slices of a mesh along axes that no layout uses behave identically.
TEST(Redistribution, IdleAxesRepeatAMove) {
  std::mt19937 random(11);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = makeMesh({1 + pick(3), 2, 1 + pick(3)});
    Shape global{1 + pick(9), 1 + pick(5)};
    int64_t idle = pick(3);
    auto randomLayout = [&] {
      TensorSharding sharding = TensorSharding::replicated(2);
      for (int64_t axis = 0; axis < 3; ++axis)
        if (int64_t dim = pick(3); axis != idle && dim < 2)
          sharding.dims[dim].push_back(whole(mesh, axis));
      return makeLayout(sharding, global);
    };
    Layout source = randomLayout(), target = randomLayout();
    MeshLayouts used = withoutIdleAxes(mesh, {&source, &target});
    EXPECT_LT(used.mesh.numAxes(), mesh.numAxes());
    ExchangeTraffic all = exchangeTraffic(mesh, mesh, redistribute(mesh, source, mesh, target));
    ExchangeTraffic few = exchangeTraffic(
        used.mesh, used.mesh, redistribute(used.mesh, used.layouts[0], used.mesh, used.layouts[1]));
    int64_t copies = mesh.numDevices() / used.mesh.numDevices();
    for (auto [whole, part] : {std::pair(all.received, few.received), {all.sent, few.sent}}) {
      std::vector<int64_t> repeated;
      for (int64_t copy = 0; copy < copies; ++copy)
        repeated.insert(repeated.end(), part.begin(), part.end());
      std::sort(whole.begin(), whole.end());
      std::sort(repeated.begin(), repeated.end());
      EXPECT_EQ(whole, repeated) << "round " << round;
    }
  }
}

// The traffic of an exchange without its boxes.
TEST(Redistribution, TrafficOfAGrid) {
  std::mt19937 random(13);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  int counted = 0;
  for (int round = 0; round < 3000; ++round) {
    Mesh mesh = makeMesh({1 + pick(3), 2 + pick(2), 2 * (1 + pick(3))});
    Shape global{1 + pick(20), 1 + pick(9), 1 + pick(4)};
    auto randomLayout = [&] {
      TensorSharding sharding = TensorSharding::replicated(3);
      std::vector<AxisRef> axes{
          whole(mesh, 0), whole(mesh, 1), {2, 1, 2}, {2, 2, mesh.shape[2] / 2}};
      std::shuffle(axes.begin(), axes.end(), random);
      for (const AxisRef &axis : axes)
        if (int64_t dim = pick(4); dim < 3)
          sharding.dims[dim].push_back(axis);
      for (AxisList &axes : sharding.dims)
        axes = mergeAxes(axes);
      return sharding;
    };
    TensorSharding to = randomLayout();
    if (pick(3) == 0) // a halo
      for (int64_t d = 0; d < 3; ++d)
        if (!to.dims[d].empty() && pick(2) == 0) {
          int64_t chunk = ceilDiv(global[d], sizeOf(to.dims[d]));
          to.windows.push_back({d, chunk, -pick(3), chunk + pick(4)});
        }
    if (to.windows.empty() && pick(3) == 0) // a selection
      for (int64_t d = 0; d < 3; ++d)
        if (pick(2) == 0) {
          int64_t begin = pick(global[d]), stride = 1 + pick(2);
          int64_t count = 1 + pick((global[d] - 1 - begin) / stride + 1);
          int64_t chunk = ceilDiv(count, sizeOf(to.dims[d]));
          to.windows.push_back({d, chunk, 0, chunk, 1, begin, stride, count});
        }
    Layout source = makeLayout(randomLayout(), global), target = makeLayout(to, global);
    std::optional<ExchangeTraffic> few = gridTraffic(mesh, source, target);
    if (!few)
      continue;
    ++counted;
    ExchangeTraffic all = exchangeTraffic(mesh, mesh, redistribute(mesh, source, mesh, target));
    EXPECT_EQ(few->received, all.received) << "round " << round;
    EXPECT_EQ(few->sent, all.sent) << "round " << round;
    EXPECT_EQ(few->messages, all.messages) << "round " << round;
    if (HasFailure())
      return;
  }
  EXPECT_GT(counted, 2000);
}

TEST(Redistribution, AMillionDevices) {
  Mesh mesh = makeMesh({1 << 17, 8});
  Layout rows = layoutOf({1 << 17, 64}, {{whole(mesh, 1)}, {}});
  Layout columns = layoutOf({1 << 17, 64}, {{}, {whole(mesh, 1)}});
  EXPECT_EQ(receiveBound(mesh, rows, mesh, columns), (1 << 17) * 7);
}

TEST(Redistribution, BetweenMeshes) {
  Mesh first = makeMesh({2, 2}), second = makeMesh({3}, 4), overlapping = makeMesh({3}, 2);
  Layout rows = layoutOf({5, 2}, {{whole(first, 0)}, {whole(first, 1)}});
  Layout partial = layoutOf({5, 2}, {{whole(first, 0)}, {}}, {{whole(first, 1), ReduceKind::sum}});
  for (const Mesh &target : {second, overlapping})
    for (const Layout &layout :
         {layoutOf({5, 2}, {{whole(target, 0)}, {}}), layoutOf({5, 2}, {{}, {}}),
          layoutOf({5, 2}, {{}, {}}, {{whole(target, 0), ReduceKind::sum}})}) {
      check(first, rows, target, layout);
      check(first, partial, target, layout);
    }
}

TEST(Redistribution, AverageScales) {
  Mesh mesh = makeMesh({4});
  PartialAxis avg{whole(mesh, 0), ReduceKind::avg};
  Layout full = layoutOf({4}, {{}}), rows = layoutOf({4}, {{whole(mesh, 0)}});
  Layout partial = layoutOf({4}, {{}}, {avg});
  EXPECT_DOUBLE_EQ(redistribute(mesh, partial, mesh, full).scale, 0.25);
  EXPECT_DOUBLE_EQ(redistribute(mesh, rows, mesh, partial).scale, 4.0);
  Redistribution made = redistribute(mesh, full, mesh, partial);
  EXPECT_DOUBLE_EQ(made.scale, 1.0);
  EXPECT_TRUE(made.fills.empty()) << "every device keeps the value";
}

TEST(Redistribution, SourcesAscendAndReplicasShareTheLoad) {
  Mesh mesh = makeMesh({2, 3});
  Layout partial = layoutOf({6}, {{}}, {{whole(mesh, 1), ReduceKind::sum}});
  Redistribution move = redistribute(mesh, partial, mesh, layoutOf({6}, {{}}));
  ASSERT_EQ(move.pieces.size(), 2u) << "one reduction in each replica";
  for (const Piece &piece : move.pieces) {
    EXPECT_TRUE(std::is_sorted(piece.sources.begin(), piece.sources.end()));
    EXPECT_EQ(piece.sources, piece.targets);
  }
}

TEST(Redistribution, OwnPartStays) {
  Mesh mesh = makeMesh({4});
  Layout rows = layoutOf({8}, {{whole(mesh, 0)}}), full = layoutOf({8}, {{}});
  Redistribution gather = redistribute(mesh, rows, mesh, full);
  ExchangeTraffic traffic = exchangeTraffic(mesh, mesh, gather);
  EXPECT_EQ(traffic.received, (Shape{6, 6, 6, 6}));
  EXPECT_EQ(receiveBound(mesh, rows, mesh, full), 6);
  EXPECT_EQ(receiveBound(mesh, full, mesh, rows), 0);
}
