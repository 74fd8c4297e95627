//===- LeastMemory.cpp - Plans that take less memory -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LeastMemory.h"

#include <chrono>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

class Descent {
public:
  using Clock = std::chrono::steady_clock;

  Descent(const PropagationGraph &graph, const StrategyGraph &strategies, const Lives &lives,
          std::vector<int64_t> choice, Clock::time_point until);
  /// Takes changes until none helps.
  void run();
  const std::vector<int64_t> &plan() const { return choice; }
  /// The peak, and how close other times come to it: smaller is better, in this order.
  struct Score {
    double peak, crowd;
    bool isBetterThan(const Score &other) const {
      if (peak != other.peak)
        return peak < other.peak;
      return crowd < other.crowd * (1 - 1e-9);
    }
  };
  Score score() const;
  /// Nodes that make or read what is kept at the worst time, and may change.
  std::vector<int64_t> nodesAtPeak() const;

private:
  struct Piece {
    int64_t from, to;
    double bytes;
  };

  std::vector<Piece> piecesOf(int64_t tensor) const;
  void add(const std::vector<Piece> &pieces, double sign);
  void set(int64_t node, int64_t strategy);
  bool improveAlone(int64_t node);
  bool improveInPairs(int64_t node);
  bool isOver() const { return Clock::now() > until; }

  const PropagationGraph &graph;
  const StrategyGraph &strategies;
  const Lives &lives;
  std::vector<int64_t> choice;
  Clock::time_point until;
  std::vector<std::vector<int64_t>> tensorsOf;     ///< by node of the problem, ascending
  std::vector<std::vector<int64_t>> nodesOfTensor; ///< of the problem, by tensor, ascending
  std::vector<std::vector<Piece>> pieces;          ///< by tensor
  std::vector<double> bytes;                       ///< by time
  Score now{};
};

Descent::Descent(const PropagationGraph &graph, const StrategyGraph &strategies, const Lives &lives,
                 std::vector<int64_t> given, Clock::time_point until)
    : graph(graph), strategies(strategies), lives(lives), choice(std::move(given)), until(until),
      tensorsOf(choice.size()), nodesOfTensor(graph.tensors.size()), bytes(lives.end() + 2, 0.0) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    auto tensor = static_cast<int64_t>(t);
    std::set<int64_t> nodes;
    for (int64_t n : graph.nodesOf[t])
      nodes.insert(strategies.problemNodeOf(n));
    nodes.insert(strategies.homeOf(tensor));
    nodes.erase(-1);
    nodesOfTensor[t].assign(nodes.begin(), nodes.end());
    for (int64_t node : nodes)
      tensorsOf[node].push_back(tensor);
    pieces.push_back(piecesOf(tensor));
    add(pieces.back(), 1);
  }
  now = score();
}

/// What is kept of a tensor where everything is sent late, and again for each reader.
std::vector<Descent::Piece> Descent::piecesOf(int64_t tensor) const {
  std::vector<Piece> result;
  std::vector<Kept> list = keptOf(tensor, strategies, graph, lives, choice);
  for (const Kept &kept : list) {
    double own = kept.isOfBase ? list.front().bytes : 0;
    if (kept.reads.empty() || own > kept.bytes) {
      result.push_back({kept.from, kept.to, kept.bytes});
      if (kept.onTheWay > 0)
        result.push_back({kept.from, kept.from, kept.onTheWay});
      continue;
    }
    bool isIdle = own < kept.bytes; // while it lies between its reads
    int64_t end = -1;
    for (auto [from, to] : kept.reads) {
      from = std::max(from, end + 1);
      if (!isIdle && end >= 0)
        from = end + 1;
      if (from <= to)
        result.push_back({from, to, kept.bytes});
      if (from <= to && kept.onTheWay > 0 && (isIdle || end < 0))
        result.push_back({from, from, kept.onTheWay});
      end = std::max(end, to);
    }
    if (kept.isOfBase) {
      int64_t sent = isIdle ? kept.reads.back().first : kept.reads.front().first;
      result.front().to = std::max(result.front().to, sent);
    }
  }
  return result;
}

void Descent::add(const std::vector<Piece> &list, double sign) {
  for (const Piece &piece : list)
    for (int64_t time = piece.from; time <= piece.to; ++time)
      bytes[time] += sign * piece.bytes;
}

Descent::Score Descent::score() const {
  Score result{*llvm::max_element(bytes), 0};
  for (double at : bytes) {
    double part = at / result.peak;
    part *= part;
    part *= part;
    part *= part;
    result.crowd += part * part;
  }
  return result;
}

void Descent::set(int64_t node, int64_t strategy) {
  choice[node] = strategy;
  for (int64_t tensor : tensorsOf[node]) {
    add(pieces[tensor], -1);
    pieces[tensor] = piecesOf(tensor);
    add(pieces[tensor], 1);
  }
}

std::vector<int64_t> Descent::nodesAtPeak() const {
  int64_t worst = llvm::max_element(bytes) - bytes.begin();
  std::set<int64_t> nodes;
  for (size_t t = 0; t < pieces.size(); ++t)
    if (llvm::any_of(pieces[t],
                     [&](const Piece &piece) { return piece.from <= worst && worst <= piece.to; }))
      nodes.insert(nodesOfTensor[t].begin(), nodesOfTensor[t].end());
  return {nodes.begin(), nodes.end()};
}

bool Descent::improveAlone(int64_t node) {
  int64_t before = choice[node], best = before;
  for (int64_t s = 0; s < strategies.numStrategies(node) && !isOver(); ++s) {
    if (s == before)
      continue;
    set(node, s);
    if (Score next = score(); next.isBetterThan(now)) {
      now = next;
      best = s;
    }
  }
  set(node, best);
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
      if (isOver())
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
  while (isBetter && !isOver()) {
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

/// The same with the lives that every change leads to, which takes longer.
static void descendExactly(func::FuncOp function, const PropagationGraph &graph,
                           const StrategyGraph &strategies, std::vector<int64_t> &choice,
                           Descent::Clock::time_point until) {
  // Counted, so that small programs have the same plan however fast the machine is.
  constexpr int kMostTried = 600;
  int tried = 0;
  std::vector<int64_t> nodes;
  auto scoreOf = [&](bool listNodes) {
    ++tried;
    Lives lives(function, graph, strategies, choice);
    Descent descent(graph, strategies, lives, choice, until);
    if (listNodes)
      nodes = descent.nodesAtPeak();
    return descent.score();
  };
  Descent::Score now = scoreOf(true);
  auto isOver = [&]() { return tried > kMostTried || Descent::Clock::now() > until; };
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

std::vector<int64_t> dist::descendInMemory(func::FuncOp function, const PropagationGraph &graph,
                                           const StrategyGraph &strategies,
                                           std::vector<int64_t> choice, double seconds) {
  constexpr int kMostDescents = 4;
  constexpr double kExactly = 0.4; // seconds
  auto after = [](double seconds) {
    return Descent::Clock::now() + std::chrono::duration_cast<Descent::Clock::duration>(
                                       std::chrono::duration<double>(seconds));
  };
  auto until = after(seconds);
  for (int round = 0; round < kMostDescents && Descent::Clock::now() < until; ++round) {
    Lives lives(function, graph, strategies, choice);
    Descent descent(graph, strategies, lives, choice, until);
    descent.run();
    if (descent.plan() == choice)
      break;
    choice = descent.plan();
  }
  descendExactly(function, graph, strategies, choice, std::min(until, after(kExactly)));
  return choice;
}
