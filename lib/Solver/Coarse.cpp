//===- Coarse.cpp - A good plan in milliseconds ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First all equivalent nodes take the same strategy: one class represents those of all
// layers. Messages along edges, which also give a lower bound, select a few candidate
// strategies per class. If a gap remains, each coordinate of the strategies, coarsest
// first, is optimized over all its values. Then nodes choose individually among
// strategies that are good beside their neighbors'. Elimination solves each of these
// small problems.
//
//===----------------------------------------------------------------------===//

#include "ClassChoice.h"
#include "Dominance.h"
#include "Eliminate.h"
#include "Messages.h"
#include "Modes.h"
#include "Reduced.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

namespace tessera::solver {
namespace {

struct Effort {
  double goodGap, wideGap;    ///< relative: to stop at; above which more classes are tried
  std::vector<Index> classes; ///< numbers of classes to try, in order
  int sweeps, sweepsAtOnce;   ///< of messages: most, and between checks of the gain
  double goodGain, leastGain; ///< relative gains of the bound by `sweepsAtOnce` to continue: for a
                              ///< gap below, above `wideGap`
  double firstLimit;          ///< on the excess of candidates of classes, relative; 0: skip classes
  double work;                ///< entries of tables for an elimination over classes
  int refinements, mostRefined; ///< rounds of individual choice; nodes over all rounds
  int mostPlanned;              ///< nodes that choose individually if the gap is below `wideGap`
};
const Effort quickEffort{8e-3, 9e-3, {120, 1000, 6000}, 64, 8, 3e-3, 3e-4, 1e-2, 1e4, 6, 600, 4000};
const Effort thoroughEffort{1e-9, 1e-3, {1200, 6000}, 600, 16,     1e-7,
                            1e-7, 0,    5e7,          40,  100000, 4000};

/// In a large problem: the gain of the bound by `sweepsAtOnce` to continue, and the growth of
/// limits.
constexpr double goodGainIfLarge = 2e-5, growth = 4, growthIfLarge = 16;

/// Relative bound on accumulated rounding errors of a cost.
constexpr double rounding = 1e-9;

/// Candidate strategies when nodes choose individually.
constexpr size_t numForNodes = 5;

/// The first few positions by score, best first.
std::vector<Index> bestOf(const std::vector<double> &scores) {
  std::vector<Index> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  size_t few = std::min(numForNodes, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(few), order.end(),
      [&](Index a, Index b) { return scores[a] != scores[b] ? scores[a] < scores[b] : a < b; });
  order.resize(few);
  return order;
}

/// Nodes choose individually.
class Refinement {
public:
  Refinement(const Folded &folded, const KindCosts &costs)
      : folded(folded), source(folded.source), domains(folded.domains), costs(costs) {}

  /// The best individual choice of every node among the candidates of its class, as far as an
  /// elimination with small tables finds it.
  std::vector<int64_t> next(const std::vector<int64_t> &choice);
  /// The best choice among strategies whose belief is within a limit, or that are in `chosen`, by
  /// class; empty if that takes more work or time.
  std::optional<std::vector<int64_t>> within(const std::vector<std::vector<double>> &belief,
                                             double limit, const std::vector<Index> &chosen,
                                             double mostWork, const Deadline &deadline) const;

private:
  Domains inNodes(const std::vector<Domain> &positions) const;
  void collectCandidates(const std::vector<int64_t> &choice);

  const Folded &folded;
  const Source &source;
  const Domains &domains;
  const KindCosts &costs;
  std::vector<Domain> candidates; ///< by class, positions
};

/// Candidates of each class: the current choices of its nodes, and the best strategies given the
/// current choices of their neighbors; those of most nodes first.
void Refinement::collectCandidates(const std::vector<int64_t> &choice) {
  candidates.clear();
  std::vector<Index> position(choice.size());
  for (Index i = 0; i < source.numNodes(); ++i) {
    const Domain &domain = domains.at(i);
    position[i] = static_cast<Index>(std::lower_bound(domain.begin(), domain.end(), choice[i]) -
                                     domain.begin());
  }
  Interner numbers;
  std::vector<std::pair<Index, double>> contexts; // a representative node, number of nodes
  std::vector<std::map<Index, double>> wanted(folded.classes.size());
  for (Index i = 0; i < source.numNodes(); ++i) {
    wanted[folded.classOf[i]][position[i]] += 1;
    Key key{folded.classOf[i]};
    for (const Neighbour &other : source.neighbours[i])
      key.insert(key.end(), {other.table, other.isRow, position[other.node]});
    auto [number, isNew] = numbers.intern(key);
    if (isNew)
      contexts.push_back({i, 0});
    contexts[number].second += 1;
  }
  for (auto [node, count] : contexts) {
    const Domain &domain = domains.at(node);
    std::vector<double> scores;
    for (Index s : domain)
      scores.push_back(costs[source.kind[node]][s]);
    for (const Neighbour &other : source.neighbours[node]) {
      const EdgeTable &table = *source.tables[other.table];
      Index fixed = domains.at(other.node)[position[other.node]];
      for (size_t a = 0; a < domain.size(); ++a)
        scores[a] += other.isRow ? table.at(domain[a], fixed) : table.at(fixed, domain[a]);
    }
    std::vector<Index> order = bestOf(scores);
    for (size_t rank = 0; rank < order.size(); ++rank)
      wanted[folded.classOf[node]][order[rank]] += count / static_cast<double>(2 + rank);
  }
  for (size_t n = 0; n < folded.classes.size(); ++n) {
    std::vector<std::pair<double, Index>> order;
    for (auto [a, weight] : wanted[n])
      order.push_back({-weight, a});
    std::sort(order.begin(), order.end());
    // The most frequent current choices remain candidates.
    Domain domain;
    for (size_t rank = 0; rank < std::min(numForNodes, order.size()); ++rank)
      domain.push_back(order[rank].second);
    std::sort(domain.begin(), domain.end());
    candidates.push_back(std::move(domain));
  }
}

Domains Refinement::inNodes(const std::vector<Domain> &positions) const {
  Domains few;
  std::vector<Index> ofClass;
  for (size_t c = 0; c < positions.size(); ++c) {
    Domain set;
    for (Index a : positions[c])
      set.push_back(folded.all(folded.classes[c])[a]);
    ofClass.push_back(few.intern(set));
  }
  for (Index number : folded.classOf)
    few.of.push_back(ofClass[number]);
  return few;
}

std::vector<int64_t> Refinement::next(const std::vector<int64_t> &choice) {
  collectCandidates(choice);
  Model model(source, costs, inNodes(candidates), true);
  PlanOptions planOptions;
  planOptions.prune = false;
  planOptions.splitAt = 5e4;
  return eliminate(model, makePlan(model, planOptions), Deadline(1e9))->choice;
}

std::optional<std::vector<int64_t>>
Refinement::within(const std::vector<std::vector<double>> &belief, double limit,
                   const std::vector<Index> &chosen, double mostWork,
                   const Deadline &deadline) const {
  std::vector<Domain> few(belief.size());
  for (size_t c = 0; c < belief.size(); ++c)
    for (Index a = 0; a < std::ssize(belief[c]); ++a)
      if (belief[c][a] <= limit || a == chosen[c])
        few[c].push_back(a);
  Domains kept = inNodes(few);
  Reduced reduced(source, costs, kept, mostWork);
  if (reduced.problem().nodes.empty())
    return reduced.expand({});
  Source rest(reduced.problem());
  KindCosts left = costsOf(rest);
  Model model(rest, left, removeDominated(rest, left, allStrategies(rest), false, deadline), true);
  PlanOptions planOptions;
  planOptions.workLimit = mostWork;
  Plan plan = makePlan(model, planOptions);
  if (plan.work > mostWork || deadline.isOver())
    return std::nullopt;
  std::optional<Optimum> found = eliminate(model, plan, deadline);
  return found ? std::optional(reduced.expand(found->choice)) : std::nullopt;
}

/// Removes strategies whose excess over the bound exceeds the gap: no cheaper choice has them.
Domains withinGap(const Folded &folded, const Messages::Proof &proof, const Bounded &found) {
  double left = found.cost - proof.bound + rounding * std::abs(found.cost);
  Domains kept;
  std::vector<Index> ofClass;
  for (size_t c = 0; c < folded.classes.size(); ++c) {
    const Domain &domain = folded.all(folded.classes[c]);
    Domain set;
    for (size_t a = 0; a < domain.size(); ++a)
      if (proof.excess[c][a] <= left)
        set.push_back(domain[a]);
    ofClass.push_back(kept.intern(set.empty() ? domain : set));
  }
  for (Index number : folded.classOf)
    kept.of.push_back(ofClass[number]);
  return kept;
}

/// A limit on excess that leaves few strategies: a small part of the cost of a layer.
double leastLimit(const Folded &folded, double bound) {
  double layers = 1;
  for (const Folded::Class &each : folded.classes)
    if (!each.slots.empty())
      layers = std::max(layers, each.count);
  return 1e-6 * std::abs(bound) / layers;
}

/// Improved messages and the choice that they lead to, with the classes of the nodes.
class Attempt {
public:
  Attempt(const Source &source, const KindCosts &costs, const Domains &domains, Index classes)
      : folded(source, costs, domains, classes), messages(folded), uniform(folded),
        proof(messages.prove()) {}

  void run(const Effort &effort, const Deadline &deadline);

  Folded folded;
  Messages messages;
  ClassChoice uniform;
  Messages::Proof proof;
};

void Attempt::run(const Effort &effort, const Deadline &deadline) {
  auto isWithin = [&](double gap) {
    return uniform.cost() - proof.bound <= gap * std::abs(uniform.cost());
  };
  for (int sweeps = 0; sweeps < effort.sweeps && !isWithin(effort.goodGap) && !deadline.isOver();) {
    messages.sweep(effort.sweepsAtOnce);
    sweeps += effort.sweepsAtOnce;
    Messages::Proof better = messages.prove();
    uniform.consider(messages.round());
    double gain = better.bound - proof.bound;
    if (gain > 0)
      proof = std::move(better);
    bool isLarge = effort.firstLimit == 0 && folded.source.numNodes() > largeProblem;
    double enough = isLarge                    ? goodGainIfLarge
                    : isWithin(effort.wideGap) ? effort.goodGain
                                               : effort.leastGain;
    if (gain <= enough * std::abs(proof.bound))
      break;
  }
  if (effort.firstLimit > 0 && !isWithin(effort.goodGap))
    uniform.chooseWithin(messages.beliefs(), proof.bound, effort.firstLimit, effort.goodGap,
                         effort.work, deadline);
  if (effort.firstLimit > 0 && !isWithin(effort.wideGap))
    uniform.sweepAxes(effort.work);
}

} // namespace

Bounded minimiseCoarsely(const Source &source, const KindCosts &costs, const Domains &domains,
                         const Deadline &deadline, Domains *remaining) {
  const Effort &effort = remaining ? thoroughEffort : quickEffort;
  Bounded best{{}, 0, -std::numeric_limits<double>::infinity(), false};
  auto isWithin = [&](double gap) { return best.cost - best.bound <= gap * std::abs(best.cost); };
  auto consider = [&](std::vector<int64_t> choice) {
    double cost = costOf(source, costs, choice);
    bool isBetter = best.choice.empty() || cost < best.cost - rounding * std::abs(best.cost);
    if (isBetter) {
      best.choice = std::move(choice);
      best.cost = cost;
    }
    return isBetter;
  };
  bool isLarge = remaining && source.numNodes() > largeProblem;
  std::unique_ptr<Attempt> attempt;
  for (Index classes : effort.classes) {
    if (attempt && (isWithin(effort.wideGap) || deadline.isOver() || attempt->folded.isWhole))
      break;
    // In a small problem the loss at the borders of classes outweighs the time saved.
    if (remaining && source.numNodes() <= effort.classes.back())
      classes = effort.classes.back();
    attempt = std::make_unique<Attempt>(source, costs, domains, classes);
    attempt->run(effort, deadline);
    consider(attempt->folded.unfold(attempt->uniform.position()));
    best.bound = std::max(best.bound, attempt->proof.bound);
    // Limits grow while eliminations take negligible time.
    const std::vector<std::vector<double>> &belief = attempt->messages.beliefs();
    Refinement refinement(attempt->folded, costs);
    for (double limit = leastLimit(attempt->folded, best.bound);
         effort.firstLimit == 0 && !isWithin(effort.goodGap) && limit < best.cost - best.bound;
         limit *= isLarge ? growthIfLarge : growth) {
      auto next =
          refinement.within(belief, limit, attempt->uniform.position(), effort.work, deadline);
      if (!next)
        break;
      if ((!consider(std::move(*next)) || isLarge) && isWithin(effort.wideGap))
        break;
    }
  }
  Refinement refinement(attempt->folded, costs);
  // Planning takes time linear in the problem: large problems get one round.
  int rounds = std::clamp(effort.mostRefined / source.numNodes(), 1, effort.refinements);
  double goodGap = source.numNodes() > effort.mostPlanned ? effort.wideGap : effort.goodGap;
  for (int round = 0; round < rounds && !isWithin(goodGap) && !deadline.isOver(); ++round)
    if (!consider(refinement.next(best.choice)))
      break;
  if (remaining)
    *remaining = withinGap(attempt->folded, attempt->proof, best);
  if (isWithin(rounding))
    best.bound = best.cost;
  return best;
}

} // namespace tessera::solver
