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
#include "Strategies.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Sharding/ReshardTable.h"
#include "tessera/Sharding/Selections.h"
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

static Topology withoutLatencies(Topology topology) {
  for (LinkClass &link : topology.links)
    link.link.alpha = 0;
  return topology;
}

namespace {

class Decider {
public:
  Decider(const PropagationGraph &graph, const Topology &topology,
          ArrayRef<Strategies::Seed> seeds = {})
      : graph(graph), topology(topology), strategies(graph, seeds) {
    std::vector<bool> produced(graph.tensors.size()); // by an op that has a strategy
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (!strategies.of(n).empty())
        forEachResult(n, [&](size_t, int64_t tensor) { produced[tensor] = true; });
    raw.resize(graph.tensors.size());
    for (size_t t = 0; t < raw.size(); ++t)
      if (!produced[t])
        raw[t] = graph.keep(canonical(graph.tensors[t].sharding->closed()));
  }

  Decision run() {
    std::vector<int64_t> choice(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (strategies.of(n).size() > 1) {
        if (!costs)
          costs.emplace(graph.nodes[n].op->getParentOfType<func::FuncOp>(), topology);
        addOp(n);
      }
    if (!problem.nodes.empty()) {
      addTensors();
      choose(choice);
    }
    Decision decision;
    decision.strategies.resize(graph.nodes.size());
    // Alike nodes share their strategies; looked up only.
    llvm::DenseMap<std::pair<const Strategy *, size_t>, const TensorSharding *> results;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (strategies.of(n).empty())
        continue;
      const Strategy &strategy = strategies.of(n)[choice[n]];
      forEachResult(n, [&](size_t i, int64_t tensor) {
        const TensorSharding *&known = results[{&strategy, i}];
        if (!known)
          known = graph.keep(shardingUnder(graph.nodes[n], i, strategy));
        raw[tensor] = known;
      });
      decision.strategies[n] = strategies.share(n, choice[n]);
    }
    decision.tensors = std::move(raw);
    return decision;
  }

  /// What to try in place of gathers that take longer than the op that needs them: its other cuts
  /// over the gathered axes, and its operand made whole. The region around follows where that is
  /// cheaper: brought into its cut at the border, or computed whole.
  std::vector<Strategies::Seed> alternativesTo(const Decision &decision) {
    std::vector<Strategies::Seed> seeds;
    // Alike nodes share their strategies; looked up only.
    llvm::DenseMap<std::pair<const Strategy *, size_t>, const TensorSharding *> needs;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const RuleNode &node = graph.nodes[n];
      const Strategy *strategy = decision.strategies[n].get();
      if (!strategy)
        continue;
      for (size_t i = 0; i < node.rule.operands.size(); ++i) {
        if (follows(node, i) || decision.tensors[node.tensors[i]]->isPartial())
          continue;
        const TensorSharding *&need = needs[{strategy, i}];
        if (!need)
          need = graph.keep(shardingUnder(node, i, *strategy));
        if (need != decision.tensors[node.tensors[i]])
          addAlternatives(n, i, *strategy, *decision.tensors[node.tensors[i]], *need, seeds);
      }
    }
    return seeds;
  }

private:
  void addAlternatives(size_t n, size_t position, const Strategy &strategy,
                       const TensorSharding &from, const TensorSharding &need,
                       std::vector<Strategies::Seed> &seeds) {
    const RuleNode &node = graph.nodes[n];
    AxisList gathered;
    for (const AxisList &axes : from.dims)
      for (const AxisRef &axis : axes)
        if (llvm::none_of(need.dims, [&](const AxisList &to) { return overlapsAny(to, axis); }))
          gathered.push_back(axis);
    if (gathered.empty() || !need.windows.empty())
      return;
    if (!costs)
      costs.emplace(node.op->getParentOfType<func::FuncOp>(), topology);
    int64_t tensor = node.tensors[position];
    if (reshardSeconds(graph.tensors[tensor], from, need) <=
        secondsUnder(*costs, graph, node, strategy))
      return;
    if (!graph.tensors[tensor].isFixed && !graph.nodesOf[tensor].empty())
      seeds.push_back({-1, {}, tensor, need});
    Strategy rest = strategy;
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

  /// One end of an edge: a node of the problem with its shardings of the tensor, or something that
  /// lies in one way.
  struct End {
    int64_t node = -1;
    std::vector<TensorSharding> shardings; ///< by strategy of the node
  };

  void addOp(size_t index) {
    const RuleNode &node = graph.nodes[index];
    solver::Node own;
    double trips = tripsOf(node.op);
    // The op's own iterations count, so that no plan undoes the user's cuts to save a few bytes.
    for (const Strategy &strategy : strategies.of(index))
      own.cost.push_back(trips * secondsUnder(*costs, graph, node, strategy));
    nodeOf.try_emplace(static_cast<int64_t>(index), problem.nodes.size());
    problem.nodes.push_back(std::move(own));
  }

  End endOf(int64_t node, size_t position) const {
    const RuleNode &rule = graph.nodes[node];
    End end;
    auto it = nodeOf.find(node);
    end.node = it == nodeOf.end() ? -1 : it->second;
    for (const Strategy &strategy : strategies.of(node))
      end.shardings.push_back(shardingUnder(rule, position, strategy));
    if (end.shardings.empty()) // a constraint or control flow: what receives it lies as propagated
      end.shardings.push_back(*raw[rule.tensors.back()]);
    return end;
  }

  void addTensors() {
    for (size_t t = 0; t < graph.tensors.size(); ++t) {
      if (llvm::none_of(graph.nodesOf[t], [&](int64_t node) { return nodeOf.count(node); }))
        continue; // it lies in one way for all
      End producer;
      Operation *source = nullptr;
      bool produced = false;
      std::vector<End> users;
      for (int64_t node : graph.nodesOf[t]) {
        const RuleNode &rule = graph.nodes[node];
        size_t numOperands = rule.rule.operands.size();
        for (size_t i = 0; i < rule.tensors.size(); ++i) {
          if (rule.tensors[i] != static_cast<int64_t>(t))
            continue;
          if (i < numOperands) {
            users.push_back(endOf(node, i));
          } else if (!strategies.of(node).empty()) {
            producer = endOf(node, i);
            source = rule.op;
            produced = true;
          }
        }
      }
      if (!produced)
        producer.shardings.push_back(*raw[t]);
      // What is made of scalars alone is made anew wherever it is needed.
      if (source && llvm::none_of(source->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
        continue;
      addTensor(t, producer, users, source ? tripsOf(source) : 1);
    }
  }

  void addTensor(size_t tensor, const End &producer, const std::vector<End> &users, double trips) {
    if (users.empty())
      return;
    if (users.size() == 1)
      return addEdge(tensor, producer, users.front(), trips);
    // The places where the tensor may lie for its users.
    End place;
    for (const End *end : allOf(producer, users))
      for (const TensorSharding &sharding : llvm::map_range(end->shardings, withoutSelections))
        if (sharding.windows.empty() && !llvm::is_contained(place.shardings, sharding) &&
            place.shardings.size() < kMostPlaces)
          place.shardings.push_back(sharding);
    place.node = static_cast<int64_t>(problem.nodes.size());
    solver::Node node;
    node.cost.assign(place.shardings.size(), 0);
    problem.nodes.push_back(std::move(node));
    addEdge(tensor, producer, place, trips);
    for (const End &user : users)
      addEdge(tensor, place, user, trips);
  }

  static std::vector<const End *> allOf(const End &producer, const std::vector<End> &users) {
    std::vector<const End *> ends{&producer};
    for (const End &user : users)
      ends.push_back(&user);
    return ends;
  }

  void addEdge(size_t tensor, const End &from, const End &to, double trips) {
    solver::EdgeTable table{
        static_cast<int64_t>(from.shardings.size()), static_cast<int64_t>(to.shardings.size()), {}};
    for (const TensorSharding &source : from.shardings)
      for (const TensorSharding &target : to.shardings)
        table.cost.push_back(trips * reshardSeconds(graph.tensors[tensor], source, target));
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

  double reshardSeconds(const TensorState &state, const TensorSharding &source,
                        const TensorSharding &target) {
    if (source == target || hasSelection(source, target))
      return 0;
    ReshardTable *&times = reshards[{state.mesh, state.type}];
    if (!times)
      times = &plannerOf(state.type.getContext(), Objective::time, withoutLatencies(topology))
                   .table(*state.mesh, shapeOf(state.type),
                          bytesPerElement(state.type.getElementType()));
    return kSecondsOfAReshard + times->seconds(source, target);
  }

  void choose(std::vector<int64_t> &choice) {
    solver::Options options;
    options.mode = solver::Mode::recursive_programming;
    options.timeLimit = std::numeric_limits<double>::infinity();
    solver::Expected<solver::Solution> solved = solver::solve(problem, options);
    auto *solution = std::get_if<solver::Solution>(&solved);
    assert(solution && "a problem without a budget has a plan");
    for (auto &[node, index] : nodeOf)
      choice[node] = solution->choice[index];
  }

  const PropagationGraph &graph;
  const Topology &topology;
  std::optional<OpCosts> costs; ///< once something is to be chosen
  /// By mesh and type; looked up only.
  llvm::DenseMap<std::pair<const Mesh *, Type>, ReshardTable *> reshards;
  Strategies strategies;
  std::vector<const TensorSharding *> raw; ///< by tensor; of what ops produce once they are decided
  solver::Problem problem;
  std::map<int64_t, int64_t> nodeOf; ///< of the graph to the problem's
  std::map<std::pair<int64_t, std::vector<double>>, size_t> tables;
};

} // namespace

Decision dist::decide(const PropagationGraph &graph, const Topology &topology) {
  Decider first(graph, topology);
  Decision decision = first.run();
  std::vector<Strategies::Seed> seeds = first.alternativesTo(decision);
  return seeds.empty() ? decision : Decider(graph, topology, seeds).run();
}
