//===- Coarse.cpp - A good plan in milliseconds ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ideas. Nodes that look alike first choose alike: one node stands for all layers'.
// And a node looks at a handful of strategies at a time, which move to where the best
// choice so far is: first one mesh axis at a time, slowest first, where the problem
// says what strategies do with axes; then those that are best given the neighbours'.
// Each of these small problems is solved exactly. At last the layers are let free to
// differ, among the few strategies that mattered.
//
//===----------------------------------------------------------------------===//

#include "Eliminate.h"
#include "Modes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tessera::sharding::search {
namespace {

/// Strategies a node looks at: when looks choose, when nodes choose.
constexpr size_t numForLooks = 8, numForNodes = 3;
constexpr int maxSweeps = 6;

/// The problem in which nodes of one look choose alike.
class Quotient {
public:
  Quotient(const Source &source, const KindCosts &costs, const Domains &domains,
           const Deadline &deadline)
      : source(source), costs(costs), domains(domains), deadline(deadline) {
    build();
  }
  Bounded run();

private:
  struct Look {
    Index first;              ///< a node
    double count = 0;         ///< of nodes
    std::vector<double> cost; ///< of one node, by position in the domain; edges within the look too
    std::vector<Index> edges;
    Index choice = 0;         ///< position in the domain
    std::vector<Index> offer; ///< positions that are looked at, ascending
  };
  struct Edge {
    Index u, v, table; ///< looks; u: rows
    double count;
  };

  void build();
  const Domain &all(const Look &look) const { return domains.at(look.first); }
  double edgeCost(const Edge &edge, Index a, Index b) const {
    return source.tables[edge.table]->at(all(looks[edge.u])[a], all(looks[edge.v])[b]);
  }
  /// What each strategy of a look costs, edges as `price` says.
  template <typename Price> std::vector<double> score(const Look &look, Price price) const;
  void offerBest(Look &look, const std::vector<double> &scores, size_t number);
  void solveOffers();
  double total() const;
  void sweepAxes();
  Optimum solveNodes() const;
  double bound() const;

  const Source &source;
  const KindCosts &costs;
  const Domains &domains;
  const Deadline &deadline;
  std::vector<Look> looks;
  std::vector<Index> lookOf;
  std::vector<Edge> edges;
};

void Quotient::build() {
  lookOf = looksOf(source, domains.of);
  for (Index i = 0; i < source.numNodes(); ++i) {
    if (lookOf[i] == std::ssize(looks)) {
      Look &look = looks.emplace_back();
      look.first = i;
      for (Index s : domains.at(i))
        look.cost.push_back(costs[source.kind[i]][s]);
    }
    looks[lookOf[i]].count += 1;
  }
  Interner numbers;
  for (const Source::Pair &pair : source.pairs) {
    Index u = lookOf[pair.u], v = lookOf[pair.v];
    auto [number, isNew] = numbers.intern({u, v, pair.table});
    if (isNew)
      edges.push_back({u, v, pair.table, 0});
    edges[number].count += 1;
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    const Edge &edge = edges[e];
    if (edge.u != edge.v) {
      looks[edge.u].edges.push_back(static_cast<Index>(e));
      looks[edge.v].edges.push_back(static_cast<Index>(e));
      continue;
    }
    Look &look = looks[edge.u];
    for (Index a = 0; a < std::ssize(look.cost); ++a)
      look.cost[a] += edge.count / look.count * edgeCost(edge, a, a);
  }
}

template <typename Price> std::vector<double> Quotient::score(const Look &look, Price price) const {
  std::vector<double> scores(look.cost.size());
  auto number = static_cast<Index>(&look - looks.data());
  for (Index a = 0; a < std::ssize(scores); ++a)
    scores[a] = look.count * look.cost[a];
  for (Index e : look.edges)
    for (Index a = 0; a < std::ssize(scores); ++a)
      scores[a] += edges[e].count * price(edges[e], edges[e].u == number, a);
  return scores;
}

/// Offers the best strategies, and the present choice.
void Quotient::offerBest(Look &look, const std::vector<double> &scores, size_t number) {
  std::vector<Index> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  number = std::min(number, order.size());
  std::partial_sort(order.begin(), order.begin() + number, order.end(), [&](Index a, Index b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
  });
  order.resize(number);
  order.push_back(look.choice);
  order.insert(order.end(), look.offer.begin(), look.offer.end());
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  look.offer = std::move(order);
}

double Quotient::total() const {
  double sum = 0;
  for (const Look &look : looks)
    sum += look.count * look.cost[look.choice];
  for (const Edge &edge : edges)
    if (edge.u != edge.v)
      sum += edge.count * edgeCost(edge, looks[edge.u].choice, looks[edge.v].choice);
  return sum;
}

/// The best choice among the offers.
void Quotient::solveOffers() {
  Model model;
  for (const Look &look : looks) {
    model.domains.of.push_back(model.domains.intern(look.offer));
    model.unary.push_back(static_cast<Index>(model.vectors.size()));
    std::vector<double> &vector = model.vectors.emplace_back();
    for (Index a : look.offer)
      vector.push_back(look.count * look.cost[a]);
  }
  for (const Edge &edge : edges) {
    if (edge.u == edge.v)
      continue;
    const Look &u = looks[edge.u], &v = looks[edge.v];
    model.pairs.push_back({edge.u, edge.v, static_cast<Index>(model.matrices.size())});
    Matrix &matrix = model.matrices.emplace_back();
    matrix.rows = static_cast<Index>(u.offer.size());
    matrix.columns = static_cast<Index>(v.offer.size());
    for (Index a : u.offer)
      for (Index b : v.offer)
        matrix.cost.push_back(edge.count * edgeCost(edge, a, b));
  }
  PlanOptions wish;
  wish.prune = false;
  wish.splitAt = 3e5;
  double before = total();
  std::vector<Index> old;
  for (const Look &look : looks)
    old.push_back(look.choice);
  Optimum found = *eliminate(model, makePlan(model, wish), Deadline(1e9));
  for (size_t n = 0; n < looks.size(); ++n)
    looks[n].choice = static_cast<Index>(found.choice[n]);
  // A split bucket is traced back approximately.
  if (total() > before)
    for (size_t n = 0; n < looks.size(); ++n)
      looks[n].choice = old[n];
}

/// One mesh axis after the other is chosen anew, the others being as they are.
void Quotient::sweepAxes() {
  size_t numAxes = 0;
  for (const Look &look : looks)
    if (const Node &node = source.problem.nodes[look.first]; !node.axes.empty())
      numAxes = std::max(numAxes, node.axes.front().size());
  for (size_t axis = 0; axis < numAxes; ++axis) {
    for (Look &look : looks) {
      const Node &node = source.problem.nodes[look.first];
      look.offer = {look.choice};
      if (node.axes.empty() || axis >= node.axes.front().size())
        continue;
      look.offer.clear();
      const std::vector<int64_t> &now = node.axes[all(look)[look.choice]];
      for (Index a = 0; a < std::ssize(all(look)); ++a) {
        std::vector<int64_t> other = node.axes[all(look)[a]];
        other[axis] = now[axis];
        if (other == now)
          look.offer.push_back(a);
      }
    }
    solveOffers();
  }
}

/// Every node for itself, among the few strategies that are good where its look stands.
Optimum Quotient::solveNodes() const {
  Domains few;
  std::vector<Index> ofLook;
  for (const Look &look : looks) {
    Domain set;
    for (Index a : look.offer)
      set.push_back(all(look)[a]);
    ofLook.push_back(few.intern(set));
  }
  for (Index look : lookOf)
    few.of.push_back(ofLook[look]);
  Model model(source, costs, std::move(few));
  PlanOptions wish;
  wish.prune = false;
  wish.splitAt = 1e6;
  return *eliminate(model, makePlan(model, wish), Deadline(1e9));
}

/// Each node at its best, with half of each edge at its best: no choice is cheaper.
double Quotient::bound() const {
  double sum = 0;
  for (const Look &look : looks) {
    std::vector<double> scores = score(look, [&](const Edge &edge, bool isRow, Index a) {
      double least = std::numeric_limits<double>::infinity();
      auto others = static_cast<Index>(all(looks[isRow ? edge.v : edge.u]).size());
      for (Index b = 0; b < others; ++b)
        least = std::min(least, isRow ? edgeCost(edge, a, b) : edgeCost(edge, b, a));
      return 0.5 * least;
    });
    // Edges within the look were counted as if both ends chose alike, which is no bound.
    const std::vector<double> &cost = costs[source.kind[look.first]];
    double least = std::numeric_limits<double>::infinity();
    for (Index a = 0; a < std::ssize(scores); ++a)
      least = std::min(least, scores[a] - look.count * (look.cost[a] - cost[all(look)[a]]));
    sum += least;
  }
  for (const Edge &edge : edges)
    if (edge.u == edge.v) {
      const std::vector<double> &cost = source.tables[edge.table]->cost;
      sum += edge.count * *std::min_element(cost.begin(), cost.end());
    }
  return sum;
}

Bounded Quotient::run() {
  // Where to begin: the neighbours do what is best for this one.
  auto optimistic = [&](const Edge &edge, bool isRow, Index a) {
    double least = std::numeric_limits<double>::infinity();
    auto others = static_cast<Index>(all(looks[isRow ? edge.v : edge.u]).size());
    for (Index b = 0; b < others; ++b)
      least = std::min(least, isRow ? edgeCost(edge, a, b) : edgeCost(edge, b, a));
    return least;
  };
  std::vector<std::vector<double>> hopes;
  for (Look &look : looks) {
    hopes.push_back(score(look, optimistic));
    look.choice = static_cast<Index>(std::min_element(hopes.back().begin(), hopes.back().end()) -
                                     hopes.back().begin());
  }
  sweepAxes();
  for (size_t n = 0; n < looks.size(); ++n) {
    looks[n].offer.clear();
    offerBest(looks[n], hopes[n], numForLooks);
  }
  auto present = [&](const Edge &edge, bool isRow, Index a) {
    return isRow ? edgeCost(edge, a, looks[edge.v].choice)
                 : edgeCost(edge, looks[edge.u].choice, a);
  };
  double last = std::numeric_limits<double>::infinity();
  for (int sweep = 0; sweep < maxSweeps && !deadline.isOver(); ++sweep) {
    solveOffers();
    double now = total();
    bool isStuck = now >= last * (1 - 1e-9);
    last = now;
    for (Look &look : looks) {
      look.offer.clear();
      offerBest(look, score(look, present), isStuck ? numForNodes : numForLooks);
    }
    if (isStuck)
      break;
  }
  for (Look &look : looks) {
    look.offer.clear();
    offerBest(look, score(look, present), numForNodes);
  }
  Bounded result;
  result.bound = bound();
  std::vector<int64_t> alike;
  for (Index i = 0; i < source.numNodes(); ++i)
    alike.push_back(all(looks[lookOf[i]])[looks[lookOf[i]].choice]);
  result.choice = alike;
  if (!deadline.isOver())
    result.choice = solveNodes().choice;
  result.cost = costOf(source, costs, result.choice);
  if (double cost = costOf(source, costs, alike); cost < result.cost) {
    result.choice = std::move(alike);
    result.cost = cost;
  }
  return result;
}

} // namespace

Bounded minimiseCoarsely(const Source &source, const KindCosts &costs, const Domains &domains,
                         const Options &options, const Deadline &deadline) {
  return Quotient(source, costs, domains, deadline).run();
}

} // namespace tessera::sharding::search
