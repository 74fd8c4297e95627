//===- LeastMemory.cpp - Local search for plans with less memory ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/LeastMemory.h"

#include <chrono>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Limit on the entries (bytes by time) that descents visit, about half a second; the entries
/// charged per tensor, and per device for planning its collectives.
static constexpr int64_t kMostEntries = 150'000'000, kEntriesOfTensor = 1000, kEntriesOfDevice = 64;
/// The same if the objective is time, or if no plan fits.
static constexpr int64_t kMostFree = 10'000'000, kMostQuick = 5'000'000;
/// Limit on the plans with exact live ranges, and on their total number of ops: for the least
/// memory, and under a budget.
static constexpr int64_t kMostTries = 600, kMostOps = 200'000, kMostOpsInBudget = 20'000;

namespace {

/// The remaining work. A count, so that the plan does not depend on the speed of the machine, and
/// the user's time limit.
struct Effort {
  using Clock = std::chrono::steady_clock;
  int64_t left; ///< entries (bytes by time)
  Clock::time_point until;

  bool isOver() const { return left <= 0 || Clock::now() > until; }
};

class Descent {
public:
  Descent(const PropagationGraph &graph, const StrategyGraph &strategies, const PlanLiveness &lives,
          std::vector<int64_t> choice, Effort &effort, bool onlyEnds = false);
  /// Limits the cost of all further plans.
  void limitCost(double seconds);
  /// Applies changes until none improves the plan.
  void run();
  const std::vector<int64_t> &plan() const { return choice; }
  /// The peak, then the closeness of other times to it: smaller is better.
  struct Score {
    double peak, pressure;
    bool isBetterThan(const Score &other) const {
      if (peak != other.peak)
        return peak < other.peak;
      return pressure < other.pressure * (1 - 1e-9);
    }
  };
  Score score() const;
  /// Nodes with a choice that produce or read tensors live at the worst time.
  std::vector<int64_t> nodesAtPeak() const;

private:
  struct Piece {
    int64_t from, to;
    double bytes;
  };

  std::vector<Piece> piecesOf(int64_t tensor) const;
  void add(const std::vector<Piece> &pieces, double sign);
  void set(int64_t node, int64_t strategy);
  double costAround(int64_t node) const;
  bool improveAlone(int64_t node);
  bool improveInPairs(int64_t node);

  const PropagationGraph &graph;
  const StrategyGraph &strategies;
  const PlanLiveness &lives;
  std::vector<int64_t> choice;
  Effort &effort;
  bool onlyEnds;                                   ///< as buffersOf
  std::vector<std::vector<int64_t>> tensorsOf;     ///< by node of the problem, ascending
  std::vector<std::vector<int64_t>> nodesOfTensor; ///< of the problem, by tensor, ascending
  std::vector<std::vector<Piece>> pieces;          ///< by tensor
  MemoryProfile profile;
  Score now{};
  double mostSeconds = std::numeric_limits<double>::infinity(), seconds = 0; ///< of the plan
  std::vector<std::vector<size_t>> edgesOf; ///< by node of the problem, where cost is limited
};

Descent::Descent(const PropagationGraph &graph, const StrategyGraph &strategies,
                 const PlanLiveness &lives, std::vector<int64_t> given, Effort &effort,
                 bool onlyEnds)
    : graph(graph), strategies(strategies), lives(lives), choice(std::move(given)), effort(effort),
      onlyEnds(onlyEnds), tensorsOf(choice.size()), nodesOfTensor(graph.tensors.size()),
      profile(lives.end()) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    auto tensor = static_cast<int64_t>(t);
    std::set<int64_t> nodes;
    for (int64_t n : graph.nodesOf[t])
      nodes.insert(strategies.problemNodeOf(n));
    nodes.insert(strategies.homeOf(tensor));
    nodes.insert(strategies.placeNodeOf(tensor));
    nodes.erase(-1);
    nodesOfTensor[t].assign(nodes.begin(), nodes.end());
    for (int64_t node : nodes)
      tensorsOf[node].push_back(tensor);
    pieces.push_back(piecesOf(tensor));
    add(pieces.back(), 1);
  }
  now = score();
}

/// The live ranges of a tensor if every collective runs late, and again for each reader.
std::vector<Descent::Piece> Descent::piecesOf(int64_t tensor) const {
  std::vector<Piece> result;
  int64_t devices = onlyEnds ? 0 : graph.tensors[tensor].mesh->numDevices();
  effort.left -= kEntriesOfTensor + kEntriesOfDevice * devices;
  std::vector<LiveBuffer> list =
      buffersOf(tensor, strategies, graph, lives, choice, nullptr, onlyEnds);
  // The first piece of each entry of the list.
  std::vector<size_t> at;
  for (const LiveBuffer &kept : list) {
    at.push_back(result.size());
    double own = kept.base >= 0 ? list[kept.base].bytes : 0;
    if (kept.reads.empty() || own > kept.bytes) {
      result.push_back({kept.from, kept.to, kept.bytes});
      if (kept.temporary > 0)
        result.push_back({kept.from, kept.from, kept.temporary});
      continue;
    }
    bool isIdle = own < kept.bytes; // while it is idle between its reads
    int64_t end = -1;
    for (auto [from, to] : kept.reads) {
      from = std::max(from, end + 1);
      if (!isIdle && end >= 0)
        from = end + 1;
      if (from <= to)
        result.push_back({from, to, kept.bytes});
      if (from <= to && kept.temporary > 0 && (isIdle || end < 0))
        result.push_back({from, from, kept.temporary});
      end = std::max(end, to);
    }
    if (kept.base >= 0 && list[kept.base].reads.empty()) {
      int64_t sent = isIdle ? kept.reads.back().first : kept.reads.front().first;
      Piece &base = result[at[kept.base]];
      base.to = std::max(base.to, sent);
    }
  }
  return result;
}

void Descent::add(const std::vector<Piece> &list, double sign) {
  for (const Piece &piece : list)
    profile.add(piece.from, piece.to, sign * piece.bytes);
  for (const Piece &piece : list)
    effort.left -= piece.to - piece.from + 1;
}

Descent::Score Descent::score() const {
  Score result{profile.peak(), 0};
  effort.left -= std::ssize(profile.byTime());
  for (double at : profile.byTime()) {
    double part = at / result.peak;
    part *= part;
    part *= part;
    part *= part;
    result.pressure += part * part;
  }
  return result;
}

void Descent::limitCost(double most) {
  const solver::Problem &problem = strategies.problem();
  mostSeconds = most;
  seconds = problem.cost(choice);
  edgesOf.resize(choice.size());
  for (auto [index, edge] : llvm::enumerate(problem.edges))
    for (int64_t node : {edge.from, edge.to})
      edgesOf[node].push_back(index);
}

/// The cost of a node and its edges; 0 if the cost is not limited.
double Descent::costAround(int64_t node) const {
  if (edgesOf.empty())
    return 0;
  const solver::Problem &problem = strategies.problem();
  double cost = problem.nodes[node].cost[choice[node]];
  for (size_t index : edgesOf[node]) {
    const solver::Edge &edge = problem.edges[index];
    const solver::EdgeTable &table = problem.tables[edge.table];
    cost += table.cost[choice[edge.from] * table.columns + choice[edge.to]];
  }
  return cost;
}

void Descent::set(int64_t node, int64_t strategy) {
  seconds -= costAround(node);
  choice[node] = strategy;
  seconds += costAround(node);
  for (int64_t tensor : tensorsOf[node]) {
    add(pieces[tensor], -1);
    pieces[tensor] = piecesOf(tensor);
    add(pieces[tensor], 1);
  }
}

std::vector<int64_t> Descent::nodesAtPeak() const {
  int64_t worst = profile.worst();
  std::set<int64_t> nodes;
  for (size_t t = 0; t < pieces.size(); ++t)
    if (llvm::any_of(pieces[t],
                     [&](const Piece &piece) { return piece.from <= worst && worst <= piece.to; }))
      nodes.insert(nodesOfTensor[t].begin(), nodesOfTensor[t].end());
  return {nodes.begin(), nodes.end()};
}

bool Descent::improveAlone(int64_t node) {
  int64_t before = choice[node], best = before;
  for (int64_t s = 0; s < strategies.numStrategies(node) && !effort.isOver(); ++s) {
    if (s == before)
      continue;
    choice[node] = s;
    double there = costAround(node);
    choice[node] = best;
    if (seconds + there - costAround(node) > mostSeconds)
      continue;
    set(node, s);
    if (Score next = score(); next.isBetterThan(now)) {
      now = next;
      best = s;
    } else {
      set(node, best);
    }
  }
  return best != before;
}

bool Descent::improveInPairs(int64_t node) {
  int64_t before = choice[node];
  std::set<int64_t> others;
  for (int64_t tensor : tensorsOf[node])
    others.insert(nodesOfTensor[tensor].begin(), nodesOfTensor[tensor].end());
  others.erase(node);
  for (int64_t s = 0; s < strategies.numStrategies(node); ++s) {
    if (s == before)
      continue;
    set(node, s);
    for (int64_t other : others) {
      if (effort.isOver())
        break;
      if (improveAlone(other))
        return true;
    }
  }
  set(node, before);
  return false;
}

void Descent::run() {
  bool isBetter = true;
  while (isBetter && !effort.isOver()) {
    isBetter = false;
    for (int64_t node : nodesAtPeak())
      isBetter |= improveAlone(node);
    if (isBetter)
      continue;
    for (int64_t node : nodesAtPeak())
      if (improveInPairs(node)) {
        isBetter = true;
        break;
      }
  }
}

} // namespace

/// The same with exact live ranges after every change, which takes longer.
static void descendExactly(func::FuncOp function, const PropagationGraph &graph,
                           const StrategyGraph &strategies, std::vector<int64_t> &choice,
                           Effort effort, int64_t mostOps) {
  int64_t devices = 1;
  for (const TensorState &state : graph.tensors)
    devices = std::max(devices, state.mesh->numDevices());
  int64_t most = mostOps / std::max<int64_t>(1, std::ssize(graph.nodes)) / ((devices + 15) / 16);
  int64_t tries = std::min(kMostTries, most);
  std::vector<int64_t> nodes;
  auto scoreOf = [&](bool listNodes) {
    --tries;
    effort.left = 1;
    PlanLiveness lives(function, graph, strategies, choice);
    Descent descent(graph, strategies, lives, choice, effort);
    if (listNodes)
      nodes = descent.nodesAtPeak();
    return descent.score();
  };
  Descent::Score now = scoreOf(true);
  auto isOver = [&]() { return tries <= 0 || Effort::Clock::now() > effort.until; };
  auto change = [&](int64_t node, auto helps) {
    int64_t before = choice[node];
    for (int64_t s = 0; s < strategies.numStrategies(node) && !isOver(); ++s) {
      choice[node] = s;
      if (s != before && helps())
        return true;
    }
    choice[node] = before;
    return false;
  };
  auto isBetter = [&]() { return scoreOf(false).isBetterThan(now); };
  bool isDone = false;
  while (!isDone && !isOver()) {
    isDone = true;
    std::vector<int64_t> at = nodes;
    for (size_t i = 0; i < at.size() && isDone; ++i)
      isDone = !change(at[i], isBetter);
    for (size_t i = 0; i < at.size() && isDone; ++i)
      isDone = !change(at[i], [&]() {
        for (size_t j = i + 1; j < at.size(); ++j)
          if (change(at[j], isBetter))
            return true;
        return false;
      });
    now = scoreOf(true);
  }
}

std::vector<int64_t> dist::descendByPeakMemory(func::FuncOp function, const PropagationGraph &graph,
                                               const StrategyGraph &strategies,
                                               std::vector<int64_t> choice, double seconds,
                                               DescentEffort work) {
  constexpr int kMostDescents = 4;
  bool isQuick = work == DescentEffort::quick;
  auto most = std::chrono::duration<double>(seconds);
  Effort effort{isQuick ? kMostQuick : kMostEntries,
                Effort::Clock::now() + std::chrono::duration_cast<Effort::Clock::duration>(most)};
  for (int round = 0; round < kMostDescents && !effort.isOver(); ++round) {
    PlanLiveness lives(function, graph, strategies, choice);
    Descent descent(graph, strategies, lives, choice, effort, isQuick);
    descent.run();
    if (descent.plan() == choice)
      break;
    choice = descent.plan();
  }
  if (!isQuick)
    descendExactly(function, graph, strategies, choice, effort,
                   work == DescentEffort::full ? kMostOps : kMostOpsInBudget);
  return choice;
}

std::vector<int64_t> dist::reduceMemoryAtEqualCost(const PropagationGraph &graph,
                                                   const StrategyGraph &strategies,
                                                   const PlanLiveness &lives,
                                                   const std::vector<int64_t> &choice) {
  constexpr double kSame = 1e-9;
  Effort effort{kMostFree, Effort::Clock::time_point::max()};
  Descent descent(graph, strategies, lives, choice, effort, true);
  descent.limitCost(strategies.problem().cost(choice) * (1 + kSame));
  descent.run();
  return descent.plan();
}
