//===- ReshardGraphTest.cpp - Moves against boxes -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardGraph.h"

#include "Fixtures.h"
#include "tessera/Sharding/ReshardTable.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

using namespace tessera::sharding;

namespace {

/// Calls `visit` with every move without a target, for matrices of several shapes, even and uneven.
template <typename Visit> void forEachMove(const Visit &visit) {
  Mesh mesh = makeMesh({2, 3});
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{12, 36}, {5, 7}, {13, 6}, {3, 2}, {1, 11}}) {
    ReshardGraph graph(mesh, shape, 4);
    ReshardWalk walk;
    walk.axes = {AxisRef::full(mesh, 0), AxisRef::full(mesh, 1)};
    std::set<TensorSharding> seen{TensorSharding::replicated(2)};
    std::vector<TensorSharding> queue(seen.begin(), seen.end());
    for (size_t next = 0; next < queue.size(); ++next)
      graph.forEachMove(TensorSharding(queue[next]), walk, [&](Move move) {
        if (seen.insert(move.target).second)
          queue.push_back(move.target);
        visit(mesh, shape, graph, move);
      });
  }
}

TEST(ReshardGraph, ClosedFormTrafficEqualsThatOfLayouts) {
  int64_t moves = 0;
  forEachMove([&](const Mesh &mesh, const std::vector<int64_t> &shape, const ReshardGraph &graph,
                  const Move &move) {
    Traffic least = graph.leastTrafficOf(move);
    Traffic exact =
        trafficOf(move.kind, move.axes.empty() ? mesh.numDevices() : sizeOf(move.axes), 4, mesh,
                  makeLayout(move.source, shape), mesh, makeLayout(move.target, shape));
    std::string what = std::string(toString(move.kind)) + " " + toString(mesh, move.source) +
                       " to " + toString(mesh, move.target);
    ++moves;
    if (move.kind == CollectiveKind::exchange) {
      EXPECT_GT(least.wireBytes, 0) << what;
      EXPECT_LE(least.wireBytes, exact.wireBytes) << what;
      return;
    }
    EXPECT_EQ(least.bytes, exact.bytes) << what;
    EXPECT_EQ(least.wireBytes, exact.wireBytes) << what;
    EXPECT_EQ(least.count, exact.count) << what;
    EXPECT_EQ(least.messages, exact.messages) << what;
    EXPECT_EQ(least.written.bytes, exact.written.bytes) << what;
    EXPECT_EQ(least.added.strided, exact.added.strided) << what;
  });
  EXPECT_GT(moves, 500);
}

/// Whether every device of a move finds its elements within its group, by boxes.
bool staysInGroup(const Mesh &mesh, const std::vector<int64_t> &shape, const Move &move) {
  Layout from = makeLayout(move.source.withoutPartial(), shape);
  Layout to = makeLayout(move.target.withoutPartial(), shape);
  for (const std::vector<int64_t> &group : deviceGroups(mesh, move.axes))
    for (int64_t device : group) {
      std::vector<Box> missing{to.valid(mesh, mesh.coordinate(device))};
      for (int64_t other : group) {
        std::vector<Box> rest;
        for (const Box &box : missing)
          for (const Box &piece : subtract(box, from.valid(mesh, mesh.coordinate(other))))
            rest.push_back(piece);
        missing = rest;
      }
      for (const Box &box : missing)
        if (!box.empty())
          return false;
    }
  return true;
}

TEST(ReshardGraph, MovesFindTheirElementsInTheGroup) {
  forEachMove([&](const Mesh &mesh, const std::vector<int64_t> &shape, const ReshardGraph &graph,
                  const Move &move) {
    if (move.makesPartial)
      return;
    Move local = move;
    if (move.kind == CollectiveKind::slice)
      local.axes.clear(); // no other device participates
    if (move.kind == CollectiveKind::exchange)
      // Among the devices that differ in the added or removed axes.
      for (size_t d = 0; d < shape.size(); ++d)
        for (const AxisRef &axis : move.source.dims[d])
          if (!overlapsAny(move.target.dims[d], axis))
            local.axes.push_back(axis);
    EXPECT_EQ(staysInGroup(mesh, shape, local), move.kind != CollectiveKind::exchange)
        << toString(move.kind) << " " << toString(mesh, move.source) << " to "
        << toString(mesh, move.target) << " of " << shape[0] << "x" << shape[1];
  });
}

TEST(ReshardCache, HasOnePlannerPerMachine) {
  ReshardCache cache;
  Topology slow;
  slow.links[0].link.rate /= 2;
  ReshardPlanner &planner = cache.planner(Objective::time, Topology());
  EXPECT_EQ(&cache.planner(Objective::time, Topology()), &planner);
  EXPECT_NE(&cache.planner(Objective::bytes, Topology()), &planner);
  EXPECT_NE(&cache.planner(Objective::time, slow), &planner);
}

TEST(ReshardCache, DistinguishesMeshesOfOneName) {
  ReshardPlanner planner;
  Mesh two = makeMesh({2}), four = makeMesh({4});
  TensorSharding cut = TensorSharding::replicated(1);
  auto bytes = [&](const Mesh &mesh) {
    cut.dims[0] = {AxisRef::full(mesh, 0)};
    return planner.plan({mesh, {64}, 4, cut, TensorSharding::replicated(1)}).traffic.wireBytes;
  };
  EXPECT_EQ(bytes(two), 128);
  EXPECT_EQ(bytes(four), 192);
  EXPECT_NE(&planner.table(two, {64}, 4), &planner.table(four, {64}, 4));
  EXPECT_EQ(&planner.table(two, {64}, 4), &planner.table(Mesh(two), {64}, 4));
}

TEST(ReshardCache, IsThreadSafe) {
  ReshardCache cache;
  Mesh mesh = makeMesh({2, 4});
  std::vector<double> seconds(4);
  auto ask = [&](size_t thread) {
    ReshardPlanner &planner = cache.planner(Objective::time, Topology());
    TensorSharding rows = TensorSharding::replicated(2), columns = rows;
    rows.dims[0] = {AxisRef::full(mesh, 0)};
    columns.dims[1] = {AxisRef::full(mesh, 1)};
    for (int64_t extent = 8; extent <= 64; extent += 8) {
      std::vector<int64_t> shape{extent, 64};
      seconds[thread] += planner.plan({mesh, shape, 4, rows, columns}).seconds;
      seconds[thread] += planner.table(mesh, shape, 4).seconds(rows, columns);
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < seconds.size(); ++thread)
    threads.emplace_back(ask, thread);
  for (std::thread &thread : threads)
    thread.join();
  for (double each : seconds)
    EXPECT_EQ(each, seconds.front());
}

} // namespace
