//===- Minimise.cpp - The exact search ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most problems are solved by the first plan. If a table would be too large, buckets
// are split, which gives a lower bound and, traced back, a choice. Then the domain of a
// split node is halved (branch and bound, best bound first).
//
//===----------------------------------------------------------------------===//

#include "Dominance.h"
#include "Eliminate.h"
#include "Modes.h"
#include "Reduced.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace tessera::solver {

double costOf(const Source &source, const KindCosts &costs, const std::vector<int64_t> &choice) {
  double sum = 0;
  for (Index i = 0; i < source.numNodes(); ++i)
    sum += costs[source.kind[i]][choice[i]];
  for (const Source::Pair &pair : source.pairs)
    sum += source.tables[pair.table]->at(choice[pair.u], choice[pair.v]);
  return sum;
}

double leastOf(const Source &source, const KindCosts &costs, const Domains &domains) {
  double sum = 0;
  for (Index i = 0; i < source.numNodes(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (Index s : domains.at(i))
      least = std::min(least, costs[source.kind[i]][s]);
    sum += least;
  }
  std::unordered_map<Key, double, KeyHash> known; // by table and domains
  for (const Source::Pair &pair : source.pairs) {
    auto [it, isNew] = known.try_emplace({pair.table, domains.of[pair.u], domains.of[pair.v]},
                                         std::numeric_limits<double>::infinity());
    if (isNew)
      for (Index a : domains.at(pair.u))
        for (Index b : domains.at(pair.v))
          it->second = std::min(it->second, source.tables[pair.table]->at(a, b));
    sum += it->second;
  }
  return sum;
}

namespace {

/// Work of a bucket that takes well under a second.
constexpr double mostWork = 1e11, mostWorkOnce = 1e9;
/// The initial size to which buckets are split; it doubles while there is time.
constexpr double splitTo = 2e6;

/// Relative bound on accumulated rounding errors of a cost.
constexpr double rounding = 1e-9;

/// The relative gap from which alternative searches for a choice are tried.
constexpr double wideGap = 0.01;

/// Entries of tables for a problem with joined coordinates: well under a second.
constexpr double joinedWork = 2e9, joinedWorkOnce = 2e7;

/// Entries of tables that are computed without a search for a better plan, and comparisons of
/// strategies before that, per entry.
constexpr double workAtOnce = 5e8, comparedPerWork = 0.02;

/// Sums without progress after which the search stops; the work of planning per node; the part of
/// the gap that counts as progress.
constexpr double mostIdleWork = 5e9, workPerNode = 2e5, leastProgress = 0.01;

/// Sums of the tables that replace nodes.
constexpr double workToReduce = 1e9;

/// Work from which the search for a better plan, which takes milliseconds, pays off.
constexpr double workToPlan = 1e8;

bool fits(const Plan &plan, const Options &options, Depth depth) {
  return plan.largest <= options.tableLimit && plan.total <= options.totalLimit &&
         plan.work <= (depth == Depth::once ? mostWorkOnce : mostWork);
}

/// The plan with the least work among a few orders. Which of them folds repeated layers best is
/// known only once they are made.
Plan bestPlan(const Model &model, const Options &options, Depth depth, const Deadline &deadline) {
  PlanOptions attempt;
  attempt.tableLimit = std::min(attempt.tableLimit, options.tableLimit);
  Plan best = makePlan(model, attempt);
  if (best.work < workToPlan)
    return best;
  for (EliminationOrder order : {EliminationOrder::growth, EliminationOrder::bucket})
    for (double limit : {1e7, 1e6}) {
      if (deadline.isOver())
        return best;
      attempt.order = order;
      attempt.tableLimit = std::min(limit, options.tableLimit);
      Plan other = makePlan(model, attempt);
      // Lazy buckets do less than their predicted work, so a small predicted gain is unreliable.
      bool isBetter = other.work < 0.4 * best.work ||
                      (other.work < best.work && other.total < 0.5 * best.total);
      bool otherFits = fits(other, options, depth);
      if (otherFits != fits(best, options, depth) ? otherFits : isBetter)
        best = std::move(other);
    }
  return best;
}

struct Open {
  Domains domains;
  double bound;
  Index branchOn;
  int64_t number; ///< ties go to the oldest
  bool operator<(const Open &other) const {
    return bound != other.bound ? bound > other.bound : number > other.number;
  }
};

class Search {
public:
  Search(const Source &source, const KindCosts &costs, const Options &options,
         const Deadline &deadline, Depth depth)
      : source(source), costs(costs), options(options), deadline(deadline), depth(depth) {}

  Bounded run(Domains domains, std::vector<int64_t> start);

private:
  void improve(const std::vector<int64_t> &choice);
  void explore(Domains domains, double parentBound);
  void noteProgress();
  double leastOpen() const {
    return open.empty() ? best.bound : std::min(best.bound, open.top().bound);
  }
  bool isWithin(double gap) const { return best.cost - bound <= gap * std::abs(best.cost); }
  Domains beginCoarsely(const Domains &all);

  const Source &source;
  const KindCosts &costs;
  const Options &options;
  const Deadline &deadline;
  Depth depth;
  Bounded best;
  double bound = -std::numeric_limits<double>::infinity(); ///< of every choice, by messages
  std::priority_queue<Open> open;
  int64_t numOpened = 0;
  double idleWork = 0, lastGap = std::numeric_limits<double>::infinity();
};

void Search::improve(const std::vector<int64_t> &choice) {
  double cost = costOf(source, costs, choice);
  if (best.choice.empty() || cost < best.cost) {
    best.choice = choice;
    best.cost = cost;
  }
}

/// Solves a part of the space, or bounds it and queues it.
void Search::explore(Domains domains, double parentBound) {
  if (deadline.isOver()) {
    best.stoppedByTime = true;
    open.push({std::move(domains), parentBound, -1, numOpened++});
    return;
  }
  Reduced reduced(source, costs, domains, workToReduce);
  if (reduced.problem().nodes.empty()) {
    improve(reduced.expand({}));
    best.bound = std::min(best.bound, std::max(parentBound, reduced.constant()));
    return;
  }
  Source rest(reduced.problem());
  KindCosts restCosts = costsOf(rest);
  Domains left = removeDominated(rest, restCosts, allStrategies(rest), false, deadline);
  Model model(rest, restCosts, left, true);
  Plan plan = bestPlan(model, options, depth, deadline);
  idleWork += workPerNode * rest.numNodes();
  bool isExact = fits(plan, options, depth);
  if (!isExact && depth == Depth::once) {
    open.push({std::move(domains), parentBound, -1, numOpened++});
    return;
  }
  if (!isExact) {
    PlanOptions attempt;
    attempt.tableLimit = std::min(attempt.tableLimit, options.tableLimit);
    attempt.prune = false;
    attempt.splitAt = std::min(splitTo, options.tableLimit);
    plan = makePlan(model, attempt);
    isExact = plan.split.empty();
  }
  // Split buckets are small, but may together exceed memory: such a part is only branched on.
  bool isHeld = plan.total <= options.totalLimit;
  isExact &= isHeld;
  double bound = parentBound;
  if (isHeld) {
    idleWork += plan.work;
    std::optional<Optimum> found = eliminate(model, plan, deadline);
    if (!found) {
      best.stoppedByTime = true;
      open.push({std::move(domains), parentBound, -1, numOpened++});
      return;
    }
    found->cost += reduced.constant();
    found->choice = reduced.expand(found->choice);
    improve(found->choice);
    if (isExact)
      found->cost = std::max(found->cost, costOf(source, costs, found->choice));
    bound = std::max(parentBound, found->cost);
  }
  if (isExact) {
    best.bound = std::min(best.bound, bound);
    return;
  }
  // Branch on the split node with the fewest strategies, whose halves change most.
  Index branchOn = -1;
  for (Index node : plan.split)
    if (left.at(node).size() > 1 &&
        (branchOn < 0 || rest.neighbours[node].size() > rest.neighbours[branchOn].size()))
      branchOn = node;
  if (branchOn < 0)
    for (Index i = 0; i < rest.numNodes() && branchOn < 0; ++i)
      if (left.at(i).size() > 1)
        branchOn = i;
  if (branchOn < 0) {
    best.bound = std::min(best.bound, best.cost);
    return;
  }
  for (Index i = 0; i < rest.numNodes(); ++i) {
    Index node = reduced.nodes()[i];
    Domain kept;
    for (Index s : left.at(i))
      kept.push_back(domains.at(node)[s]);
    domains.of[node] = domains.intern(kept);
  }
  open.push({std::move(domains), bound, reduced.nodes()[branchOn], numOpened++});
}

/// Parts of the space without progress count as idle work.
void Search::noteProgress() {
  double gap = best.cost - std::max(bound, leastOpen());
  if (gap < lastGap * (1 - leastProgress)) {
    idleWork = 0;
    lastGap = gap;
  }
}

/// Computes the bound and the choice by messages; returns the strategies that a cheaper choice may
/// have.
Domains Search::beginCoarsely(const Domains &all) {
  // A plan is needed even if the time is over.
  Deadline extra(options.timeLimit / 4);
  const Deadline &until = deadline.isOver() ? extra : deadline;
  Domains remaining;
  Bounded coarse = minimiseCoarsely(source, costs, all, until, &remaining);
  improve(coarse.choice);
  bound = std::max(coarse.bound, leastOf(source, costs, all));
  if (bound >= best.cost - wideGap * std::abs(best.cost))
    return remaining;
  if (auto joined = minimiseOverJoinedCoordinates(
          source, costs, all, depth == Depth::once ? joinedWorkOnce : joinedWork, until))
    improve(*joined);
  return remaining;
}

Bounded Search::run(Domains domains, std::vector<int64_t> start) {
  if (!start.empty())
    improve(start);
  if (auto small = minimiseIfSmall(source, costs, domains, options, deadline, workAtOnce))
    return std::move(*small);
  Domains all = domains;
  Domains remaining = beginCoarsely(all);
  best.bound = std::numeric_limits<double>::infinity(); // the least bound of finished parts
  bool isEnough = source.numNodes() > largeProblem && isWithin(largeGap);
  if (!isEnough && !isWithin(rounding)) {
    // Cheaper choices are among these strategies, so their bound is a bound of the whole space.
    explore(std::move(remaining), bound);
  }
  while (depth == Depth::full && !open.empty() && !best.stoppedByTime && idleWork < mostIdleWork) {
    Open part = open.top();
    if (part.bound >= best.cost - rounding * std::abs(best.cost))
      break;
    open.pop();
    const Domain whole = part.domains.at(part.branchOn);
    // The strategies of the best choice are explored first, in isolation.
    auto taken = best.choice.empty()
                     ? whole.end()
                     : std::find(whole.begin(), whole.end(), best.choice[part.branchOn]);
    Domain one, rest;
    for (auto it = whole.begin(); it != whole.end(); ++it)
      (taken != whole.end() ? it == taken : it - whole.begin() < std::ssize(whole) / 2)
          ? one.push_back(*it)
          : rest.push_back(*it);
    for (const Domain &half : {one, rest}) {
      Domains next = part.domains;
      next.of[part.branchOn] = next.intern(half);
      explore(std::move(next), part.bound);
    }
    noteProgress();
  }
  double least = isEnough ? bound : leastOpen();
  bound = std::max(bound, std::min(least, best.cost));
  best.bound = bound >= best.cost - rounding * std::abs(best.cost) ? best.cost : bound;
  return std::move(best);
}

} // namespace

/// The best choice of these domains, if the work and the tables are within the limits.
static std::optional<Optimum> eliminateWithin(const Source &source, const KindCosts &costs,
                                              const Domains &domains, const Options &options,
                                              const Deadline &deadline, double mostWork) {
  Model model(source, costs, domains, true);
  PlanOptions attempt;
  attempt.workLimit = mostWork;
  Plan plan = makePlan(model, attempt);
  if (plan.work > mostWork || plan.largest > options.tableLimit ||
      plan.total > options.totalLimit || deadline.isOver())
    return std::nullopt;
  return eliminate(model, plan, deadline);
}

std::optional<Bounded> minimiseIfSmall(const Source &source, const KindCosts &costs,
                                       const Domains &domains, const Options &options,
                                       const Deadline &deadline, double mostWork) {
  double compared = 0;
  for (const EdgeTable *table : source.tables)
    compared += static_cast<double>(table->rows + table->columns) * table->rows * table->columns;
  if (compared > comparedPerWork * mostWork)
    return std::nullopt;
  std::vector<int64_t> choice;
  if (source.numNodes() <= largeProblem) {
    Domains left = removeDominated(source, costs, domains, false, deadline);
    std::optional<Optimum> found =
        eliminateWithin(source, costs, left, options, deadline, mostWork);
    if (!found)
      return std::nullopt;
    choice = std::move(found->choice);
  } else {
    // Planning takes time linear in the problem: thin parts are removed first.
    Reduced reduced(source, costs, domains, mostWork);
    if (!reduced.problem().nodes.empty()) {
      Source rest(reduced.problem());
      KindCosts restCosts = costsOf(rest);
      Domains left = removeDominated(rest, restCosts, allStrategies(rest), false, deadline);
      std::optional<Optimum> found =
          eliminateWithin(rest, restCosts, left, options, deadline, mostWork);
      if (!found)
        return std::nullopt;
      choice = std::move(found->choice);
    }
    choice = reduced.expand(choice);
  }
  Bounded result{choice, costOf(source, costs, choice), 0, false};
  result.bound = result.cost;
  return result;
}

Bounded minimise(const Source &source, const KindCosts &costs, Domains domains,
                 const Options &options, const Deadline &deadline, std::vector<int64_t> start,
                 Depth depth) {
  return Search(source, costs, options, deadline, depth).run(std::move(domains), std::move(start));
}

} // namespace tessera::solver
