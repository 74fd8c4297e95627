//===- Coarse.cpp - A good plan in milliseconds ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nodes that look alike first choose alike: one node stands for all layers'. Messages
// along edges, which also bound what any plan costs, tell which few strategies of each
// look are worth looking at. One mesh axis after the other is chosen among all, slowest
// first, where the problem says what strategies do with axes; then looks choose among
// the few; then nodes choose for themselves, among what is good beside their neighbours.
// Each of these small problems is solved by elimination.
//
//===----------------------------------------------------------------------===//

#include "Eliminate.h"
#include "Modes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace tessera::sharding::search {
namespace {

/// Strategies that are looked at: when looks choose, when nodes choose.
constexpr size_t numForLooks = 4, numForNodes = 5;
/// Rounds in which nodes choose; nodes that may choose in all rounds; messages forth and back.
struct Effort {
  int maxRefinements = 6, mostRefined = 600, maxMessages = 8;
};
constexpr Effort thoroughEffort{40, 1 << 30, 200};

/// The problem in which nodes of one look choose alike.
class Quotient {
public:
  Quotient(const Source &source, const KindCosts &costs, const Domains &domains,
           const Deadline &deadline, const Effort &effort)
      : source(source), costs(costs), domains(domains), deadline(deadline), effort(effort) {
    build();
  }
  Bounded run();
  Domains hopeful(const Bounded &found) const;

private:
  struct Look {
    Index first;              ///< a node
    double count = 0;         ///< of nodes
    std::vector<double> cost; ///< of one node, by position in the domain; edges within the look too
    std::vector<Index> edges; ///< to other looks
    std::vector<double> belief; ///< of one node: cost and what its edges say, see improveBound
    Index choice = 0;           ///< position in the domain
    std::vector<Index> offer;   ///< positions that are looked at, ascending
  };
  struct Edge {
    Index u, v, table; ///< looks; u: rows
    double count;
    double copies = 1;                      ///< most that one node has
    std::vector<double> toU = {}, toV = {}; ///< messages of one edge
  };

  void build();
  const Domain &all(const Look &look) const { return domains.at(look.first); }
  double edgeCost(const Edge &edge, Index a, Index b) const {
    return source.tables[edge.table]->at(all(looks[edge.u])[a], all(looks[edge.v])[b]);
  }
  static void offerBest(Look &look);
  void solveOffers();
  double total() const;
  void sweepAxes();
  Optimum solveNodes() const;
  void improveBound();
  void offerBeside(const std::vector<int64_t> &choice);
  double bound() const;
  std::vector<Index> reduceCosts(std::vector<std::vector<double>> &reduced) const;

  const Source &source;
  const KindCosts &costs;
  const Domains &domains;
  const Deadline &deadline;
  Effort effort;
  std::vector<Look> looks;
  std::vector<Index> lookOf;
  std::vector<Edge> edges;
  /// By node: its edges, and whether it is their row; ascending.
  std::vector<std::vector<std::pair<Index, bool>>> edgesOf;
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
  edgesOf.resize(source.numNodes());
  for (const Source::Pair &pair : source.pairs) {
    Index u = lookOf[pair.u], v = lookOf[pair.v];
    auto [number, isNew] = numbers.intern({u, v, pair.table});
    if (isNew)
      edges.push_back({u, v, pair.table, 0});
    edges[number].count += 1;
    edgesOf[pair.u].push_back({number, true});
    edgesOf[pair.v].push_back({number, false});
  }
  for (auto &list : edgesOf) {
    std::sort(list.begin(), list.end());
    for (size_t first = 0, next = 0; next < list.size(); ++next) {
      first = list[next] == list[first] ? first : next;
      Edge &edge = edges[list[next].first];
      edge.copies = std::max(edge.copies, static_cast<double>(next - first + 1));
    }
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

/// Offers the strategies that beliefs rank first, and the present choice.
void Quotient::offerBest(Look &look) {
  std::vector<Index> order(look.belief.size());
  std::iota(order.begin(), order.end(), 0);
  size_t number = std::min(numForLooks, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(number), order.end(),
                    [&](Index a, Index b) {
                      return look.belief[a] != look.belief[b] ? look.belief[a] < look.belief[b]
                                                              : a < b;
                    });
  order.resize(number);
  order.push_back(look.choice);
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
  wish.splitAt = 4e3;
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
  wish.splitAt = 5e4;
  return *eliminate(model, makePlan(model, wish), Deadline(1e9));
}

/// Offers each look what its nodes choose now, and what is best for them beside their neighbours as
/// those choose now; what most nodes want comes first.
void Quotient::offerBeside(const std::vector<int64_t> &choice) {
  std::vector<Index> position(choice.size());
  for (Index i = 0; i < source.numNodes(); ++i) {
    const Domain &domain = domains.at(i);
    position[i] = static_cast<Index>(std::lower_bound(domain.begin(), domain.end(), choice[i]) -
                                     domain.begin());
  }
  Interner numbers;
  std::vector<std::pair<Index, double>> contexts; // a node of each, how many there are
  std::vector<std::map<Index, double>> wanted(looks.size());
  for (Index i = 0; i < source.numNodes(); ++i) {
    wanted[lookOf[i]][position[i]] += 1;
    Key key{lookOf[i]};
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
    std::vector<Index> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    size_t few = std::min(numForNodes, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(few), order.end(),
        [&](Index a, Index b) { return scores[a] != scores[b] ? scores[a] < scores[b] : a < b; });
    for (size_t rank = 0; rank < few; ++rank)
      wanted[lookOf[node]][order[rank]] += count / static_cast<double>(2 + rank);
  }
  for (size_t n = 0; n < looks.size(); ++n) {
    std::vector<std::pair<double, Index>> order;
    for (auto [a, weight] : wanted[n])
      order.push_back({-weight, a});
    std::sort(order.begin(), order.end());
    looks[n].offer.clear();
    for (size_t rank = 0; rank < std::min(numForNodes, order.size()); ++rank)
      looks[n].offer.push_back(order[rank].second);
    // What is chosen now stays possible.
    std::sort(looks[n].offer.begin(), looks[n].offer.end());
  }
}

/// The least of a row with what the columns say; offers the row with its own to the columns. Eight
/// minima side by side, which is what one vector register has: a single one waits for itself.
static double passRow(const double *__restrict row, const std::vector<double> &columns, double own,
                      std::vector<double> &offers) {
  constexpr size_t numLanes = 8;
  const double *__restrict v = columns.data();
  double *__restrict next = offers.data();
  double lanes[numLanes];
  std::fill(lanes, lanes + numLanes, std::numeric_limits<double>::infinity());
  size_t size = columns.size(), j = 0;
  for (; j + numLanes <= size; j += numLanes)
    for (size_t lane = 0; lane < numLanes; ++lane) {
      lanes[lane] = std::min(lanes[lane], row[j + lane] + v[j + lane]);
      next[j + lane] = std::min(next[j + lane], row[j + lane] + own);
    }
  double least = *std::min_element(lanes, lanes + numLanes);
  for (; j < size; ++j) {
    least = std::min(least, row[j] + v[j]);
    next[j] = std::min(next[j], row[j] + own);
  }
  return least;
}

/// Messages along edges (A. Globerson, T. Jaakkola, "Fixing max-product", NIPS 2007), equal for all
/// nodes of a look. Whatever they are, beliefs at their best with edges at their best less their
/// messages are a bound; the better it is, the better beliefs rank strategies.
void Quotient::improveBound() {
  std::vector<double> u, v, next;
  auto update = [&](Edge &edge) {
    Look &a = looks[edge.u], &b = looks[edge.v];
    const EdgeTable &table = *source.tables[edge.table];
    const Domain &rows = all(a), &columns = all(b);
    u.resize(rows.size());
    v.resize(columns.size());
    for (size_t i = 0; i < rows.size(); ++i)
      u[i] = a.belief[i] - edge.toU[i];
    for (size_t j = 0; j < columns.size(); ++j)
      v[j] = b.belief[j] - edge.toV[j];
    // Copies of an edge at one node change together.
    double step = 1 / edge.copies;
    bool isDense = static_cast<int64_t>(columns.size()) == table.columns;
    next.assign(columns.size(), std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < rows.size(); ++i) {
      const double *row = table.cost.data() + rows[i] * table.columns;
      double least = std::numeric_limits<double>::infinity(), own = u[i];
      if (isDense)
        least = passRow(row, v, own, next);
      else
        for (size_t j = 0; j < columns.size(); ++j) {
          least = std::min(least, row[columns[j]] + v[j]);
          next[j] = std::min(next[j], row[columns[j]] + own);
        }
      double message = edge.toU[i] + (0.5 * (least - u[i]) - edge.toU[i]) * step;
      a.belief[i] += edge.count / a.count * (message - edge.toU[i]);
      edge.toU[i] = message;
    }
    for (size_t j = 0; j < columns.size(); ++j) {
      double message = edge.toV[j] + (0.5 * (next[j] - v[j]) - edge.toV[j]) * step;
      b.belief[j] += edge.count / b.count * (message - edge.toV[j]);
      edge.toV[j] = message;
    }
  };
  for (Look &look : looks) {
    const std::vector<double> &cost = costs[source.kind[look.first]];
    look.belief.clear();
    for (Index s : all(look))
      look.belief.push_back(cost[s]);
  }
  for (Edge &edge : edges) {
    edge.toU.assign(all(looks[edge.u]).size(), 0);
    edge.toV.assign(all(looks[edge.v]).size(), 0);
  }
  for (int sweep = 0; sweep < effort.maxMessages && !deadline.isOver(); ++sweep) {
    for (Edge &edge : edges)
      if (edge.u != edge.v)
        update(edge);
    for (size_t e = edges.size(); e-- > 0;)
      if (edges[e].u != edges[e].v)
        update(edges[e]);
  }
}

/// By node, which of `reduced` has what its strategies cost with the messages that it gets. Nodes
/// that get the same share one.
std::vector<Index> Quotient::reduceCosts(std::vector<std::vector<double>> &reduced) const {
  Interner numbers;
  std::vector<Index> of;
  for (Index i = 0; i < source.numNodes(); ++i) {
    Key key{lookOf[i]};
    for (auto [edge, isRow] : edgesOf[i])
      key.insert(key.end(), {edge, isRow});
    auto [number, isNew] = numbers.intern(key);
    of.push_back(number);
    if (!isNew)
      continue;
    const Look &look = looks[lookOf[i]];
    std::vector<double> &its = reduced.emplace_back();
    for (Index s : all(look))
      its.push_back(costs[source.kind[look.first]][s]);
    for (auto [edge, isRow] : edgesOf[i])
      for (size_t a = 0; a < its.size(); ++a)
        its[a] += isRow ? edges[edge].toU[a] : edges[edge].toV[a];
  }
  return of;
}

/// A strategy that costs more than the best of its node by more than what is left between bound and
/// choice is in no cheaper choice.
Domains Quotient::hopeful(const Bounded &found) const {
  std::vector<std::vector<double>> reduced;
  std::vector<Index> of = reduceCosts(reduced);
  double left = found.cost - found.bound + 1e-9 * std::abs(found.cost);
  Domains kept;
  for (Index i = 0; i < source.numNodes(); ++i) {
    const std::vector<double> &its = reduced[of[i]];
    double least = *std::min_element(its.begin(), its.end());
    Domain set;
    const Domain &domain = domains.at(i);
    for (size_t a = 0; a < domain.size(); ++a)
      if (its[a] <= least + left || domain[a] == found.choice[i])
        set.push_back(domain[a]);
    kept.of.push_back(kept.intern(set));
  }
  return kept;
}

/// Whatever the messages are, nodes at their best with the messages that they get and edges at
/// their best less their messages are no dearer than any choice.
double Quotient::bound() const {
  double sum = 0;
  std::vector<std::vector<double>> reduced;
  for (Index number : reduceCosts(reduced))
    sum += *std::min_element(reduced[number].begin(), reduced[number].end());
  for (const Edge &edge : edges) {
    const EdgeTable &table = *source.tables[edge.table];
    const Domain &rows = all(looks[edge.u]), &columns = all(looks[edge.v]);
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < rows.size(); ++i) {
      const double *row = table.cost.data() + rows[i] * table.columns;
      double own = std::numeric_limits<double>::infinity();
      for (size_t j = 0; j < columns.size(); ++j)
        own = std::min(own, row[columns[j]] - edge.toV[j]);
      least = std::min(least, own - edge.toU[i]);
    }
    sum += edge.count * least;
  }
  return sum;
}

Bounded Quotient::run() {
  improveBound();
  for (Look &look : looks)
    look.choice = static_cast<Index>(std::min_element(look.belief.begin(), look.belief.end()) -
                                     look.belief.begin());
  sweepAxes();
  for (Look &look : looks)
    offerBest(look);
  solveOffers();
  Bounded result;
  result.bound = bound();
  for (Index i = 0; i < source.numNodes(); ++i)
    result.choice.push_back(all(looks[lookOf[i]])[looks[lookOf[i]].choice]);
  result.cost = costOf(source, costs, result.choice);
  // Planning takes as long as the problem is large: large ones get one.
  int rounds = std::clamp(effort.mostRefined / source.numNodes(), 1, effort.maxRefinements);
  for (int round = 0; round < rounds && !deadline.isOver() && result.cost > result.bound; ++round) {
    offerBeside(result.choice);
    std::vector<int64_t> next = solveNodes().choice;
    double cost = costOf(source, costs, next);
    if (cost >= result.cost * (1 - 1e-9))
      break;
    result.choice = std::move(next);
    result.cost = cost;
  }
  return result;
}

} // namespace

Bounded minimiseCoarsely(const Source &source, const KindCosts &costs, const Domains &domains,
                         const Deadline &deadline, Domains *hopeful) {
  Quotient quotient(source, costs, domains, deadline, hopeful ? thoroughEffort : Effort());
  Bounded found = quotient.run();
  if (hopeful)
    *hopeful = quotient.hopeful(found);
  return found;
}

} // namespace tessera::sharding::search
