//===- Decide.cpp - How each op's loops are cut ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contested ops and the tensors between them become a problem of the strategy
// search: a node chooses a strategy, an edge costs the reshard between what one
// op leaves and another needs. A tensor with several users is a node too, which
// chooses how it lies for them: what two of them need alike is sent once.
//
//===----------------------------------------------------------------------===//

#include "Decide.h"

#include "../Reshard/OpenResults.h"
#include "Strategies.h"
#include "StrategyEdges.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Sharding/Selections.h"
#include "tessera/Solver/CompleteChoice.h"
#include "tessera/Solver/Solver.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Between plans of equal time the one with fewer reshards; latency itself does not count, since
/// collectives are fused later.
static constexpr double kSecondsOfAReshard = 1e-9;
static constexpr size_t kMostPlaces = 12;

/// The part of a plan's time that gathers take where other cuts are tried in their place.
static constexpr double kWorthRecutting = 0.01;

static Topology withoutLatencies(Topology topology) {
  for (LinkClass &link : topology.links)
    link.link.alpha = 0;
  return topology;
}

namespace {

class Decider {
public:
  Decider(const PropagationGraph &graph, const Topology &topology)
      : graph(graph), topology(withoutLatencies(topology)), strategies(graph) {}

  Decision run() {
    choice.assign(graph.nodes.size(), 0);
    isOpenResult.assign(graph.tensors.size(), false);
    for (size_t r = 0; r < graph.results.size(); ++r)
      if (graph.isOpenResult(r))
        isOpenResult[graph.results[r]] = true;
    placeInputs();
    std::vector<size_t> contested;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (strategies.of(n).size() > 1)
        contested.push_back(n);
    if (!contested.empty()) {
      pose(contested);
      std::vector<int64_t> solved = solve();
      planned = problem.cost(solved);
      for (size_t n : contested)
        choice[n] = solved[nodeOf[n]];
      placed.assign(graph.tensors.size(), nullptr);
      for (const Place &place : places)
        placed[place.tensor] = place.shardings[solved[place.node]];
    }
    Decision decision = decided();
    return recut(alternativesTo(decision)) ? decided() : decision;
  }

private:
  using Shardings = SmallVector<const TensorSharding *, 8>;

  /// How what no op makes lies.
  void placeInputs() {
    std::vector<bool> produced(graph.tensors.size()); // by an op that has a strategy
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (!strategies.of(n).empty())
        forEachResult(n, [&](size_t, int64_t tensor) { produced[tensor] = true; });
    raw.resize(graph.tensors.size());
    for (size_t t = 0; t < raw.size(); ++t)
      if (!produced[t])
        raw[t] = graph.keep(canonical(graph.tensors[t].sharding->closed()));
  }

  /// What the choice means.
  Decision decided() {
    Decision decision;
    decision.tensors = raw;
    decision.strategies.resize(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (strategies.of(n).empty())
        continue;
      forEachResult(n, [&](size_t i, int64_t tensor) {
        decision.tensors[tensor] = shardingsOf(n, i)[choice[n]];
      });
      decision.strategies[n] = strategies.share(n, choice[n]);
    }
    return decision;
  }

  /// Tries to do without the gathers of a decision: adds what they suggest to the strategies, and
  /// lets the ops that got more of them, and those beside them, choose anew. Whether that leads to
  /// a plan of less time that does not send more; the choice stays as it is where it does not.
  bool recut(ArrayRef<Strategies::Seed> seeds) {
    if (seeds.empty())
      return false;
    std::vector<size_t> known(graph.nodes.size());
    for (size_t n = 0; n < known.size(); ++n)
      known[n] = strategies.of(n).size();
    shardings.clear(); // of lists that are replaced
    strategies.extend(seeds);
    std::vector<bool> concerned(known.size());
    for (size_t n = 0; n < known.size(); ++n)
      if (strategies.of(n).size() > known[n])
        for (int64_t tensor : graph.nodes[n].tensors)
          if (tensor >= 0)
            for (int64_t other : graph.nodesOf[tensor])
              concerned[other] = true;
    std::vector<size_t> open;
    for (size_t n = 0; n < concerned.size(); ++n)
      if (concerned[n] && strategies.of(n).size() > 1)
        open.push_back(n);
    if (open.empty())
      return false;
    pose(open);
    std::vector<int64_t> now(problem.nodes.size(), -1);
    for (size_t n : open)
      now[nodeOf[n]] = choice[n];
    now = solver::completeChoice(problem, std::move(now)); // with the best places for it
    std::vector<int64_t> solved = solve();
    if (problem.cost(solved) > problem.cost(now) - kSecondsOfAReshard)
      return false;
    auto sent = [&](const std::vector<int64_t> &plan) {
      double seconds = problem.cost(plan);
      for (size_t n : open)
        seconds -= secondsOf(n)[plan[nodeOf[n]]];
      return seconds;
    };
    if (sent(solved) > sent(now) + kSecondsOfAReshard)
      return false;
    for (size_t n : open)
      choice[n] = solved[nodeOf[n]];
    return true;
  }

  /// What to try in place of gathers that take longer than the op that needs them: its other cuts
  /// over the gathered axes, and its operand made whole. The region around follows where that is
  /// cheaper: brought into its cut at the border, or computed whole.
  std::vector<Strategies::Seed> alternativesTo(const Decision &decision) {
    std::vector<Strategies::Seed> seeds;
    double atStake = 0; // seconds of the gathers
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const RuleNode &node = graph.nodes[n];
      if (strategies.of(n).empty())
        continue;
      for (size_t i = 0; i < node.rule.operands.size(); ++i) {
        if (follows(node, i) || decision.tensors[node.tensors[i]]->isPartial())
          continue;
        const TensorSharding *need = shardingsOf(n, i)[choice[n]];
        if (need != decision.tensors[node.tensors[i]])
          addAlternatives(n, i, decision.tensors[node.tensors[i]], need, seeds, atStake);
      }
    }
    if (atStake < kWorthRecutting * planned)
      seeds.clear();
    return seeds;
  }

  /// The axes that cut `from`, and not what is needed.
  static AxisList axesGathered(const TensorSharding &from, const TensorSharding &need) {
    AxisList gathered;
    for (const AxisList &axes : from.dims)
      for (const AxisRef &axis : axes)
        if (llvm::none_of(need.dims, [&](const AxisList &to) { return overlapsAny(to, axis); }))
          gathered.push_back(axis);
    return gathered;
  }

  void addAlternatives(size_t n, size_t position, const TensorSharding *from,
                       const TensorSharding *need, std::vector<Strategies::Seed> &seeds,
                       double &atStake) {
    const RuleNode &node = graph.nodes[n];
    AxisList gathered = axesGathered(*from, *need);
    if (gathered.empty() || !need->windows.empty())
      return;
    int64_t tensor = node.tensors[position];
    double times = 1; // that the gather runs
    for (int64_t other : graph.nodesOf[tensor])
      if (!strategies.of(other).empty())
        forEachResult(other, [&](size_t, int64_t result) {
          if (result == tensor)
            times = tripsOf(graph.nodes[other].op);
        });
    double gather = times * reshardSeconds(tableOf(tensor), from, need);
    if (gather <= secondsOf(n)[choice[n]])
      return;
    atStake += gather;
    if (!graph.tensors[tensor].isFixed && !graph.nodesOf[tensor].empty())
      seeds.push_back({-1, {}, tensor, *need});
    Strategy rest = strategies.of(n)[choice[n]];
    for (AxisList &axes : rest.factors)
      llvm::erase_if(axes, [&](const AxisRef &axis) { return overlapsAny(gathered, axis); });
    // Contributions over an axis that now cuts a loop are reduced in front of the op.
    llvm::erase_if(rest.forwards, [&](const Forward &forward) {
      return overlapsAny(gathered, forward.partial.axis);
    });
    for (auto [f, factor] : llvm::enumerate(node.rule.factors)) {
      if (factor.kind == FactorKind::replicate || factor.size < sizeOf(gathered))
        continue;
      Strategy other = rest;
      other.factors[f].insert(other.factors[f].end(), gathered.begin(), gathered.end());
      other.factors[f] = mergeAxes(std::move(other.factors[f]));
      other.factors = legalize(node.rule, std::move(other.factors));
      seeds.push_back({static_cast<int64_t>(n), std::move(other)});
    }
  }

  /// Calls with the position and the tensor of every result of a node.
  void forEachResult(size_t n, llvm::function_ref<void(size_t, int64_t)> visit) const {
    const RuleNode &node = graph.nodes[n];
    for (size_t i = node.rule.operands.size(); i < node.tensors.size(); ++i)
      if (node.tensors[i] >= 0)
        visit(i, node.tensors[i]);
  }

  /// Of a tensor of a node, by strategy.
  const Shardings &shardingsOf(size_t n, size_t position) {
    Shardings &known = shardings[{&strategies.of(n), position}];
    if (known.empty())
      for (const Strategy &strategy : strategies.of(n))
        known.push_back(graph.keep(shardingUnder(graph.nodes[n], position, strategy)));
    return known;
  }

  /// Seconds of an op in one execution of the function, by strategy.
  const std::vector<double> &secondsOf(size_t n) {
    seconds.resize(graph.nodes.size());
    std::vector<double> &known = seconds[n];
    const std::vector<Strategy> &own = strategies.of(n);
    if (known.size() == own.size())
      return known;
    const RuleNode &node = graph.nodes[n];
    if (!costs)
      costs.emplace(node.op->getParentOfType<func::FuncOp>(), topology);
    OpCosts::Work work = costs->workOf(node.op);
    double trips = tripsOf(node.op);
    Shardings of(node.tensors.size());
    for (size_t s = known.size(); s < own.size(); ++s) {
      for (size_t i = 0; i < of.size(); ++i)
        of[i] = node.tensors[i] < 0 ? nullptr : shardingsOf(n, i)[s];
      known.push_back(trips * secondsUnder(*costs, work, graph, node, own[s], of));
    }
    return known;
  }

  /// One end of an edge: a node of the problem with its shardings of the tensor, or something that
  /// lies in one way.
  struct End {
    int64_t node = -1;
    Shardings shardings; ///< by strategy of the node
  };

  /// A node of the problem that stands for where a tensor lies for its users.
  struct Place {
    size_t tensor;
    int64_t node;
    Shardings shardings;
  };

  /// The problem in which these ops choose a strategy, and the others keep theirs.
  void pose(ArrayRef<size_t> open) {
    problem = {};
    places.clear();
    tables.clear();
    nodeOf.assign(graph.nodes.size(), -1);
    for (size_t n : open) {
      // The op's own iterations count, so that no plan undoes the user's cuts to save a few bytes.
      solver::Node own;
      own.cost = secondsOf(n);
      nodeOf[n] = static_cast<int64_t>(problem.nodes.size());
      problem.nodes.push_back(std::move(own));
    }
    addTensors();
  }

  End endOf(int64_t n, size_t position) {
    if (strategies.of(n)
            .empty()) // a constraint or control flow: what receives it lies as propagated
      return {-1, {raw[graph.nodes[n].tensors.back()]}};
    const Shardings &all = shardingsOf(n, position);
    if (nodeOf[n] < 0)
      return {-1, {all[choice[n]]}};
    return {nodeOf[n], all};
  }

  void addTensors() {
    for (size_t t = 0; t < graph.tensors.size(); ++t) {
      if (llvm::none_of(graph.nodesOf[t], [&](int64_t node) { return nodeOf[node] >= 0; }))
        continue; // it lies in one way for all
      End producer;
      Operation *source = nullptr;
      bool produced = false;
      std::vector<End> users;
      bool isReturned = false; // and may lie as it is made
      for (int64_t node : graph.nodesOf[t]) {
        const RuleNode &rule = graph.nodes[node];
        size_t numOperands = rule.rule.operands.size();
        for (size_t i = 0; i < rule.tensors.size(); ++i) {
          if (rule.tensors[i] != static_cast<int64_t>(t))
            continue;
          if (i < numOperands && isOpenResult[rule.tensors.back()]) {
            isReturned = true;
          } else if (i < numOperands) {
            users.push_back(endOf(node, i));
          } else if (!strategies.of(node).empty()) {
            producer = endOf(node, i);
            source = rule.op;
            produced = true;
          }
        }
      }
      if (!produced)
        producer.shardings.push_back(raw[t]);
      // What is made of scalars alone is made anew wherever it is needed.
      if (source && llvm::none_of(source->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
        continue;
      // Beside users it lies as it does for them.
      if (isReturned && users.empty() && producer.node >= 0)
        users.push_back(asResult(t, producer));
      addTensor(t, producer, users, tripsOfTensor(graph, static_cast<int64_t>(t), source));
    }
  }

  /// A result of the function that nobody placed: as it is made, with contributions scattered.
  End asResult(size_t tensor, const End &producer) {
    const TensorState &state = graph.tensors[tensor];
    const AxisList &all = TensorSharding::allOpen(*state.mesh, 0).open;
    End result{static_cast<int64_t>(problem.nodes.size()), {}};
    for (const TensorSharding *sharding : producer.shardings) {
      const TensorSharding *lies = graph.keep(scattered(*sharding, state.type.getShape(), all));
      if (!llvm::is_contained(result.shardings, lies))
        result.shardings.push_back(lies);
    }
    problem.nodes.emplace_back().cost.assign(result.shardings.size(), 0);
    return result;
  }

  void addTensor(size_t tensor, const End &producer, const std::vector<End> &users, double trips) {
    ReshardTable &times = tableOf(static_cast<int64_t>(tensor));
    auto makePlace = [&]() {
      End place{static_cast<int64_t>(problem.nodes.size()), placesFor(tensor, producer, users)};
      problem.nodes.emplace_back().cost.assign(place.shardings.size(), 0);
      places.push_back({tensor, place.node, place.shardings});
      return place;
    };
    joinUsers<End>(producer, users, makePlace,
                   [&](const End &from, const End &to) { addEdge(times, from, to, trips); });
  }

  /// Where a tensor may lie for its users: as one of them needs it, or as it is made. Once it has a
  /// place, other places are those that several of them name.
  Shardings placesFor(size_t tensor, const End &producer, const std::vector<End> &users) const {
    Shardings result, once;
    auto add = [&](const TensorSharding *sharding, bool isShared) {
      if (!sharding->windows.empty())
        sharding = graph.keep(withoutSelections(*sharding));
      if (!sharding->windows.empty() || llvm::is_contained(result, sharding) ||
          result.size() >= kMostPlaces)
        return;
      (isShared ? result : once).push_back(sharding);
    };
    const TensorSharding *now = placed.empty() ? nullptr : placed[tensor];
    if (now)
      add(now, true);
    for (const TensorSharding *sharding : producer.shardings)
      add(sharding, true);
    for (const End &user : users) {
      Shardings named;
      std::swap(named, once);
      for (const TensorSharding *sharding : user.shardings)
        add(sharding, !now || llvm::is_contained(named, sharding));
      once.append(named);
    }
    return result;
  }

  void addEdge(ReshardTable &times, const End &from, const End &to, double trips) {
    solver::EdgeTable table{
        static_cast<int64_t>(from.shardings.size()), static_cast<int64_t>(to.shardings.size()), {}};
    for (const TensorSharding *source : from.shardings)
      for (const TensorSharding *target : to.shardings)
        table.cost.push_back(trips * reshardSeconds(times, source, target));
    if (from.node < 0 || to.node < 0) { // one end lies in one way: its cost is the other's own
      const End &open = from.node < 0 ? to : from;
      if (open.node >= 0)
        for (size_t s = 0; s < table.cost.size(); ++s)
          problem.nodes[open.node].cost[s] += table.cost[s];
      return;
    }
    auto key = std::make_pair(table.columns, table.cost);
    auto [it, fresh] = tables.try_emplace(key, problem.tables.size());
    if (fresh)
      problem.tables.push_back(std::move(table));
    problem.edges.push_back({from.node, to.node, static_cast<int64_t>(it->second)});
  }

  ReshardTable &tableOf(int64_t tensor) {
    if (!reshards)
      reshards.emplace(
          graph, plannerOf(graph.tensors[tensor].type.getContext(), Objective::time, topology));
    return reshards->of(tensor);
  }

  double reshardSeconds(ReshardTable &times, const TensorSharding *source,
                        const TensorSharding *target) {
    if (source == target)
      return 0;
    auto [it, fresh] = reshardTimes.try_emplace({&times, {source, target}}, 0);
    if (fresh && !hasSelection(*source, *target))
      it->second = kSecondsOfAReshard + times.seconds(*source, *target);
    return it->second;
  }

  std::vector<int64_t> solve() const {
    solver::Options options;
    options.mode = solver::Mode::recursive_programming;
    options.timeLimit = std::numeric_limits<double>::infinity();
    solver::Expected<solver::Solution> solved = solver::solve(problem, options);
    auto *solution = std::get_if<solver::Solution>(&solved);
    assert(solution && "a problem without a budget has a plan");
    return std::move(solution->choice);
  }

  const PropagationGraph &graph;
  const Topology topology;      ///< without latencies
  std::optional<OpCosts> costs; ///< once something is to be chosen
  Strategies strategies;
  std::vector<bool> isOpenResult;          ///< by tensor
  std::vector<int64_t> choice;             ///< by node of the graph: its strategy
  std::vector<const TensorSharding *> raw; ///< by tensor; null for what ops with strategies produce
  std::vector<std::vector<double>> seconds; ///< see secondsOf
  std::optional<TensorReshards> reshards;
  // Looked up only:
  llvm::DenseMap<
      std::pair<ReshardTable *, std::pair<const TensorSharding *, const TensorSharding *>>, double>
      reshardTimes;
  /// By list of strategies, which alike nodes share, and position.
  llvm::DenseMap<std::pair<const std::vector<Strategy> *, size_t>, Shardings> shardings;
  solver::Problem problem;
  std::vector<int64_t> nodeOf;                ///< of the graph to the problem's, or -1
  std::vector<Place> places;                  ///< of the problem
  double planned = 0;                         ///< seconds of the first plan, of what was contested
  std::vector<const TensorSharding *> placed; ///< by tensor: the place of the first plan, or null
  std::map<std::pair<int64_t, std::vector<double>>, size_t> tables;
};

} // namespace

Decision dist::decide(const PropagationGraph &graph, const Topology &topology) {
  return Decider(graph, topology).run();
}
