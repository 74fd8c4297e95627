//===- MessagesTest.cpp - Bounds by messages against brute force ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Messages.h"
#include "ClassChoice.h"
#include "Dominance.h"
#include "Eliminate.h"
#include "Modes.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

using namespace tessera::solver;

namespace {

/// Random costs; `kinds` is the number of distinct nodes and tables, so that a small number makes
/// many nodes equal.
Problem randomProblem(uint32_t seed, int64_t nodes, int64_t strategies, uint32_t kinds) {
  std::mt19937 random(seed);
  auto cost = [&]() { return static_cast<double>(random() % 1000) / 100; };
  std::vector<std::vector<double>> costs(kinds);
  for (auto &nodeCosts : costs)
    for (int64_t s = 0; s < strategies; ++s)
      nodeCosts.push_back(cost());
  Problem problem;
  for (uint32_t t = 0; t < kinds; ++t) {
    EdgeTable &table = problem.tables.emplace_back(EdgeTable{strategies, strategies, {}});
    for (int64_t k = 0; k < strategies * strategies; ++k)
      table.cost.push_back(cost());
    // Equal rows, like those of strategies that require the same placement.
    if (strategies > 1 && t % 2 == 0)
      std::copy_n(table.cost.begin(), strategies, table.cost.begin() + strategies);
  }
  for (int64_t i = 0; i < nodes; ++i)
    problem.nodes.push_back({"n", -1, costs[random() % kinds], {}, {}, 0});
  for (int64_t u = 0; u < nodes; ++u)
    for (int64_t v = u + 1; v < nodes; ++v)
      if (random() % 3 == 0 || v == u + 1) {
        auto table = static_cast<int64_t>(random() % kinds);
        problem.edges.push_back(random() % 2 ? Edge{u, v, table} : Edge{v, u, table});
      }
  return problem;
}

/// By node and strategy: the least cost of a choice with this strategy.
std::vector<std::vector<double>> marginals(const Problem &problem) {
  std::vector<std::vector<double>> least;
  for (const Node &node : problem.nodes)
    least.emplace_back(node.cost.size(), std::numeric_limits<double>::infinity());
  std::vector<int64_t> choice(problem.nodes.size(), 0);
  std::function<void(size_t)> enumerate = [&](size_t i) {
    if (i < choice.size()) {
      for (choice[i] = 0; choice[i] < problem.nodes[i].numStrategies(); ++choice[i])
        enumerate(i + 1);
      return;
    }
    double cost = problem.cost(choice);
    for (size_t n = 0; n < choice.size(); ++n)
      least[n][choice[n]] = std::min(least[n][choice[n]], cost);
  };
  enumerate(0);
  return least;
}

double leastOf(const std::vector<double> &values) {
  return *std::min_element(values.begin(), values.end());
}

} // namespace

TEST(Messages, BoundAndExcessNeverExceedTheCostOfChoices) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    // Classes are refined completely, or hardly: then the slots of an edge differ.
    Problem problem = randomProblem(seed, 2 + seed % 6, 1 + seed % 4, 1 + seed % 3);
    Source source(problem);
    KindCosts costs = costsOf(source);
    Domains domains = allStrategies(source);
    std::vector<std::vector<double>> exact = marginals(problem);
    for (Index enough : {1, 1000}) {
      Folded folded(source, costs, domains, enough);
      Messages messages(folded);
      for (int sweeps : {0, 1, 3, 40}) {
        messages.sweep(sweeps);
        Messages::Proof proof = messages.prove();
        for (size_t n = 0; n < problem.nodes.size(); ++n)
          for (size_t s = 0; s < exact[n].size(); ++s)
            EXPECT_LE(proof.bound + proof.excess[folded.classOf[n]][s], exact[n][s] + 1e-9)
                << "seed " << seed << ", node " << n << ", strategy " << s;
        EXPECT_LE(proof.bound, leastOf(exact[0]) + 1e-9) << "seed " << seed;
      }
    }
  }
}

TEST(Messages, BoundOfATreeIsTheOptimum) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Problem problem = randomProblem(seed, 7, 4, 3);
    std::mt19937 random(seed);
    problem.edges.clear();
    for (int64_t i = 1; i < 7; ++i)
      problem.edges.push_back({static_cast<int64_t>(random() % i), i, i % 3});
    Source source(problem);
    KindCosts costs = costsOf(source);
    Domains domains = allStrategies(source);
    Folded folded(source, costs, domains, 1000);
    Messages messages(folded);
    messages.sweep(200);
    EXPECT_NEAR(messages.prove().bound, leastOf(marginals(problem)[0]), 1e-6) << "seed " << seed;
  }
}

TEST(Messages, EqualLayersShareClasses) {
  // A chain of many equal layers of two nodes: the number of classes does not depend on their
  // number.
  auto chain = [](int64_t layers) {
    Problem problem;
    problem.tables = {{2, 2, {0, 3, 3, 0}}, {2, 2, {0, 1, 2, 0}}};
    for (int64_t l = 0; l < layers; ++l) {
      problem.nodes.push_back({"a", l, {1, 2}, {}, {}, 0});
      problem.nodes.push_back({"b", l, {4, 2}, {}, {}, 0});
      problem.edges.push_back({2 * l, 2 * l + 1, 0});
      if (l > 0)
        problem.edges.push_back({2 * l - 1, 2 * l, 1});
    }
    return problem;
  };
  Problem few = chain(50), many = chain(500);
  Source fewSource(few), manySource(many);
  Domains fewDomains = allStrategies(fewSource), manyDomains = allStrategies(manySource);
  Folded small(fewSource, costsOf(fewSource), fewDomains, 12);
  Folded large(manySource, costsOf(manySource), manyDomains, 12);
  EXPECT_EQ(small.classes.size(), large.classes.size());
  EXPECT_FALSE(large.isWhole);
  // The bound is valid for the whole chain, and close to the result of elimination.
  Messages messages(large);
  messages.sweep(100);
  Options options;
  double best = std::get<Solution>(solve(many, options)).cost, bound = messages.prove().bound;
  EXPECT_LE(bound, best + 1e-6);
  EXPECT_GE(bound, 0.99 * best);
}

TEST(Messages, ClassChoicesReportTheirCost) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed, 7, 3, 2);
    Source source(problem);
    KindCosts costs = costsOf(source);
    Domains domains = allStrategies(source);
    Folded folded(source, costs, domains, 1);
    ClassChoice uniform(folded);
    std::vector<Domain> candidates;
    for (const Folded::Class &each : folded.classes) {
      candidates.emplace_back();
      for (Index a = 0; a < std::ssize(each.cost); ++a)
        candidates.back().push_back(a);
    }
    EXPECT_TRUE(uniform.choose(candidates, 1e9));
    EXPECT_NEAR(uniform.cost(), problem.cost(folded.unfold(uniform.position())), 1e-9);
    // No choice that is uniform in each class is cheaper.
    std::vector<Index> at(folded.classes.size(), 0);
    for (bool isLast = false; !isLast;) {
      EXPECT_GE(problem.cost(folded.unfold(at)), uniform.cost() - 1e-9) << "seed " << seed;
      isLast = true;
      for (size_t c = 0; c < at.size() && isLast; ++c) {
        isLast = ++at[c] == std::ssize(folded.classes[c].cost);
        at[c] = isLast ? 0 : at[c];
      }
    }
  }
}

TEST(Messages, BoundsHoldAndHopefulKeepsAnOptimum) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = randomProblem(seed, 2 + seed % 6, 2 + seed % 3, 1 + seed % 4);
    Source source(problem);
    KindCosts costs = costsOf(source);
    Domains domains = allStrategies(source), remaining;
    std::vector<std::vector<double>> exact = marginals(problem);
    double best = leastOf(exact[0]);
    for (Domains *requested : {static_cast<Domains *>(nullptr), &remaining}) {
      Bounded found = minimiseCoarsely(source, costs, domains, Deadline(60), requested);
      EXPECT_NEAR(found.cost, problem.cost(found.choice), 1e-9);
      EXPECT_LE(found.bound, best + 1e-9) << "seed " << seed;
      // Cheaper choices use only remaining strategies.
      for (size_t n = 0; requested && n < problem.nodes.size(); ++n)
        for (Index s = 0; s < std::ssize(exact[n]); ++s)
          if (exact[n][s] < found.cost - 1e-9) {
            const Domain &domain = remaining.at(static_cast<Index>(n));
            EXPECT_TRUE(std::find(domain.begin(), domain.end(), s) != domain.end())
                << "seed " << seed;
          }
    }
  }
}

TEST(Messages, ContractedNodesAreCounted) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed, 6, 3, 3);
    std::mt19937 random(seed);
    for (int64_t i = 0; i < 6; ++i)
      if (random() % 2)
        problem.pins.push_back({i, static_cast<int64_t>(random() % 3)});
    Source source(problem);
    KindCosts costs = costsOf(source);
    Model whole(source, costs, allStrategies(source));
    Model contracted(source, costs, allStrategies(source), true);
    std::optional<Optimum> expected = eliminate(whole, makePlan(whole, {}), Deadline(60));
    std::optional<Optimum> found = eliminate(contracted, makePlan(contracted, {}), Deadline(60));
    ASSERT_TRUE(expected && found);
    EXPECT_NEAR(found->cost, expected->cost, 1e-9) << "seed " << seed;
    EXPECT_NEAR(problem.cost(found->choice), found->cost, 1e-9) << "seed " << seed;
  }
}
