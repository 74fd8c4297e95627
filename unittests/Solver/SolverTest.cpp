//===- SolverTest.cpp - Strategy search against brute force ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/Solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

using namespace tessera::solver;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Shape {
  int64_t nodes = 8, strategies = 4;
  double edgeShare = 0.5;
  bool whole = false; ///< small integers: many equal plans
};

Problem randomProblem(uint32_t seed, const Shape &shape) {
  std::mt19937 random(seed);
  auto cost = [&]() {
    return shape.whole ? static_cast<double>(random() % 4)
                       : static_cast<double>(random()) / 4294967296.0;
  };
  Problem problem;
  int64_t count = 1 + static_cast<int64_t>(random() % shape.nodes);
  for (int64_t i = 0; i < count; ++i) {
    Node &node = problem.nodes.emplace_back();
    node.name = "op" + std::to_string(i);
    int64_t strategies = 1 + static_cast<int64_t>(random() % shape.strategies);
    for (int64_t s = 0; s < strategies; ++s) {
      node.cost.push_back(cost());
      node.memory.push_back(static_cast<double>(random() % 8));
    }
  }
  for (int64_t u = 0; u < count; ++u)
    for (int64_t v = 0; v < count; ++v) {
      // A path keeps the graph connected; both directions and parallel edges occur.
      bool isEdge = u != v && (v == u + 1 ||
                               static_cast<double>(random()) / 4294967296.0 < shape.edgeShare / 2);
      if (!isEdge)
        continue;
      EdgeTable &table = problem.tables.emplace_back();
      table.rows = problem.nodes[u].numStrategies();
      table.columns = problem.nodes[v].numStrategies();
      for (int64_t k = 0; k < table.rows * table.columns; ++k)
        table.cost.push_back(cost());
      auto number = static_cast<int64_t>(problem.tables.size()) - 1;
      problem.edges.push_back({u, v, number});
      if (random() % 8 == 0)
        problem.edges.push_back({u, v, number});
    }
  return problem;
}

/// The least cost of all choices that respect the pins and the budget; infinite if there is none.
double bruteForce(const Problem &problem, double budget = infinity) {
  std::vector<int64_t> choice(problem.nodes.size(), 0), pins = problem.pinned();
  double best = infinity;
  std::function<void(size_t)> enumerate = [&](size_t i) {
    if (i == choice.size()) {
      if (problem.memory(choice) <= budget)
        best = std::min(best, problem.cost(choice));
      return;
    }
    for (choice[i] = 0; choice[i] < problem.nodes[i].numStrategies(); ++choice[i])
      if (pins[i] < 0 || pins[i] == choice[i])
        enumerate(i + 1);
  };
  enumerate(0);
  return best;
}

Solution solved(const Problem &problem, const Options &options) {
  Expected<Solution> result = solve(problem, options);
  if (auto *error = std::get_if<Error>(&result)) {
    ADD_FAILURE() << error->message;
    return {std::vector<int64_t>(problem.nodes.size(), 0)};
  }
  Solution solution = std::get<Solution>(result);
  EXPECT_EQ(solution.choice.size(), problem.nodes.size());
  EXPECT_DOUBLE_EQ(solution.cost, problem.cost(solution.choice));
  EXPECT_DOUBLE_EQ(solution.memory, problem.memory(solution.choice));
  EXPECT_LE(solution.lowerBound, solution.cost);
  std::vector<int64_t> pins = problem.pinned();
  for (size_t i = 0; i < pins.size(); ++i)
    EXPECT_TRUE(pins[i] < 0 || pins[i] == solution.choice[i]) << "pin of node " << i;
  return solution;
}

std::string errorOf(const Problem &problem, const Options &options) {
  Expected<Solution> result = solve(problem, options);
  auto *error = std::get_if<Error>(&result);
  return error ? error->message : "no error";
}

std::string parseError(const std::string &text) {
  Expected<Problem> result = parseProblem(text, "p.json");
  auto *error = std::get_if<Error>(&result);
  return error ? error->message : "no error";
}

/// `length` equal layers of five nodes in a chain, with a skip edge.
Problem layers(int64_t length, int64_t strategies, uint32_t seed) {
  std::mt19937 random(seed);
  auto cost = [&]() { return static_cast<double>(random() % 1000) / 1000; };
  Problem problem;
  std::vector<std::vector<double>> costs(5);
  for (auto &nodeCosts : costs)
    for (int64_t s = 0; s < strategies; ++s)
      nodeCosts.push_back(cost());
  for (int t = 0; t < 7; ++t) {
    EdgeTable &table = problem.tables.emplace_back(EdgeTable{strategies, strategies, {}});
    for (int64_t k = 0; k < strategies * strategies; ++k)
      table.cost.push_back(cost());
  }
  for (int64_t l = 0; l < length; ++l) {
    int64_t first = l * 5;
    for (int n = 0; n < 5; ++n)
      problem.nodes.push_back({"n" + std::to_string(n), l, costs[n], {}, {}, 0});
    for (auto [u, v, t] : {Edge{0, 1, 0}, {1, 2, 1}, {2, 3, 2}, {0, 3, 3}, {3, 4, 4}, {1, 4, 5}})
      problem.edges.push_back({first + u, first + v, t});
    if (l > 0)
      problem.edges.push_back({first - 1, first, 6});
  }
  return problem;
}

} // namespace

TEST(Search, DynamicProgrammingEqualsBruteForce) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Problem problem = randomProblem(seed, {8, 4, 0.1 * (seed % 10), seed % 3 == 0});
    Solution solution = solved(problem, {});
    EXPECT_NEAR(solution.cost, bruteForce(problem), 1e-12) << "seed " << seed;
    EXPECT_EQ(solution.gap(), 0) << "seed " << seed;
  }
}

TEST(Search, SplitTablesAndBranchingEqualBruteForce) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = randomProblem(seed, {8, 4, 0.8, seed % 3 == 0});
    Options options;
    options.tableLimit = 12;
    Solution solution = solved(problem, options);
    EXPECT_NEAR(solution.cost, bruteForce(problem), 1e-12) << "seed " << seed;
    EXPECT_EQ(solution.gap(), 0) << "seed " << seed;
  }
}

TEST(Search, PinsAreCompletedAtLeastCost) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = randomProblem(seed, {8, 4, 0.4, seed % 2 == 0});
    std::mt19937 random(seed);
    for (int64_t i = 0; i < static_cast<int64_t>(problem.nodes.size()); ++i)
      if (i == 0 || random() % 4 == 0)
        problem.pins.push_back(
            {i, static_cast<int64_t>(random() % problem.nodes[i].numStrategies())});
    double expected = bruteForce(problem);
    for (Mode mode : {Mode::completion, Mode::dynamic_programming}) {
      Options options;
      options.mode = mode;
      EXPECT_NEAR(solved(problem, options).cost, expected, 1e-12) << "seed " << seed;
    }
  }
}

TEST(Search, UnconnectedNodesStayStandard) {
  Problem problem;
  for (int i = 0; i < 4; ++i)
    problem.nodes.push_back({"n", -1, {3, 2, 1}, {}, {}, 1});
  problem.tables.push_back({3, 3, {0, 9, 9, 9, 0, 9, 9, 9, 0}});
  problem.edges = {{0, 1, 0}, {2, 3, 0}};
  problem.pins = {{0, 0}};
  Options options;
  options.mode = Mode::completion;
  EXPECT_EQ(solved(problem, options).choice, (std::vector<int64_t>{0, 0, 1, 1}));
}

/// Two independent problems, without an edge between them.
Problem besides(Problem left, const Problem &right) {
  auto nodes = static_cast<int64_t>(left.nodes.size());
  auto tables = static_cast<int64_t>(left.tables.size());
  left.nodes.insert(left.nodes.end(), right.nodes.begin(), right.nodes.end());
  left.tables.insert(left.tables.end(), right.tables.begin(), right.tables.end());
  for (const Edge &edge : right.edges)
    left.edges.push_back({edge.from + nodes, edge.to + nodes, edge.table + tables});
  return left;
}

TEST(Search, ConnectedNodesAreCompletedAtLeastCost) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Problem first = randomProblem(seed, {4, 3, 0.4, seed % 2 == 0});
    Problem second = randomProblem(seed + 1000, {4, 3, 0.4, seed % 2 == 0});
    std::mt19937 random(seed);
    // One part is reached by a pin, by a preference or not at all; the other one by a preference or
    // not at all.
    uint32_t how = random() % 3;
    bool isSecondReached = random() % 2;
    if (how == 0)
      first.pins = {{0, static_cast<int64_t>(random() % first.nodes[0].numStrategies())}};
    if (how == 1)
      first.nodes.back().isAnnotated = true;
    if (isSecondReached)
      second.nodes.front().isAnnotated = true;
    Problem problem = besides(first, second), restricted = problem;
    for (size_t i = 0; i < problem.nodes.size(); ++i) {
      Node &node = problem.nodes[i];
      node.standard = static_cast<int64_t>(random() % node.numStrategies());
      bool isReached = i < first.nodes.size() ? how < 2 : isSecondReached;
      if (!isReached)
        restricted.pins.push_back({static_cast<int64_t>(i), node.standard});
    }
    Options options;
    options.mode = Mode::completion;
    Solution solution = solved(problem, options);
    EXPECT_NEAR(solution.cost, bruteForce(restricted), 1e-12) << "seed " << seed;
    EXPECT_EQ(solution.gap(), 0) << "seed " << seed;
  }
}

TEST(Search, JoinedCoordinatesAreSearched) {
  // Chains over three axes of two, ways to cut each: the same choice on all axes is cheapest, and
  // no table of the whole problem is created.
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Problem problem;
    constexpr int64_t ways = 4;
    EdgeTable &table = problem.tables.emplace_back();
    table.rows = table.columns = ways * ways * ways;
    std::vector<std::vector<int64_t>> axes;
    for (int64_t s = 0; s < table.rows; ++s)
      axes.push_back({s / ways / ways, s / ways % ways, s % ways});
    for (int64_t s = 0; s < table.rows; ++s)
      for (int64_t t = 0; t < table.columns; ++t) {
        int64_t differs = 0;
        for (size_t axis = 0; axis < 3; ++axis)
          differs += axes[s][axis] != axes[t][axis];
        table.cost.push_back(static_cast<double>(differs));
      }
    for (int64_t n = 0; n < 12; ++n) {
      Node &node = problem.nodes.emplace_back();
      node.coordinates = axes;
      for (const std::vector<int64_t> &own : axes) {
        bool areEqual = own[0] == own[1] && own[1] == own[2];
        node.cost.push_back((areEqual ? 1 : 2) + static_cast<double>(random() % 100) / 1000);
      }
      for (int64_t other = 0; other < n; ++other)
        problem.edges.push_back({other, n, 0});
    }
    Options options;
    options.mode = Mode::recursive_programming;
    Solution solution = solved(problem, options);
    // Uniform choices are among the plans: the best of them, by brute force.
    double best = 1e9;
    for (int64_t s = 0; s < table.rows; ++s)
      best = std::min(best, problem.cost(std::vector<int64_t>(12, s)));
    EXPECT_LE(solution.cost, best + 1e-12) << "seed " << seed;
  }
}

TEST(Search, RecursiveIsBoundedAndNearTheOptimum) {
  double sum = 0, optimum = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = randomProblem(seed, {8, 6, 0.3, false});
    Options options;
    options.mode = Mode::recursive_programming;
    Solution solution = solved(problem, options);
    double best = bruteForce(problem);
    EXPECT_GE(solution.cost, best - 1e-12) << "seed " << seed;
    EXPECT_LE(solution.lowerBound, best + 1e-12) << "seed " << seed;
    sum += solution.cost;
    optimum += best;
  }
  EXPECT_LE(sum, 1.01 * optimum);
}

TEST(Search, RecursiveIsBoundedWithoutAnOptimum) {
  // Tables too large to be eliminated; a star has many copies of one edge at a node.
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Problem problem = layers(3 + seed, 24, seed);
    for (size_t leaf = 0; leaf < 4; ++leaf) {
      problem.nodes.push_back(problem.nodes.front());
      problem.edges.push_back({2, static_cast<int64_t>(problem.nodes.size()) - 1, 0});
    }
    Options options;
    double best = solved(problem, options).cost;
    options.mode = Mode::recursive_programming;
    Solution solution = solved(problem, options);
    EXPECT_GE(solution.cost, best - 1e-12) << "seed " << seed;
    EXPECT_LE(solution.lowerBound, best + 1e-12) << "seed " << seed;
    EXPECT_LE(solution.cost, 1.25 * best) << "seed " << seed;
    EXPECT_GE(solution.lowerBound, 0.5 * best) << "seed " << seed;
  }
}

TEST(Search, RecursiveChoosesOneAxisAtATime) {
  // Two axes of two: strategies 00, 01, 10, 11; neighbors must agree on the slow axis.
  Problem problem;
  std::vector<std::vector<int64_t>> axes = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  for (int i = 0; i < 20; ++i)
    problem.nodes.push_back({"n", -1, {8, 4, 4, double(i % 3)}, {}, axes, 0});
  problem.tables.push_back({4, 4, {0, 1, 9, 9, 1, 0, 9, 9, 9, 9, 0, 1, 9, 9, 1, 0}});
  for (int i = 0; i + 1 < 20; ++i)
    problem.edges.push_back({i, i + 1, 0});
  Options options;
  options.mode = Mode::recursive_programming;
  EXPECT_EQ(solved(problem, options).choice, std::vector<int64_t>(20, 3));
}

TEST(Search, BudgetsEqualBruteForce) {
  int constrained = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Problem problem = randomProblem(seed, {7, 4, 0.4, seed % 3 == 0});
    Options options;
    options.targetGap = 0;
    double most = solved(problem, {}).memory, least = 0;
    for (size_t i = 0; i < problem.nodes.size(); ++i)
      least += problem.leastMemory(static_cast<int64_t>(i));
    options.memoryBudget = std::floor((least + most) / 2);
    constrained += options.memoryBudget < most;
    Solution solution = solved(problem, options);
    EXPECT_LE(solution.memory, options.memoryBudget) << "seed " << seed;
    EXPECT_NEAR(solution.cost, bruteForce(problem, options.memoryBudget), 1e-9) << "seed " << seed;
  }
  EXPECT_GT(constrained, 100);
}

/// The least cost of `layers`: all choices of a layer by its first and last, then layer by layer.
double chainedLayers(const Problem &problem, int64_t length, int64_t strategies) {
  Problem layer = layers(1, strategies, 0);
  layer.tables = problem.tables;
  for (size_t n = 0; n < 5; ++n)
    layer.nodes[n].cost = problem.nodes[n].cost;
  std::vector<double> before(strategies, 0), after; // by the choice of the last node
  for (int64_t l = 0; l < length; ++l) {
    after.assign(strategies, infinity);
    std::vector<int64_t> choice(5, 0);
    for (int64_t code = 0; code < std::pow(strategies, 5); ++code) {
      int64_t rest = code;
      for (int64_t &each : choice) {
        each = rest % strategies;
        rest /= strategies;
      }
      double entry = infinity;
      for (int64_t last = 0; last < strategies; ++last)
        entry = std::min(entry,
                         before[last] +
                             (l > 0 ? problem.tables[6].cost[last * strategies + choice[0]] : 0.0));
      after[choice[4]] = std::min(after[choice[4]], entry + layer.cost(choice));
    }
    before = after;
  }
  return *std::min_element(before.begin(), before.end());
}

TEST(Search, FoldedLayersEqualTheWholeGraph) {
  for (int64_t length : {1, 2, 3, 7, 40}) {
    Problem problem = layers(length, 5, 7);
    EXPECT_NEAR(solved(problem, {}).cost, chainedLayers(problem, length, 5), 1e-9) << length;
    // Distinct costs in each layer that do not affect the choice: no two layers are equal, so none
    // is folded.
    Problem unfolded = problem;
    double added = 0;
    for (size_t i = 0; i < unfolded.nodes.size(); ++i) {
      added += static_cast<double>(i);
      for (double &cost : unfolded.nodes[i].cost)
        cost += static_cast<double>(i);
    }
    EXPECT_NEAR(solved(unfolded, {}).cost - added, chainedLayers(problem, length, 5), 1e-9);
  }
}

TEST(Search, TimeLimitLeavesAPlanWithItsGap) {
  int stopped = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed, {8, 4, 0.6, false});
    double most = solved(problem, {}).memory, least = 0;
    for (size_t i = 0; i < problem.nodes.size(); ++i)
      least += problem.leastMemory(static_cast<int64_t>(i));
    for (double budget : {infinity, std::floor((least + most) / 2)}) {
      Options options;
      options.timeLimit = 0;
      options.memoryBudget = budget;
      Solution solution = solved(problem, options);
      double best = bruteForce(problem, budget);
      EXPECT_LE(solution.memory, budget) << "seed " << seed;
      EXPECT_GE(solution.cost, best - 1e-9) << "seed " << seed;
      EXPECT_LE(solution.lowerBound, best + 1e-9) << "seed " << seed;
      EXPECT_TRUE(solution.stoppedByTime || solution.gap() <= options.targetGap) << "seed " << seed;
      stopped += solution.stoppedByTime;
    }
  }
  EXPECT_GT(stopped, 0);
}

TEST(Search, ExactModeAgrees) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Problem problem = randomProblem(seed, {8, 4, 0.4, false});
    Options options;
    options.mode = Mode::exact;
    Expected<Solution> result = solve(problem, options);
    if (auto *error = std::get_if<Error>(&result)) {
      ASSERT_NE(error->message.find("highspy"), std::string::npos) << error->message;
      GTEST_SKIP() << error->message;
    }
    EXPECT_NEAR(std::get<Solution>(result).cost, bruteForce(problem), 1e-6);
  }
}

TEST(Search, BudgetThatNoPlanMeets) {
  Problem problem;
  problem.nodes = {{"small", -1, {1}, {8}, {}, 0}, {"large", -1, {1, 2}, {64, 32}, {}, 0}};
  Options options;
  options.memoryBudget = 39;
  EXPECT_EQ(errorOf(problem, options),
            "no plan fits into the memory budget of 39 bytes per device; the least is 40 bytes, of "
            "which 'large' (node 1) takes 32 bytes");
  options.memoryBudget = 40;
  EXPECT_EQ(solved(problem, options).choice, (std::vector<int64_t>{0, 1}));
}

TEST(Search, MalformedProblems) {
  auto withNodes = [](const std::string &rest) {
    return R"({"version": 1, "nodes": [{"cost": [1, 2]}, {"cost": [1]}])" + rest + "}";
  };
  struct {
    std::string text, message;
  } table[] = {
      {"", "p.json:1: expected an object at the end of the file"},
      {"[]", "p.json:1: expected an object"},
      {"{}", "p.json:1: 'version' is missing; this reads version 1"},
      {R"({"version": 2})", "p.json:1: version: 2 is not known; this reads version 1"},
      {R"({"version": 1})", "p.json:1: 'nodes' is missing; a problem has nodes"},
      {"{\"version\": 1,\n \"nodes\": [{\"cost\": [1, \"a\"]}]}",
       "p.json:2: nodes[0].cost[1]: expected a finite number"},
      {R"({"version": 1, "nodes": [{"cost": [1, nan]}]})",
       "p.json:1: nodes[0].cost[1]: expected a finite number"},
      {R"({"version": 1, "nodes": [{"cost": [1e999]}]})",
       "p.json:1: nodes[0].cost[0]: the number is out of range; expected a double"},
      {R"({"version": 1, "nodes": [{"name": "x"}]})",
       "p.json:1: nodes[0]: has no 'cost'; a node has one cost a strategy"},
      {R"({"version": 1, "nodes": [{"cost": [1], "memory": [1, 2]}]})",
       "p.json: nodes[0].memory: has 2 entries for 1 strategies; give one per strategy"},
      {withNodes(R"(, "tables": [[[1], [2, 3]]])"),
       "p.json:1: tables[0][1]: has 2 numbers, row 0 1; a table is a rectangle"},
      {withNodes(R"(, "edges": [[0, 1]])"),
       "p.json:1: edges[0]: has 2 numbers; an edge is [node, node, table]"},
      {withNodes(R"(, "edges": [[0, 2, 0]])"), "p.json: edges[0]: 2 is not a node; there are 2"},
      {withNodes(R"(, "edges": [[0, 1, 0]])"), "p.json: edges[0]: 0 is not a table; there are 0"},
      {withNodes(R"(, "tables": [[[1], [2]]], "edges": [[1, 0, 0]])"),
       "p.json: edges[0]: table 0 is 2x1 but the nodes have 1 and 2 strategies; rows are "
       "strategies of the first, columns of the second"},
      {withNodes(R"(, "pins": [[0, 2]])"),
       "p.json: pins[0]: 2 is not a strategy of node 0; there are 2"},
      {withNodes(R"(, "pins": [[0, 1], [0, 0]])"),
       "p.json: pins[1]: node 0 is pinned to 1 already; a node is pinned once"},
      {withNodes("} x"), "p.json:1: text follows the problem"},
      {withNodes(", \"x\": " + std::string(100, '[')), "p.json:1: x"},
  };
  for (auto &row : table)
    EXPECT_EQ(parseError(row.text).substr(0, row.message.size()), row.message) << row.text;
  EXPECT_EQ(parseError(withNodes(R"(, "tables": [[[1], [2]]], "edges": [[0, 1, 0]])")), "no error");
}
