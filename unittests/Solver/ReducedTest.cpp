//===- ReducedTest.cpp - Reduced problems and their costs -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduced.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace tessera::solver;

namespace {

void addEdge(Problem &problem, std::mt19937 &random, int64_t u, int64_t v) {
  EdgeTable table{problem.nodes[u].numStrategies(), problem.nodes[v].numStrategies(), {}};
  for (int64_t k = 0; k < table.rows * table.columns; ++k)
    table.cost.push_back(random() % 100);
  problem.edges.push_back({u, v, std::ssize(problem.tables)});
  problem.tables.push_back(std::move(table));
}

Problem randomProblem(uint32_t seed, double edgeShare) {
  std::mt19937 random(seed);
  Problem problem;
  for (int64_t i = 0; i < 7; ++i) {
    Node &node = problem.nodes.emplace_back();
    for (uint32_t s = 0; s < 1 + random() % 3; ++s)
      node.cost.push_back(random() % 100);
    for (int64_t other = 0; other < i; ++other)
      if (random() % 1000 < 1000 * edgeShare)
        addEdge(problem, random, i, other);
  }
  return problem;
}

/// Calls `visit` with every choice.
template <typename Visit> void forEachChoice(const Problem &problem, Visit visit) {
  std::vector<int64_t> choice(problem.nodes.size(), 0);
  for (;;) {
    visit(choice);
    size_t at = 0;
    while (at < choice.size() && ++choice[at] == problem.nodes[at].numStrategies())
      choice[at++] = 0;
    if (at == choice.size())
      return;
  }
}

double leastOf(const Problem &problem) {
  double least = std::numeric_limits<double>::infinity();
  forEachChoice(problem, [&](const std::vector<int64_t> &choice) {
    least = std::min(least, problem.cost(choice));
  });
  return least;
}

} // namespace

TEST(SearchReduced, ReducedCostEqualsCostOfTheExpansion) {
  int smaller = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed, 0.1 * (seed % 10));
    Source source(problem);
    Domains all = allStrategies(source);
    Reduced reduced(source, costsOf(source), all, 1e9);
    ASSERT_EQ(reduced.nodes().size(), reduced.problem().nodes.size());
    smaller += reduced.nodes().size() < problem.nodes.size();
    forEachChoice(reduced.problem(), [&](const std::vector<int64_t> &choice) {
      double whole = problem.cost(reduced.expand(choice));
      EXPECT_DOUBLE_EQ(whole, reduced.problem().cost(choice) + reduced.constant()) << seed;
    });
    EXPECT_DOUBLE_EQ(leastOf(problem), leastOf(reduced.problem()) + reduced.constant()) << seed;
  }
  EXPECT_GT(smaller, 30);
}

TEST(SearchReduced, ACycleOfTwoChainsDisappears) {
  std::mt19937 random(1);
  Problem problem;
  for (int64_t i = 0; i < 8; ++i)
    problem.nodes.emplace_back().cost = {1.0 * (random() % 100), 2, 3};
  for (int64_t i = 0; i < 8; ++i)
    addEdge(problem, random, i, (i + 1) % 8);
  Source source(problem);
  Domains all = allStrategies(source);
  Reduced reduced(source, costsOf(source), all, 1e9);
  EXPECT_TRUE(reduced.problem().nodes.empty());
  EXPECT_DOUBLE_EQ(reduced.constant(), leastOf(problem));
  EXPECT_DOUBLE_EQ(problem.cost(reduced.expand({})), leastOf(problem));
}

TEST(SearchReduced, WithoutWorkNoNodeIsBridged) {
  std::mt19937 random(1);
  Problem problem;
  for (int64_t i = 0; i < 4; ++i)
    problem.nodes.emplace_back().cost = {1, 2, 3};
  for (int64_t i = 0; i < 4; ++i)
    addEdge(problem, random, i, (i + 1) % 4);
  Source source(problem);
  Domains all = allStrategies(source);
  EXPECT_EQ(Reduced(source, costsOf(source), all, 0).nodes().size(), 4U);
}
