//===- BudgetSearch.cpp - Search under a memory budget --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetSearch.h"

#include "tessera/Support/Bytes.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Number of candidate plans: under a budget, and for the least memory.
static constexpr int kRounds = 8, kLeastRounds = 12, kQuickRounds = 2;
/// Limit on their total number of nodes. A count, so that the plan does not depend on the speed of
/// the machine.
static constexpr int64_t kLeastNodes = 60'000;
/// Largest problem in which equally fast plans are compared by memory.
static constexpr size_t kMostLowered = 10'000;

BudgetSearch::BudgetSearch(func::FuncOp function, StrategyGraph &strategies,
                           const PropagationGraph &graph, const SearchSettings &settings,
                           std::chrono::steady_clock::time_point begin)
    : function(function), strategies(strategies), graph(graph), settings(settings),
      requested(settings.solver.memoryBudget), begin(begin) {}

double BudgetSearch::left() const {
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return settings.solver.timeLimit - elapsed.count();
}

solver::Expected<solver::Solution> BudgetSearch::solve(const solver::Problem &problem,
                                                       const solver::Options &options) {
  solver::Expected<solver::Solution> solved = solver::solve(problem, options);
  if (auto *solution = std::get_if<solver::Solution>(&solved))
    cpuSeconds += solution->cpuSeconds;
  return solved;
}

FailureOr<solver::Solution> BudgetSearch::solve(double budget) {
  solver::Options options = settings.solver;
  options.memoryBudget = budget;
  options.timeLimit = std::max(0.01, left());
  solver::Expected<solver::Solution> solved = solve(strategies.problem(), options);
  if (auto *error = std::get_if<solver::Error>(&solved))
    return function.emitError() << error->message;
  return std::get<solver::Solution>(std::move(solved));
}

const PlanLiveness &BudgetSearch::livesOf(const std::vector<int64_t> &choice) {
  if (!lives || choice != livesChoice) {
    lives.emplace(function, graph, strategies, choice);
    livesChoice = choice;
  }
  return *lives;
}

BudgetSearch::KeptWeights BudgetSearch::keptAt(const PlanLiveness &lives, int64_t time,
                                               bool sendsAgain, bool withHandedOn) const {
  KeptWeights kept;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const PlanLiveness::LiveRange &life = lives.of(static_cast<int64_t>(t));
    bool isKept = (life.kind == Liveness::Kind::own ||
                   (withHandedOn && life.kind == Liveness::Kind::inside)) &&
                  life.from <= time && time <= life.to;
    bool isArgument = life.from == 0, hasPlace = strategies.hasPlace(static_cast<int64_t>(t));
    bool isRead = !sendsAgain || !isArgument;
    for (int64_t n : graph.nodesOf[t])
      for (size_t i = 0; i < graph.nodes[n].rule.operands.size(); ++i)
        if (graph.nodes[n].tensors[i] == static_cast<int64_t>(t)) {
          auto [from, until] = lives.readOf(n, i);
          isRead |= from <= time && time <= until;
        }
    kept.atHome.push_back(isKept && (isArgument || !hasPlace));
    kept.atPlace.push_back(isKept && isRead);
  }
  return kept;
}

/// Records a plan if it is the cheapest that fits, or the one with the least memory.
void BudgetSearch::consider(const solver::Solution &solution) {
  const PlanLiveness &lives = livesOf(solution.choice);
  Fit fit = fitInto(requested, strategies, graph, lives, solution.choice);
  solver::Solution plan = solution;
  plan.cost += fit.seconds;
  if (fit.peak.bytes <= requested && (!best || plan.cost < best->cost))
    best = plan;
  if (!least || fit.peak.bytes < leastPeak.bytes) {
    least = plan;
    leastPeak = fit.peak;
  }
}

/// The same for a choice without a solution, also with all possible rematerialization.
Peak BudgetSearch::considerLeast(const std::vector<int64_t> &choice) {
  solver::Solution solution;
  solution.choice = choice;
  solution.cost = strategies.problem().cost(choice);
  consider(solution);
  Fit fit = fitInto(0, strategies, graph, livesOf(choice), choice);
  if (fit.peak.bytes < leastPeak.bytes) {
    least = solution;
    least->cost += fit.seconds;
    leastPeak = fit.peak;
  }
  return fit.peak;
}

/// Among equally fast plans prefers the one with less memory.
void BudgetSearch::reduceMemoryAtEqualCost(const solver::Solution &fast) {
  if (!strategies.problem().pins.empty() || settings.solver.mode == solver::Mode::completion ||
      best->choice != fast.choice)
    return;
  std::vector<int64_t> lower =
      dist::reduceMemoryAtEqualCost(graph, strategies, livesOf(fast.choice), fast.choice);
  if (lower == fast.choice)
    return;
  Peak before = peakOf(strategies, graph, livesOf(fast.choice), fast.choice);
  if (peakOf(strategies, graph, livesOf(lower), lower).bytes >= before.bytes)
    return;
  best->choice = lower;
  best->cost = strategies.problem().cost(lower);
}

/// Plans whose memory at the worst times of the previous plans is within the budget. A smaller
/// budget compensates for terms that the solvers' sum omits (copies for single users).
void BudgetSearch::solveAtTimes(const solver::Solution &first, bool sendsAgain) {
  std::set<int64_t> times;
  double given = requested;
  std::vector<int64_t> choice = first.choice;
  int64_t time = peakOf(strategies, graph, livesOf(choice), choice).time;
  for (int round = 0; round < kRounds && left() > 0; ++round) {
    if (!times.insert(time).second)
      given *= 0.93;
    KeptWeights kept = keptAt(livesOf(choice), time, sendsAgain, false);
    strategies.setMemory(kept.atHome, kept.atPlace);
    double smallest = 0;
    for (size_t node = 0; node < strategies.problem().nodes.size(); ++node)
      smallest += strategies.problem().leastMemory(static_cast<int64_t>(node));
    FailureOr<solver::Solution> next = solve(std::max(given, smallest * (1 + 1e-9)));
    if (failed(next))
      return;
    choice = next->choice;
    consider(*next);
    Fit fit = fitInto(sendsAgain ? requested : std::numeric_limits<double>::infinity(), strategies,
                      graph, livesOf(choice), choice);
    if (fit.peak.bytes <= requested)
      return;
    time = fit.peak.time;
  }
}

/// Plans of least memory: times have weights, which grow at the peak of each plan (N. Littlestone
/// and M. Warmuth, "The weighted majority algorithm", 1994).
void BudgetSearch::minimiseMemory(DescentEffort work) {
  std::vector<double> atHome(graph.tensors.size(), 0), atPlace = atHome;
  double total = 0;
  auto addTime = [&](const PlanLiveness &lives, int64_t time, double weight) {
    KeptWeights kept = keptAt(lives, time, true, true);
    for (size_t t = 0; t < atHome.size(); ++t) {
      atHome[t] += weight * kept.atHome[t];
      atPlace[t] += weight * kept.atPlace[t];
    }
    total += weight;
  };
  addTime(livesOf(least->choice), leastPeak.time, 1);
  int64_t rounds = kLeastNodes / std::max<int64_t>(1, std::ssize(strategies.problem().nodes));
  rounds =
      std::clamp<int64_t>(rounds, 1, work == DescentEffort::quick ? kQuickRounds : kLeastRounds);
  for (int round = 0; round < rounds && !best && (round == 0 || left() > 0); ++round) {
    std::vector<double> home = atHome, place = atPlace;
    for (size_t t = 0; t < home.size(); ++t) {
      home[t] /= total;
      place[t] /= total;
    }
    strategies.setMemory(home, place);
    // Bytes are costs here; seconds decide between equals.
    solver::Problem problem = strategies.problem();
    constexpr double kSeconds = 1e-3;
    for (solver::Node &node : problem.nodes)
      for (size_t s = 0; s < node.cost.size(); ++s)
        node.cost[s] = node.memory[s] + kSeconds * node.cost[s];
    for (solver::EdgeTable &table : problem.tables)
      for (double &cost : table.cost)
        cost *= kSeconds;
    solver::Options options;
    options.mode = solver::Mode::recursive_programming;
    options.timeLimit = std::max(0.1, left());
    solver::Expected<solver::Solution> solved = solve(problem, options);
    solver::Solution solution = std::get<solver::Solution>(std::move(solved));
    Peak peak = considerLeast(solution.choice);
    addTime(livesOf(solution.choice), peak.time, 0.5 * total);
  }
  if (best)
    return;
  std::vector<int64_t> lower =
      descendByPeakMemory(function, graph, strategies, least->choice, std::max(0.1, left()), work);
  considerLeast(lower);
}

std::string BudgetSearch::nameOf(int64_t tensor) const {
  if (tensor < 0)
    return {};
  const TensorState &state = graph.tensors[tensor];
  std::string text;
  llvm::raw_string_ostream os(text);
  if (state.name.empty())
    os << "a value of type '" << state.type << "'";
  else
    os << "'" << state.name << "'";
  return text;
}

std::string dist::textOf(const MemoryBound &bound) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "; no plan needs less than " << exactBytesText(std::ceil(bound.bytes)) << ", for arguments";
  if (bound.op)
    os << " and while '" << bound.op->getName() << "' runs";
  return text;
}

const MemoryBound &BudgetSearch::bound() {
  if (!proved)
    proved = provedMemory(function, graph, strategies);
  return *proved;
}

solver::Solution BudgetSearch::refuse(const std::vector<int64_t> &alone) {
  requested = 1;
  considerLeast(alone);
  minimiseMemory(DescentEffort::quick);
  tookLeast = true;
  solver::Solution plan = *least;
  plan.lowerBound = strategies.leastCompute();
  plan.stoppedByTime = left() <= 0;
  return plan;
}

FailureOr<solver::Solution> BudgetSearch::run(const std::vector<int64_t> &alone) {
  bool isBelowBound = std::isfinite(requested) && requested < bound().bytes;
  if (isBelowBound && !settings.minimisesMemory)
    return refuse(alone);
  FailureOr<solver::Solution> free = solve(std::numeric_limits<double>::infinity());
  if (failed(free))
    return failure();
  double lowerBound = free->lowerBound;
  solver::Solution propagated = *free;
  propagated.choice = alone;
  propagated.cost = strategies.problem().cost(alone);
  if (!std::isfinite(requested)) {
    best = free->cost <= propagated.cost ? *free : propagated;
    if (strategies.problem().nodes.size() <= kMostLowered)
      reduceMemoryAtEqualCost(*free);
    return *best;
  }
  consider(propagated);
  consider(*free);
  bool fits = peakOf(strategies, graph, livesOf(free->choice), free->choice).bytes <= requested;
  for (bool sendsAgain : {true, false})
    if (!fits && !isBelowBound)
      solveAtTimes(*free, sendsAgain);
  if (!best)
    minimiseMemory(settings.minimisesMemory ? DescentEffort::full : DescentEffort::budget);
  tookLeast = !best;
  solver::Solution plan = best ? *best : *least;
  // The rounds' bounds hold only for their memory terms; this one holds for any plan.
  plan.lowerBound = std::min(lowerBound, plan.cost);
  plan.stoppedByTime = free->stoppedByTime || left() <= 0;
  return plan;
}
