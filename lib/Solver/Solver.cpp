//===- Solver.cpp - Strategy search ---------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/Solver.h"
#include "Modes.h"
#include "tessera/Support/Bytes.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <utility>

namespace tessera::solver {

/// Of the quick mode: the gap from which joined coordinates are tried, and their entries of tables.
constexpr double wideGap = 0.05, joinedWork = 2e7;

double Solution::gap() const {
  if (cost <= lowerBound)
    return 0;
  return (cost - lowerBound) / std::max(std::abs(cost), 1e-300);
}

/// Domains of Mode::completion: nodes not connected to a pinned or annotated node stay standard.
static void keepUnreachedStandard(const Source &source, Domains &domains) {
  std::vector<Index> reached;
  std::vector<char> isReached(source.numNodes(), 0);
  auto reach = [&](int64_t node) {
    if (!std::exchange(isReached[node], 1))
      reached.push_back(static_cast<Index>(node));
  };
  for (const Pin &pin : source.problem.pins)
    reach(pin.node);
  for (Index i = 0; i < source.numNodes(); ++i)
    if (source.problem.nodes[i].isAnnotated)
      reach(i);
  for (size_t next = 0; next < reached.size(); ++next)
    for (const Neighbour &other : source.neighbours[reached[next]])
      reach(other.node);
  for (Index i = 0; i < source.numNodes(); ++i)
    if (!isReached[i])
      domains.of[i] = domains.intern({static_cast<Index>(source.problem.nodes[i].standard)});
}

/// The error of a budget that no plan meets, if it is one.
static std::optional<Error> checkBudget(const Source &source, const Domains &domains,
                                        double budget) {
  double least = 0, largest = -1;
  Index inTheWay = 0;
  for (Index i = 0; i < source.numNodes(); ++i) {
    const Node &node = source.problem.nodes[i];
    double leastOfNode = std::numeric_limits<double>::infinity();
    for (Index s : domains.at(i))
      leastOfNode = std::min(leastOfNode, node.memoryOf(s));
    least += leastOfNode;
    if (leastOfNode > largest) {
      largest = leastOfNode;
      inTheWay = i;
    }
  }
  if (least <= budget)
    return std::nullopt;
  return Error{"no plan fits into the memory budget of " + exactBytesText(std::floor(budget)) +
               " per device; the least is " + exactBytesText(std::ceil(least)) + ", of which '" +
               source.problem.nodes[inTheWay].name + "' (node " + std::to_string(inTheWay) +
               ") takes " + exactBytesText(std::ceil(largest))};
}

Expected<Solution> solve(const Problem &problem, const Options &options) {
  Deadline deadline(options.timeLimit);
  std::clock_t begin = std::clock();
  if (std::string fault = verify(problem); !fault.empty())
    return Error{fault};
  if (!(options.memoryBudget >= 0))
    return Error{"the memory budget is negative; expected a number of bytes"};
  Source source(problem);
  Domains domains = allStrategies(source);
  if (options.mode == Mode::completion)
    keepUnreachedStandard(source, domains);
  bool isConstrained = std::isfinite(options.memoryBudget);
  if (isConstrained)
    if (auto error = checkBudget(source, domains, options.memoryBudget))
      return *error;

  Bounded found;
  if (options.mode == Mode::exact || isConstrained) {
    Expected<Bounded> result = options.mode == Mode::exact
                                   ? minimiseByMilp(problem, options, deadline)
                                   : minimiseWithin(source, domains, options, deadline);
    if (auto *error = std::get_if<Error>(&result))
      return *error;
    found = std::get<Bounded>(std::move(result));
  } else if (options.mode == Mode::recursive_programming) {
    std::optional<Bounded> small =
        minimiseIfSmall(source, costsOf(source), domains, options, deadline, smallWork);
    found =
        small ? std::move(*small) : minimiseCoarsely(source, costsOf(source), domains, deadline);
    found.bound = std::max(found.bound, leastOf(source, costsOf(source), domains));
    // At a wide gap, problems with joined coordinates are worth their milliseconds.
    if (found.cost > found.bound * (1 + wideGap))
      if (auto joined =
              minimiseOverJoinedCoordinates(source, costsOf(source), domains, joinedWork, deadline))
        if (double cost = costOf(source, costsOf(source), *joined); cost < found.cost) {
          found.choice = std::move(*joined);
          found.cost = cost;
        }
  } else {
    Depth depth = options.mode == Mode::completion ? Depth::once : Depth::full;
    found = minimise(source, costsOf(source), domains, options, deadline, {}, depth);
  }
  Solution solution;
  solution.choice = std::move(found.choice);
  solution.cost = problem.cost(solution.choice);
  solution.memory = problem.memory(solution.choice);
  bool isOptimal = found.bound >= found.cost;
  solution.lowerBound = isOptimal ? solution.cost : found.bound;
  solution.stoppedByTime = (found.stoppedByTime || deadline.hasExpired()) && !isOptimal;
  solution.seconds = deadline.elapsed();
  solution.cpuSeconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return solution;
}

} // namespace tessera::solver
