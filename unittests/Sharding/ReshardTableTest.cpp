//===- ReshardTableTest.cpp - The table against the planner ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardTable.h"

#include "Fixtures.h"

#include <gtest/gtest.h>

#include <random>

using namespace tessera::sharding;

namespace {

/// All shardings with each axis whole, partial or cutting a dimension, in mesh order.
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

/// Compares times of reshards of a matrix. The table may only lack exchanges: its times are at most
/// `slowest` times the planner's, and equal in at least `sameOfTen` of 10 cases.
void expectPlannersTimes(const Topology &topology, double slowest, int64_t sameOfTen) {
  Mesh mesh = makeMesh({2, 4});
  ReshardPlanner planner(Objective::time, topology);
  std::vector<int64_t> shape{1024, 2048};
  ReshardTable table(mesh, shape, 4, planner);
  int64_t equal = 0, pairs = 0;
  for (const TensorSharding &source : allShardings(mesh, 2))
    for (const TensorSharding &target : allShardings(mesh, 2)) {
      if (target.isPartial())
        continue; // the planner reduces before it creates contributions; the table may be faster
      double planned = planner.plan({mesh, shape, 4, source, target}).seconds;
      double seconds = table.seconds(source, target);
      // Never faster than the plan, and rarely slower: if an exchange replaces two collectives.
      EXPECT_GE(seconds, planned * (1 - 1e-9))
          << toString(mesh, source) << " to " << toString(mesh, target);
      EXPECT_LE(seconds, planned * slowest)
          << toString(mesh, source) << " to " << toString(mesh, target);
      equal += seconds <= planned * (1 + 1e-9);
      ++pairs;
    }
  EXPECT_GE(equal, pairs * sameOfTen / 10);
}

TEST(ReshardTable, TimesOfChainsEqualThePlanner) {
  expectPlannersTimes(Topology(), 2.5, 7);
}

TEST(ReshardTable, TimesOfCopiesEqualThePlanner) {
  Topology topology;
  topology.algorithms = {Algorithm::shared_memory};
  topology.links[0].link = {1e-6, 2e9, CopyRates{3e9, 1e9, 2e9, 7e8}};
  // An exchange copies the result once; a chain that replaces it may gather whole rows on the way.
  expectPlannersTimes(topology, 8, 6);
}

TEST(ReshardTable, UnevenPartsOfPartsAreSent) {
  Topology topology;
  ReshardPlanner planner(Objective::time, topology);
  for (const std::vector<int64_t> &extents : {std::vector<int64_t>{2, 2, 2}, {2, 4}, {3, 2}})
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{12, 33}, {13, 8}, {5, 7}}) {
      Mesh mesh = makeMesh(extents);
      ReshardTable table(mesh, shape, 4, planner);
      for (const TensorSharding &source : allShardings(mesh, 2))
        for (const TensorSharding &target : allShardings(mesh, 2)) {
          bool fits = true; // every part has an index
          for (size_t d = 0; d < shape.size(); ++d)
            fits &= std::max(sizeOf(source.dims[d]), sizeOf(target.dims[d])) <= shape[d];
          if (!fits || source.isPartial() || target.isPartial())
            continue;
          double planned = planner.plan({mesh, shape, 4, source, target}).seconds;
          double seconds = table.seconds(source, target);
          // Communication is never free, and free reshards never communicate.
          EXPECT_EQ(planned == 0, seconds == 0)
              << toString(mesh, source) << " to " << toString(mesh, target) << " of " << shape[0]
              << "x" << shape[1];
          EXPECT_GE(seconds, planned * 0.5)
              << toString(mesh, source) << " to " << toString(mesh, target) << " of " << shape[0]
              << "x" << shape[1];
          EXPECT_LE(seconds, planned * 4)
              << toString(mesh, source) << " to " << toString(mesh, target) << " of " << shape[0]
              << "x" << shape[1];
        }
    }
}

/// A sharding of a matrix by axes of its rows and of its columns.
TensorSharding cut(const Mesh &mesh, const std::vector<int64_t> &rows,
                   const std::vector<int64_t> &columns) {
  TensorSharding sharding = TensorSharding::replicated(2);
  for (int64_t axis : rows)
    sharding.dims[0].push_back(AxisRef::full(mesh, axis));
  for (int64_t axis : columns)
    sharding.dims[1].push_back(AxisRef::full(mesh, axis));
  return sharding;
}

TEST(ReshardTable, MergesAxesOnMeshesOfManyAxes) {
  Mesh many = makeMesh({2, 2, 2, 2, 2, 2, 2, 2}), few = makeMesh({16, 16});
  ReshardPlanner planner;
  ReshardTable table(many, {1024, 1024}, 4, planner), joined(few, {1024, 1024}, 4, planner);
  // Four axes that stay neighbors are merged into one of 16.
  EXPECT_DOUBLE_EQ(
      table.seconds(cut(many, {0, 1, 2, 3}, {4, 5, 6, 7}), cut(many, {4, 5, 6, 7}, {0, 1, 2, 3})),
      joined.seconds(cut(few, {0}, {1}), cut(few, {1}, {0})));
  // A common prefix leaves a smaller tensor.
  ReshardTable part(few, {1024 / 16, 1024}, 4, planner);
  EXPECT_DOUBLE_EQ(
      table.seconds(cut(many, {0, 1, 2, 3, 4, 5, 6, 7}, {}), cut(many, {0, 1, 2, 3}, {})),
      part.seconds(cut(few, {1}, {}), cut(few, {}, {})));
  // Equal axes may be renamed.
  EXPECT_DOUBLE_EQ(table.seconds(cut(many, {0, 5}, {2}), cut(many, {2}, {5})),
                   table.seconds(cut(many, {7, 1}, {4}), cut(many, {4}, {1})));
  // An order that no axes share has a finite time: at most that of gathering everything.
  TensorSharding mixed = cut(many, {0, 1, 2, 3, 4, 5, 6, 7}, {});
  double turned = table.seconds(mixed, cut(many, {7, 5, 3, 1, 6, 4, 2, 0}, {}));
  EXPECT_GT(turned, 0);
  EXPECT_LE(turned, table.seconds(mixed, cut(many, {}, {})) * (1 + 1e-9));
}

TEST(ReshardTable, HurriedTimesAreThoseOfAGenericChain) {
  Mesh mesh = makeMesh({2, 4});
  ReshardPlanner planner;
  ReshardTable table(mesh, {1024, 2048}, 4, planner);
  for (const TensorSharding &source : allShardings(mesh, 2))
    for (const TensorSharding &target : allShardings(mesh, 2))
      EXPECT_GE(table.seconds(source, target, /*isApproximate=*/true),
                table.seconds(source, target) * (1 - 1e-9))
          << toString(mesh, source) << " to " << toString(mesh, target);
}

TEST(ReshardTable, UsesThePlannerForPartsOfAxes) {
  Mesh mesh = makeMesh({2, 4});
  ReshardPlanner planner;
  ReshardTable table(mesh, {64, 64}, 4, planner);
  TensorSharding half = TensorSharding::replicated(2);
  half.dims[0] = {{1, 1, 2}};
  TensorSharding whole = TensorSharding::replicated(2);
  EXPECT_EQ(table.seconds(half, whole), planner.plan({mesh, {64, 64}, 4, half, whole}).seconds);
  EXPECT_GT(table.seconds(half, whole), 0);
}

/// One form stands for reshards that differ in the order of dimensions, in those that are not cut,
/// in axes that are alike and, without latencies, in bytes.
TEST(ReshardTable, PricesOfPartsOfAxesEqualThePlanner) {
  Topology latent, linear;
  for (LinkClass &link : linear.links)
    link.link.alpha = 0;
  Mesh mesh = makeMesh({4, 4, 2});
  std::vector<AxisRef> parts{{0, 1, 2}, {0, 2, 2}, {1, 1, 2}, AxisRef::full(mesh, 2)};
  for (const Topology &topology : {latent, linear}) {
    ReshardPlanner planner(Objective::time, topology);
    std::mt19937 random(5);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    for (int round = 0; round < 400; ++round) {
      std::vector<int64_t> shape;
      for (int d = 0; d < 4; ++d)
        shape.push_back(int64_t(32) << below(5));
      auto sharding = [&]() {
        TensorSharding made = TensorSharding::replicated(4);
        for (const AxisRef &part : parts)
          if (size_t d = below(6); d < 4)
            made.dims[d].push_back(part);
        return canonical(made);
      };
      TensorSharding source = sharding(), target = sharding();
      ReshardTable table(mesh, shape, 4, planner);
      double planned = planner.plan({mesh, shape, 4, source, target}).seconds;
      auto isFull = [&](const AxisRef &axis) { return axis.isFull(mesh); };
      AxisList axes = source.usedAxes(), others = target.usedAxes();
      axes.insert(axes.end(), others.begin(), others.end());
      if (std::all_of(axes.begin(), axes.end(), isFull))
        continue; // not by the planner
      EXPECT_NEAR(table.seconds(source, target), planned, planned * 1e-6)
          << toString(mesh, source) << " to " << toString(mesh, target);
    }
  }
}

} // namespace
