//===- ReshardPlannerTest.cpp - Where plans lead, and their bounds --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Sharding/ReshardChain.h"

#include <gtest/gtest.h>

#include <random>

using namespace tessera::sharding;

namespace {

/// Random shardings over the axes of a mesh; partial only if `partials`.
struct Shardings {
  std::mt19937 random{11};

  int64_t pick(int64_t n) { return static_cast<int64_t>(random() % n); }
  TensorSharding next(const Mesh &mesh, bool partials) {
    TensorSharding sharding = TensorSharding::replicated(2);
    std::vector<int64_t> axes(mesh.numAxes());
    for (size_t i = 0; i < axes.size(); ++i)
      axes[i] = static_cast<int64_t>(i);
    std::shuffle(axes.begin(), axes.end(), random);
    for (int64_t axis : axes) {
      int64_t place = pick(partials ? 4 : 3);
      if (place < 2)
        sharding.dims[place].push_back(whole(mesh, axis));
      else if (place == 3)
        sharding.partial.push_back({whole(mesh, axis), ReduceKind::sum});
    }
    return canonical(sharding);
  }
};

} // namespace

TEST(ReshardPlanner, ChainsLeadFromSourceToTarget) {
  Shardings shardings;
  for (int round = 0; round < 300; ++round) {
    Mesh mesh = makeMesh({2, 1 + shardings.pick(3), 2});
    Shape shape{1 + shardings.pick(12), 1 + shardings.pick(12)};
    ReshardProblem problem{mesh, shape, 4, shardings.next(mesh, true), shardings.next(mesh, true)};
    for (Objective objective : {Objective::time, Objective::bytes}) {
      ReshardPlan plan = planReshard(problem, objective);
      TensorSharding at = problem.source;
      Traffic sum;
      for (const Move &move : plan.moves) {
        EXPECT_EQ(canonical(move.source), canonical(at));
        at = move.target;
        EXPECT_TRUE(leadsToTarget(move))
            << toString(move.kind) << ' ' << toString(mesh, move.source) << " -> "
            << toString(mesh, move.target);
        sum += trafficOf(problem, move);
        if (move.kind == CollectiveKind::slice)
          EXPECT_EQ(trafficOf(problem, move).count, 0);
      }
      // An empty plan may rename axes: those of extent 1, or of dimensions that one device holds
      // whole.
      Layout reached = makeLayout(at, shape), wanted = makeLayout(problem.target, shape);
      for (int64_t p = 0; p < mesh.numDevices(); ++p)
        EXPECT_EQ(reached.valid(mesh, mesh.coordinate(p)).size,
                  wanted.valid(mesh, mesh.coordinate(p)).size)
            << toString(mesh, problem.source) << " to " << toString(mesh, problem.target);
      EXPECT_EQ(sum.wireBytes, plan.traffic.wireBytes);
      EXPECT_EQ(sum.count, plan.traffic.count);
    }
    if (HasFailure()) {
      ADD_FAILURE() << "round " << round;
      return;
    }
  }
}

TEST(ReshardPlanner, NeverBelowTheReceiveBound) {
  Shardings shardings;
  for (int round = 0; round < 200; ++round) {
    Mesh mesh = makeMesh({2, 2, 2});
    Shape shape{16, 8}; // every cut is even, so that the formulas are exact
    ReshardProblem problem{mesh, shape, 4, shardings.next(mesh, false),
                           shardings.next(mesh, false)};
    int64_t bound = 4 * receiveBound(mesh, makeLayout(problem.source, shape), mesh,
                                     makeLayout(problem.target, shape));
    ReshardPlan leastBytes = planReshard(problem, Objective::bytes);
    ReshardPlan leastTime = planReshard(problem, Objective::time);
    EXPECT_EQ(leastBytes.traffic.wireBytes, bound)
        << toString(mesh, problem.source) << " to " << toString(mesh, problem.target);
    EXPECT_GE(leastTime.traffic.wireBytes, bound);
    EXPECT_LE(leastTime.seconds, leastBytes.seconds + 1e-12);
  }
}

TEST(ReshardPlanner, KnownPlans) {
  Mesh mesh = makeMesh({2, 4});
  AxisRef a = whole(mesh, 0), b = whole(mesh, 1);
  auto kindsOf = [&](TensorSharding source, TensorSharding target) {
    std::string text;
    for (const Move &move :
         planReshard({mesh, {64, 64}, 4, canonical(source), canonical(target)}).moves)
      text += (text.empty() ? "" : " ") + std::string(toString(move.kind));
    return text;
  };
  TensorSharding full{{{}, {}}, {}, {}, {}}, rows{{{b}, {}}, {}, {}, {}};
  TensorSharding columns{{{}, {b}}, {}, {}, {}};
  TensorSharding partial{{{}, {}}, {{b, ReduceKind::sum}}, {}, {}};
  TensorSharding both{{{}, {}}, {{a, ReduceKind::sum}, {b, ReduceKind::sum}}, {}, {}};
  EXPECT_EQ(kindsOf(full, full), "");
  EXPECT_EQ(kindsOf(full, rows), "slice");
  EXPECT_EQ(kindsOf(rows, full), "all_gather");
  EXPECT_EQ(kindsOf(rows, columns), "all_to_all");
  EXPECT_EQ(kindsOf(partial, full), "all_reduce");
  EXPECT_EQ(kindsOf(partial, rows), "reduce_scatter");
  EXPECT_EQ(kindsOf(both, full), "all_reduce") << "axes are merged into one group";
  EXPECT_EQ(kindsOf(full, partial), "slice");
}

namespace {

/// The kinds of the chain from parts of 4 devices to a window.
std::vector<CollectiveKind> kindsTo(std::vector<Window> windows, bool isFilled,
                                    std::vector<Window> held = {}) {
  Mesh mesh = makeMesh({4});
  AxisList axis{whole(mesh, 0)};
  ReshardPlanner planner;
  ReshardProblem problem{
      mesh, {8, 8}, 4, {{axis, {}}, {}, {}, held}, {{axis, {}}, {}, {}, windows}};
  std::vector<CollectiveKind> kinds;
  ReshardPlan chain = chainOf(problem, isFilled, planner);
  TensorSharding at = problem.source;
  for (const Move &move : chain.moves) {
    EXPECT_EQ(move.source, at);
    EXPECT_TRUE(leadsToTarget(move)) << toString(move.kind);
    kinds.push_back(move.kind);
    at = move.target;
  }
  EXPECT_EQ(at, problem.target);
  return kinds;
}

} // namespace

TEST(ReshardPlanner, ChainsToWindows) {
  using Kinds = std::vector<CollectiveKind>;
  Kinds halo{CollectiveKind::halo_exchange}, exchange{CollectiveKind::exchange};
  EXPECT_EQ(kindsTo({{0, 2, -1, 4}}, false), halo);
  EXPECT_EQ(kindsTo({{0, 2, -1, 4}}, true), halo);
  EXPECT_EQ(kindsTo({{0, 2, 1, 2}}, false), exchange);
  EXPECT_EQ(kindsTo({{0, 2, 0, 2}}, false), exchange); // sends nothing
  EXPECT_EQ(kindsTo({{0, 2, -1, 4}}, false, {{0, 2, -1, 4}}), Kinds{});
  EXPECT_EQ(kindsTo({{0, 2, -1, 4}}, true, {{0, 2, -1, 4}}), exchange); // fills
}
