//===- Budget.cpp - The search under a memory budget ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory gets a price (H. Everett, "Generalized Lagrange multiplier method", Operations
// Research 11, 1963): the optimum at any price, less the price of the whole budget, is
// a lower bound. Cutting planes find the price with the best bound. Elimination with
// labels then closes the gap, first among the strategies of the plans seen, then among
// all that the bound cannot exclude.
//
//===----------------------------------------------------------------------===//

#include "Dominance.h"
#include "Labels.h"
#include "Modes.h"

#include <algorithm>
#include <cmath>

namespace tessera::solver {
namespace {

constexpr int maxPrices = 40, maxRounds = 4;
/// Limits on entries of buckets: for lists of labels, and for two passes over tables.
constexpr double mostLabelWork = 2e7, mostMarginalWork = 4e9;
constexpr size_t fewLabels = 48, manyLabels = 400;

class BudgetSearch {
public:
  BudgetSearch(const Source &source, const Domains &domains, const Options &options,
               const Deadline &deadline)
      : source(source), options(options), deadline(deadline),
        kept(deadline.isOver()
                 ? domains
                 : removeDominated(source, costsOf(source), domains, true, deadline)) {}

  Bounded run();

private:
  struct Point {
    double cost, memory;
  };
  Point solveAt(double price, const Domains &domains);
  void findPrice(Point over, Point within);
  void improve(const std::vector<int64_t> &choice);
  bool runLabels(const Domains &domains, size_t mostLabels);
  Domains seenStrategies() const;
  std::optional<Domains> withinBound();
  double gap() const { return (best.cost - best.bound) / std::abs(best.cost); }

  const Source &source;
  const Options &options;
  const Deadline &deadline;
  Domains kept;
  Bounded best;
  bool hasPlan = false;
  double price = 0;
  std::vector<std::vector<int64_t>> seen;
};

void BudgetSearch::improve(const std::vector<int64_t> &choice) {
  if (choice.empty() || source.problem.memory(choice) > options.memoryBudget)
    return;
  double cost = source.problem.cost(choice);
  if (hasPlan && cost >= best.cost)
    return;
  hasPlan = true;
  best.choice = choice;
  best.cost = cost;
}

/// The optimum when memory costs `at` per byte; improves the bound and the plan.
BudgetSearch::Point BudgetSearch::solveAt(double at, const Domains &domains) {
  Bounded found;
  if (options.mode == Mode::recursive_programming) {
    std::optional<Bounded> small =
        minimiseIfSmall(source, costsOf(source, at), domains, options, deadline, smallWork);
    found = small ? std::move(*small)
                  : minimiseCoarsely(source, costsOf(source, at), domains, deadline);
  } else {
    found = minimise(source, costsOf(source, at), domains, options, deadline);
  }
  seen.push_back(found.choice);
  improve(found.choice);
  if (&domains == &kept)
    if (double bound = found.bound - at * options.memoryBudget; bound > best.bound) {
      best.bound = bound;
      price = at;
    }
  return {source.problem.cost(found.choice), source.problem.memory(found.choice)};
}

/// Raises the bound until the optimum at the price at which two plans cost the same is one of the
/// two.
void BudgetSearch::findPrice(Point over, Point within) {
  for (int n = 0; n < maxPrices && !deadline.isOver(); ++n) {
    double at = (within.cost - over.cost) / (over.memory - within.memory);
    if (!(at > 0))
      return;
    Point next = solveAt(at, kept);
    double line = over.cost + at * over.memory;
    if (next.cost + at * next.memory >= line - 1e-12 * std::abs(line))
      return;
    (next.memory <= options.memoryBudget ? within : over) = next;
  }
}

/// By node, its strategies in all plans seen.
Domains BudgetSearch::seenStrategies() const {
  Domains domains;
  for (Index i = 0; i < source.numNodes(); ++i) {
    Domain set;
    for (const std::vector<int64_t> &choice : seen)
      set.push_back(static_cast<Index>(choice[i]));
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    domains.of.push_back(domains.intern(set));
  }
  return domains;
}

/// The strategies that a cheaper plan may have; empty if tables are too large.
std::optional<Domains> BudgetSearch::withinBound() {
  Model model(source, costsOf(source, price), kept);
  PlanOptions planOptions;
  planOptions.prune = false;
  Plan plan = makePlan(model, planOptions);
  if (plan.work > mostMarginalWork || plan.total > options.totalLimit / 4)
    return std::nullopt;
  std::optional<Marginals> marginals = findMarginals(model, plan, deadline);
  if (!marginals)
    return std::nullopt;
  double limit = best.cost + price * options.memoryBudget;
  Domains left;
  for (Index i = 0; i < source.numNodes(); ++i) {
    Domain set;
    const Domain &all = kept.at(i);
    for (size_t s = 0; s < all.size(); ++s)
      if (marginals->ofStrategy[i][s] <= limit + 1e-9 * std::abs(limit) || all[s] == best.choice[i])
        set.push_back(all[s]);
    left.of.push_back(left.intern(set));
  }
  return left;
}

/// Elimination with labels; true if it proved the best plan optimal within the domains.
bool BudgetSearch::runLabels(const Domains &domains, size_t mostLabels) {
  Model model(source, costsOf(source, price), domains);
  PlanOptions planOptions;
  planOptions.prune = false;
  Plan plan = makePlan(model, planOptions);
  double work = 0;
  for (const Step &step : plan.steps)
    work += plan.buckets[step.bucket].entries();
  if (work > mostLabelWork)
    return false;
  std::optional<Marginals> marginals = findMarginals(model, plan, deadline);
  if (!marginals)
    return false;
  std::vector<std::vector<double>> memory(source.numNodes());
  for (Index i = 0; i < source.numNodes(); ++i)
    for (Index s : domains.at(i))
      memory[i].push_back(source.problem.nodes[i].memoryOf(s));
  LabelBounds bounds{options.memoryBudget, price, best.cost, mostLabels};
  std::optional<Constrained> found =
      minimiseLabels(model, plan, *marginals, memory, bounds, deadline);
  if (!found)
    return false;
  improve(found->choice);
  return found->isExact;
}

Bounded BudgetSearch::run() {
  best.bound = -std::numeric_limits<double>::infinity();
  Point free = solveAt(0, kept);
  if (hasPlan) {
    best.stoppedByTime = deadline.isOver();
    return std::move(best);
  }
  Domains least = kept;
  for (Index i = 0; i < source.numNodes(); ++i) {
    const Node &node = source.problem.nodes[i];
    double leastMemory = std::numeric_limits<double>::infinity();
    for (Index s : kept.at(i))
      leastMemory = std::min(leastMemory, node.memoryOf(s));
    Domain set;
    for (Index s : kept.at(i))
      if (node.memoryOf(s) == leastMemory)
        set.push_back(s);
    least.of[i] = least.intern(set);
  }
  Point smallest = solveAt(0, least);
  findPrice(free, smallest);
  if (gap() > options.targetGap && !deadline.isOver())
    runLabels(seenStrategies(), fewLabels);
  // The quick mode stops here.
  int rounds = options.mode == Mode::recursive_programming ? 0 : maxRounds;
  for (int round = 0; round < rounds && gap() > options.targetGap && !deadline.isOver(); ++round) {
    double before = best.cost;
    std::optional<Domains> candidates = withinBound();
    if (!candidates)
      break;
    if (runLabels(*candidates, manyLabels)) {
      best.bound = best.cost;
      break;
    }
    if (best.cost >= before)
      break;
  }
  best.stoppedByTime = deadline.isOver();
  if (best.bound >= best.cost * (1 - 1e-9))
    best.bound = best.cost;
  return std::move(best);
}

} // namespace

Expected<Bounded> minimiseWithin(const Source &source, const Domains &domains,
                                 const Options &options, const Deadline &deadline) {
  return BudgetSearch(source, domains, options, deadline).run();
}

} // namespace tessera::solver
