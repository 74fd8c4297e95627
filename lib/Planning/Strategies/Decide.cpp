//===- Decide.cpp - Choose the cut of each op's loops ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contested ops choose among the strategies that claims allow (Strategies.h), all others
// keep the propagated ones: a strategy problem (StrategyProblem.h) with few candidates,
// whose costs exclude latencies, unless the options say otherwise.
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Decide.h"

#include "Contributors.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"
#include "tessera/Planning/StrategyProblem.h"

#include "tessera/Solver/CompleteChoice.h"
#include "tessera/Solver/Solver.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Prefers the plan with fewer reshards among those of equal time; latencies do not count as a
/// rule, since collectives are fused later.
static constexpr double kSecondsOfAReshard = 1e-9;

/// Other cuts of a product are tried if reducing its contributions takes this many times longer
/// than gathering its operands.
static constexpr double kMuchSmaller = 4;

/// The share of a plan's time in gathers above which other cuts are tried.
static constexpr double kWorthRecutting = 0.01;
/// How often other cuts are tried for the gathers of the plan that the last ones led to.
static constexpr int kMostRecuts = 3;

static Topology withoutLatencies(Topology topology) {
  for (LinkClass &link : topology.links)
    link.link.alpha = 0;
  return topology;
}

namespace {

class Decider : StrategySource {
public:
  Decider(const PropagationGraph &graph, const Topology &topology, const DecideOptions &options)
      : graph(graph),
        strategies(graph,
                   options.objective == Objective::time ? topology : withoutLatencies(topology)),
        posed(graph,
              {options.latencies ? topology : withoutLatencies(topology), kSecondsOfAReshard}) {}

  Decision run(bool recuts) {
    choice.assign(graph.nodes.size(), 0);
    isOpenResult.assign(graph.tensors.size(), false);
    isSummed.assign(graph.tensors.size(), false);
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
      planned = posed.problem.cost(solved);
      for (size_t n : contested)
        choice[n] = solved[posed.nodeOf(n)];
      placed.assign(graph.tensors.size(), nullptr);
      for (size_t t = 0; t < placed.size(); ++t)
        if (const StrategyEnd &place = posed.placeOf(t); place.node >= 0)
          placed[t] = &place.shardings->under(solved[place.node]);
    }
    Decision decision = decided();
    if (!recuts)
      return decision;
    // A region that is cut otherwise may gather something else at its border.
    bool isRecut = false;
    auto recutTo = [&](ArrayRef<Strategies::Seed> seeds, bool spreads) {
      if (!recut(seeds, spreads))
        return false;
      decision = decided();
      return isRecut = true;
    };
    for (int round = 0; round < kMostRecuts; ++round)
      if (!recutTo(alternativesTo(decision), /*spreads=*/true))
        break;
    recutTo(otherCarries(decision), /*spreads=*/true);
    // Few ops are concerned, most of which are no part of a larger kernel.
    posed.priceAlone(!isRecut);
    recutTo(otherUpdates(decision), /*spreads=*/false);
    // What was not concerned may follow by a strategy that it had already.
    if (isRecut && choose([](size_t) { return true; }))
      decision = decided();
    decision.isRecut = isRecut;
    return decision;
  }

private:
  /// Builds the problem in which some ops choose a strategy and the others keep theirs.
  void pose(ArrayRef<size_t> open) {
    isOpen.assign(graph.nodes.size(), false);
    for (size_t n : open)
      isOpen[n] = true;
    posed.build(*this);
  }

  OfOp ofOp(size_t node) override {
    return {strategies.listOf(node), {}, isOpen[node] ? -1 : choice[node]};
  }

  OfTensor ofTensor(size_t tensor) override {
    if (isOpenResult[tensor])
      return {};
    ShardingRefs shardings{raw[tensor]};
    if (graph.tensors[tensor].loop && !isSummed[tensor])
      for (const TensorSharding &state : strategies.statesOf(tensor))
        if (const TensorSharding *other = graph.keep(state); other != raw[tensor])
          shardings.push_back(other);
    bool isFixed = shardings.size() == 1;
    return {std::move(shardings), {}, isFixed};
  }

  const TensorSharding *lastPlaceOf(size_t tensor) override {
    return placed.empty() ? nullptr : placed[tensor];
  }

  /// Sets the shardings of values that no op computes.
  void placeInputs() {
    raw.resize(graph.tensors.size());
    for (size_t t = 0; t < raw.size(); ++t)
      if (posed.makerOf(t) < 0)
        raw[t] = graph.keep(canonical(graph.tensors[t].sharding->closed()));
  }

  /// The decision for the current choice.
  Decision decided() {
    Decision decision;
    decision.tensors = raw;
    decision.strategies.resize(graph.nodes.size());
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (strategies.of(n).empty())
        continue;
      forEachResult(n, [&](size_t i, int64_t tensor) { decision.tensors[tensor] = chosen(n, i); });
      const StrategyList &list = strategies.listOf(n);
      decision.strategies[n] = {list, &(*list)[choice[n]]};
    }
    return decision;
  }

  /// Tries to avoid the gathers of a decision: adds the seeds to the strategies, and lets the ops
  /// with new strategies, and their neighbors, choose again. Returns whether that gives a faster
  /// plan that does not send more; otherwise the choice is unchanged.
  bool recut(ArrayRef<Strategies::Seed> seeds, bool spreads) {
    if (seeds.empty())
      return false;
    std::vector<size_t> known(graph.nodes.size());
    for (size_t n = 0; n < known.size(); ++n)
      known[n] = strategies.of(n).size();
    strategies.extend(seeds, spreads);
    return choose([&](size_t n) { return strategies.of(n).size() > known[n]; });
  }

  /// Lets some ops, their neighbors and the loops' carries choose again, as `recut` says.
  bool choose(llvm::function_ref<bool(size_t)> again) {
    std::vector<bool> concerned(graph.nodes.size());
    auto concern = [&](int64_t tensor) {
      for (int64_t other : graph.nodesOf[tensor])
        concerned[other] = true;
    };
    for (size_t n = 0; n < concerned.size(); ++n)
      if (again(n))
        for (int64_t tensor : graph.nodes[n].tensors)
          if (tensor >= 0)
            concern(tensor);
    std::vector<size_t> carries; // with a choice
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      if (graph.tensors[t].loop && !isSummed[t] && !strategies.statesOf(t).empty()) {
        carries.push_back(t);
        concern(t);
      }
    std::vector<size_t> open;
    for (size_t n = 0; n < concerned.size(); ++n)
      if (concerned[n] && strategies.of(n).size() > 1)
        open.push_back(n);
    if (open.empty())
      return false;
    pose(open);
    const solver::Problem &problem = posed.problem;
    std::vector<int64_t> now(problem.nodes.size(), -1);
    for (size_t n : open)
      now[posed.nodeOf(n)] = choice[n];
    llvm::erase_if(carries, [&](size_t t) { return posed.homeOf(t).node < 0; });
    for (size_t t : carries)
      now[posed.homeOf(t).node] = 0;                       // the sharding that it has
    now = solver::completeChoice(problem, std::move(now)); // with the best places
    std::vector<int64_t> solved = solve();
    if (problem.cost(solved) > problem.cost(now) - kSecondsOfAReshard)
      return false;
    auto sent = [&](const std::vector<int64_t> &plan) {
      double seconds = problem.cost(plan);
      for (size_t n : open)
        seconds -= tripsOf(graph.nodes[n].op) * posed.secondsOf(n)[plan[posed.nodeOf(n)]];
      return seconds;
    };
    if (sent(solved) > sent(now) + kSecondsOfAReshard)
      return false;
    for (size_t n : open)
      choice[n] = solved[posed.nodeOf(n)];
    for (size_t t : carries) {
      StrategyEnd home = posed.homeOf(t);
      raw[t] = &home.shardings->under(solved[home.node]);
    }
    return true;
  }

  /// Candidates to replace gathers that take longer than the op that needs them, or a share of the
  /// plan: its other cuts over the gathered axes, and its operand replicated; likewise for gathered
  /// results. The surrounding region follows where that is cheaper: resharded at the border, or
  /// computed whole.
  std::vector<Strategies::Seed> alternativesTo(const Decision &decision) {
    std::vector<Strategies::Seed> seeds;
    double atStake = 0; // seconds of the gathers
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const RuleNode &node = graph.nodes[n];
      if (!node.op)
        addWhole(node, decision, seeds, atStake);
      if (strategies.of(n).empty())
        continue;
      addHoisted(n, decision, seeds, atStake);
      addTransformed(n, decision, seeds, atStake);
      for (size_t i = 0; i < node.rule.operands.size(); ++i) {
        if (follows(node, i) || decision.tensors[node.tensors[i]]->isPartial())
          continue;
        const TensorSharding *need = chosen(n, i);
        if (need != decision.tensors[node.tensors[i]])
          addAlternatives(n, i, decision.tensors[node.tensors[i]], need, seeds, atStake);
      }
    }
    if (atStake < kWorthRecutting * planned)
      seeds.clear();
    return seeds;
  }

  /// Candidates to replace what is sent for loops: other cuts of their carries.
  std::vector<Strategies::Seed> otherCarries(const Decision &decision) {
    std::vector<Strategies::Seed> seeds;
    double atStake = 0;
    for (Operation *op : graph.ops)
      if (isa<LoopLikeOpInterface>(op))
        addCarries(op, decision, seeds, atStake);
    if (atStake < kWorthRecutting * planned)
      seeds.clear();
    return seeds;
  }

  /// If values are sent for a loop, its carries may have other cuts: none, or any dimension over
  /// the axes that values are sent over. The whole loop follows, resharded at its border.
  void addCarries(Operation *loop, const Decision &decision, std::vector<Strategies::Seed> &seeds,
                  double &atStake) {
    AxisList sentOver;
    double sent = 0;
    auto send = [&](int64_t tensor, const TensorSharding *from, const TensorSharding *need) {
      if (from == need || !from || !need || graph.tensors[tensor].mesh->numAxes() == 0)
        return;
      AxisList over = axesGathered(*from, *need);
      for (const PartialAxis &partial : from->partial)
        if (llvm::none_of(need->partial, [&](auto &kept) { return kept.axis == partial.axis; }))
          over.push_back(partial.axis);
      if (over.empty())
        return;
      sent += posed.tripsOfTensor(tensor) * posed.reshardSeconds(tensor, from, need);
      for (const AxisRef &axis : over)
        if (!overlapsAny(sentOver, axis))
          sentOver.push_back(axis);
    };
    for (const RuleNode &node : graph.nodes)
      if (!node.op && graph.tensors[node.tensors.back()].loop == loop)
        isSummed[node.tensors.back()] =
            isSummed[node.tensors.back()] || addsContributions(node, decision);
    std::vector<int64_t> carries;
    for (Value result : loop->getResults())
      if (int64_t tensor = graph.tensorOf(result);
          tensor >= 0 && graph.tensors[tensor].loop == loop && !isSummed[tensor])
        carries.push_back(tensor);
    if (carries.empty())
      return;
    for (auto [n, node] : llvm::enumerate(graph.nodes)) {
      if (!node.op) {
        if (llvm::is_contained(carries, node.tensors.back()) && !posed.accumulates(node))
          send(node.tensors.front(), decision.tensors[node.tensors.front()],
               decision.tensors[node.tensors.back()]);
      } else if (loop->isProperAncestor(node.op) && !strategies.of(n).empty()) {
        for (size_t i = 0; i < node.rule.operands.size(); ++i)
          if (!follows(node, i))
            send(node.tensors[i], decision.tensors[node.tensors[i]], chosen(n, i));
      }
    }
    if (sentOver.empty())
      return;
    atStake += sent;
    for (int64_t tensor : carries) {
      const TensorState &state = graph.tensors[tensor];
      TensorSharding rest = *decision.tensors[tensor];
      for (AxisList &axes : rest.dims)
        llvm::erase_if(axes, [&](const AxisRef &axis) { return overlapsAny(sentOver, axis); });
      seeds.push_back({-1, {}, tensor, canonical(rest)});
      for (size_t d = 0; d < rest.dims.size(); ++d)
        if (std::optional<TensorSharding> other = cutFrom(d, rest, sentOver, state.type.getShape()))
          seeds.push_back({-1, {}, tensor, canonical(*other)});
    }
  }

  /// Candidates to replace reductions of what look-ups and updates contribute that take longer than
  /// the op itself: its other cuts, such as its columns, or none, with its operands moved there.
  ///
  /// Also of products whose operands are much smaller, as those with a vocabulary. Not where
  /// contributions may be added to others before one reduction (SinkPartials.cpp), which the costs
  /// here do not show. For the same reason the neighbors keep their cuts.
  std::vector<Strategies::Seed> otherUpdates(const Decision &decision) {
    std::vector<Strategies::Seed> seeds;
    Contributors contributors(
        graph, decision.tensors, [&](size_t n, size_t i, const TensorSharding &from) {
          if (strategies.of(n).empty())
            return false;
          const RuleNode &node = graph.nodes[n];
          if (follows(node, i))
            return mayUpdate(n, from, decision);
          // Rows that an update adds are reduced before, not in its larger result.
          bool grows = isIndexed(node.op) && graph.tensors[node.tensors[i]].bytes <
                                                 graph.tensors[node.tensors.back()].bytes;
          return !grows && mayForward(n, i, from);
        });
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const RuleNode &node = graph.nodes[n];
      if (node.op && strategies.of(n).empty())
        continue;
      size_t count = node.op ? node.rule.operands.size() : 1;
      for (size_t i = 0; i < count; ++i) {
        // An update may start from contributions, which are reduced before it then.
        if (node.op && follows(node, i) && !isIndexed(node.op))
          continue;
        int64_t tensor = node.tensors[i], maker = posed.makerOf(tensor);
        const TensorSharding *from = decision.tensors[tensor];
        const TensorSharding *need = node.op ? chosen(n, i) : decision.tensors[node.tensors.back()];
        if (!from || !need || !from->isPartial() || maker < 0)
          continue;
        if (std::vector<int64_t> all = contributors.reducedWith(tensor); all.size() > 1)
          addUpdatesTogether(tensor, from, need, all, seeds);
        else if (contributors.isReducedAlone(maker))
          addUnreduced(tensor, from, need, contributors.isReturned(maker), seeds);
      }
    }
    addLookedUp(seeds);
    return seeds;
  }

  /// Whether a tensor is looked up, or computed from looked-up tensors element by element.
  bool isLookedUp(int64_t tensor, int depth = 8) const {
    int64_t maker = tensor < 0 ? -1 : posed.makerOf(tensor);
    if (maker < 0 || depth == 0)
      return false;
    const RuleNode &node = graph.nodes[maker];
    return isIndexed(node.op) ||
           (node.rule.isElementwise() && llvm::any_of(node.op->getOperands(), [&](Value operand) {
              return isLookedUp(graph.tensorOf(operand), depth - 1);
            }));
  }

  /// Adds seeds for what updates and look-ups read under the seeded strategies, where that is
  /// looked up itself: rows may be looked up where they are needed, from a table that is smaller
  /// than its rows at the indices.
  void addLookedUp(std::vector<Strategies::Seed> &seeds) {
    for (size_t s = 0, count = seeds.size(); s < count; ++s) {
      if (seeds[s].node < 0 || !isIndexed(graph.nodes[seeds[s].node].op))
        continue;
      const RuleNode &node = graph.nodes[seeds[s].node];
      for (size_t i = 0; i < node.rule.operands.size(); ++i)
        if (!follows(node, i) && isLookedUp(node.tensors[i]))
          seeds.push_back({-1, {}, node.tensors[i], shardingUnder(node, i, seeds[s].strategy)});
    }
  }

  /// If control flow or a result receives a value gathered, its producer may compute it whole, from
  /// a slice that all devices need a copy of.
  void addWhole(const RuleNode &node, const Decision &decision,
                std::vector<Strategies::Seed> &seeds, double &atStake) {
    int64_t value = node.tensors.front(), receiver = node.tensors.back();
    const TensorSharding *from = decision.tensors[value], *need = decision.tensors[receiver];
    if (posed.makerOf(value) < 0 || !from || !need || from->isPartial() || need->isPartial() ||
        graph.tensors[value].mesh != graph.tensors[receiver].mesh ||
        axesGathered(*from, *need).empty())
      return;
    atStake += posed.tripsOfTensor(value) * posed.reshardSeconds(value, from, need);
    seeds.push_back({-1, {}, value, *need});
  }

  /// Whether the program determines a tensor: it depends on no argument.
  bool isKnown(int64_t tensor) {
    int64_t maker = tensor < 0 ? -1 : posed.makerOf(tensor);
    if (maker < 0)
      return false;
    known.resize(graph.nodes.size());
    if (!known[maker])
      known[maker] = llvm::all_of(graph.nodes[maker].op->getOperands(), [&](Value operand) {
        int64_t read = graph.tensorOf(operand);
        return read < 0 ? operand.getDefiningOp<arith::ConstantOp>() != nullptr : isKnown(read);
      });
    return *known[maker];
  }

  /// A product of one value with known ones transforms it, as Fourier's and the cosine transform
  /// do. Where reducing what its parts contribute takes longer than the product, it may be computed
  /// along another dimension, to which the value moves.
  void addTransformed(size_t n, const Decision &decision, std::vector<Strategies::Seed> &seeds,
                      double &atStake) {
    const RuleNode &node = graph.nodes[n];
    if (!isa<linalg::LinalgOp>(node.op) || isIndexed(node.op))
      return;
    AxisList reduced;
    int64_t moving = 0;
    for (auto [f, axes] : llvm::enumerate(strategies.of(n)[choice[n]].factors)) {
      if (axes.empty() || node.rule.factors[f].kind != FactorKind::reduction)
        continue;
      reduced.insert(reduced.end(), axes.begin(), axes.end());
      for (size_t i = 0; i < node.rule.operands.size(); ++i)
        moving += !follows(node, i) && !isKnown(node.tensors[i]);
    }
    if (reduced.empty() || moving > 1 || node.rule.operands.size() < 3)
      return;
    double seconds = 0;
    forEachResult(n, [&](size_t, int64_t result) {
      const TensorSharding *made = decision.tensors[result];
      seconds +=
          tripsOf(node.op) * posed.reshardSeconds(result, made, graph.keep(made->withoutPartial()));
    });
    if (seconds <= tripsOf(node.op) * posed.secondsOf(n, strategies.listOf(n))[choice[n]])
      return;
    atStake += seconds;
    addOtherCuts(n, reduced, seeds);
  }

  /// If every iteration reduces a slice of a value from outside of the loop, a small value may be
  /// gathered before the loop instead.
  void addHoisted(size_t n, const Decision &decision, std::vector<Strategies::Seed> &seeds,
                  double &atStake) {
    constexpr int64_t kMostBytes = int64_t(256) << 20;
    const RuleNode &node = graph.nodes[n];
    if (!isa<tensor::ExtractSliceOp>(node.op))
      return;
    double trips = tripsOf(node.op);
    for (size_t i = 0; i < node.rule.operands.size(); ++i) {
      int64_t tensor = node.tensors[i];
      if (follows(node, i) || graph.tensors[tensor].bytes > kMostBytes ||
          posed.tripsOfTensor(tensor) >= trips)
        continue;
      Strategy whole = strategies.of(n)[choice[n]];
      bool isReduced = false;
      for (const DimRule &dim : node.rule.operands[i])
        for (int64_t factor : dim.factors)
          if (node.rule.factors[factor].kind == FactorKind::reduction &&
              !whole.factors[factor].empty()) {
            whole.factors[factor].clear();
            isReduced = true;
          }
      if (!isReduced)
        continue;
      forEachResult(n, [&](size_t, int64_t result) {
        const TensorSharding *made = decision.tensors[result];
        atStake += trips * posed.reshardSeconds(result, made, graph.keep(made->withoutPartial()));
      });
      seeds.push_back({static_cast<int64_t>(n), std::move(whole)});
    }
  }

  /// Whether a tie gives a carry the sum of itself and contributions. Cutting it would not send
  /// less, since these are reduced after the loop.
  bool addsContributions(const RuleNode &tie, const Decision &decision) {
    return llvm::any_of(posed.additionsOf(tie), [&](int64_t n) {
      const RuleNode &adder = graph.nodes[n];
      return adder.rule.isElementwise() && llvm::any_of(adder.tensors, [&](int64_t tensor) {
               return tensor >= 0 && decision.tensors[tensor] &&
                      decision.tensors[tensor]->isPartial();
             });
    });
  }

  /// Cuts dimension `first`, and if the axes do not divide it, the next ones over the rest of them:
  /// 8 devices cut 2 batches in 2 and 4 heads in 4.
  static std::optional<TensorSharding> cutFrom(size_t first, TensorSharding sharding, AxisList axes,
                                               ArrayRef<int64_t> shape) {
    size_t rank = shape.size();
    for (size_t i = 0; i < rank && !axes.empty(); ++i) {
      size_t d = (first + i) % rank;
      AxisList &own = sharding.dims[d];
      AxisList taken, rest;
      int64_t size = ceilDiv(shape[d], sizeOf(own)), parts = sizeOf(axes);
      int64_t fitting = std::gcd(size, parts);
      if (fitting == 1 && i == 0 && size >= parts)
        fitting = parts; // unevenly
      if (fitting > 1 && splitAt(axes, fitting, taken, rest)) {
        own.insert(own.end(), taken.begin(), taken.end());
        own = mergeAxes(std::move(own));
        axes = std::move(rest);
      } else if (i == 0) {
        return std::nullopt;
      }
    }
    return axes.empty() ? std::optional(std::move(sharding)) : std::nullopt;
  }

  /// The axes that cut `from` but not the needed sharding.
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
    double gather = posed.tripsOfTensor(tensor) * posed.reshardSeconds(tensor, from, need);
    atStake += gather;
    if (!graph.tensors[tensor].isFixed && !graph.nodesOf[tensor].empty())
      seeds.push_back({-1, {}, tensor, *need});
    double computing = tripsOf(node.op) * posed.secondsOf(n, strategies.listOf(n))[choice[n]];
    if (gather > std::min(computing, kWorthRecutting * planned))
      addOtherCuts(n, gathered, seeds);
  }

  /// Whether the op of a node, as it is cut, may forward contributions of an operand.
  bool mayForward(size_t n, size_t position, const TensorSharding &from) {
    for (const PartialAxis &partial : from.partial) {
      for (const AxisList &axes : strategies.of(n)[choice[n]].factors)
        if (overlapsAny(axes, partial.axis))
          return false;
      if (operandsToPass(graph.nodes[n].op, partial.kind, {static_cast<int64_t>(position)}).empty())
        return false;
    }
    return true;
  }

  /// Whether an update adds to such contributions, which are reduced with its own then.
  bool mayUpdate(size_t n, const TensorSharding &from, const Decision &decision) {
    if (!isIndexed(graph.nodes[n].op))
      return false;
    const TensorSharding *made = decision.tensors[graph.nodes[n].tensors.back()];
    return made && made->partial == from.partial;
  }

  static bool isIndexed(Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic && !selectedLoops(generic).empty();
  }

  /// Seconds to gather all operands of a node that are cut.
  double gatherSeconds(size_t n) {
    const RuleNode &node = graph.nodes[n];
    double seconds = 0;
    for (size_t i = 0; i < node.rule.operands.size(); ++i)
      if (int64_t tensor = node.tensors[i]; tensor >= 0 && !follows(node, i)) {
        const TensorSharding *from = chosen(n, i);
        auto whole = TensorSharding::replicated(static_cast<int64_t>(from->dims.size()));
        seconds += tripsOf(node.op) * posed.reshardSeconds(tensor, from, graph.keep(whole));
      }
    return seconds;
  }

  void addUnreduced(int64_t tensor, const TensorSharding *from, const TensorSharding *need,
                    bool isReturned, std::vector<Strategies::Seed> &seeds) {
    int64_t maker = posed.makerOf(tensor);
    if (need->isPartial() || maker < 0 || strategies.of(maker).empty() ||
        !isa<linalg::LinalgOp>(graph.nodes[maker].op))
      return;
    AxisList reduced;
    for (const PartialAxis &partial : from->partial)
      for (const AxisList &axes : strategies.of(maker)[choice[maker]].factors)
        if (overlapsAny(axes, partial.axis)) {
          reduced.push_back(partial.axis);
          break;
        }
    if (reduced.empty())
      return;
    double seconds = posed.tripsOfTensor(tensor) * posed.reshardSeconds(tensor, from, need);
    if (isIndexed(graph.nodes[maker].op)
            ? seconds <= tripsOf(graph.nodes[maker].op) *
                             posed.secondsOf(maker, strategies.listOf(maker))[choice[maker]]
            : isReturned || seconds <= kMuchSmaller * gatherSeconds(maker))
      return;
    addOtherCuts(maker, reduced, seeds);
    seeds.push_back({maker, without(reduced, maker)});
  }

  /// Updates of one tensor, as those by several look-ups in a table, whose contributions are added
  /// and reduced once, are all cut otherwise if sending all that they add takes less.
  void addUpdatesTogether(int64_t tensor, const TensorSharding *from, const TensorSharding *need,
                          ArrayRef<int64_t> updates, std::vector<Strategies::Seed> &seeds) {
    if (need->isPartial() || updates.size() < 2 || !llvm::all_of(updates, [&](int64_t n) {
          return !strategies.of(n).empty() && isIndexed(graph.nodes[n].op);
        }))
      return;
    double gathering = 0;
    for (int64_t n : updates)
      gathering += gatherSeconds(n);
    if (gathering > posed.tripsOfTensor(tensor) * posed.reshardSeconds(tensor, from, need))
      return;
    AxisList reduced;
    for (const PartialAxis &partial : from->partial)
      reduced.push_back(partial.axis);
    for (int64_t n : updates) {
      size_t first = seeds.size();
      addOtherCuts(n, reduced, seeds);
      seeds.push_back({n, without(reduced, n)});
      // What adds them up follows.
      const RuleNode &node = graph.nodes[n];
      for (size_t s = first, last = seeds.size(); s < last; ++s)
        seeds.push_back({-1,
                         {},
                         node.tensors.back(),
                         shardingUnder(node, node.tensors.size() - 1, seeds[s].strategy)});
    }
  }

  /// The strategy of a node, which no longer cuts loops over some axes.
  Strategy without(const AxisList &moved, size_t n) const {
    Strategy rest = strategies.of(n)[choice[n]];
    for (AxisList &axes : rest.factors)
      llvm::erase_if(axes, [&](const AxisRef &axis) { return overlapsAny(moved, axis); });
    // Contributions over an axis that now cuts a loop are reduced before the op.
    llvm::erase_if(rest.forwards, [&](const Forward &forward) {
      return overlapsAny(moved, forward.partial.axis);
    });
    return rest;
  }

  /// Seeds that cut any loop of an op over some axes, in place of those that they cut.
  void addOtherCuts(size_t n, const AxisList &moved, std::vector<Strategies::Seed> &seeds) {
    const RuleNode &node = graph.nodes[n];
    Strategy rest = without(moved, n);
    for (auto [f, factor] : llvm::enumerate(node.rule.factors)) {
      if (factor.kind == FactorKind::replicate ||
          factor.size < sizeOf(rest.factors[f]) * sizeOf(moved))
        continue; // devices would have nothing to do
      Strategy other = rest;
      other.factors[f].insert(other.factors[f].end(), moved.begin(), moved.end());
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

  /// The sharding of a tensor of a node under the node's choice.
  const TensorSharding *chosen(size_t n, size_t position) {
    return &posed.shardingsOf(n, position, strategies.listOf(n)).under(choice[n]);
  }

  std::vector<int64_t> solve() const {
    solver::Options options;
    options.mode = solver::Mode::recursive_programming;
    options.timeLimit = std::numeric_limits<double>::infinity();
    solver::Expected<solver::Solution> solved = solver::solve(posed.problem, options);
    auto *solution = std::get_if<solver::Solution>(&solved);
    assert(solution && "a problem without a budget has a plan");
    return std::move(solution->choice);
  }

  const PropagationGraph &graph;
  Strategies strategies;
  StrategyProblem posed;
  std::vector<bool> isOpen;                ///< by node of the graph: whether it chooses
  std::vector<bool> isOpenResult;          ///< by tensor
  std::vector<bool> isSummed;              ///< by tensor: whether a carry adds up contributions
  std::vector<int64_t> choice;             ///< by node of the graph: its strategy
  std::vector<const TensorSharding *> raw; ///< by tensor; null for what ops with strategies produce
  std::vector<std::optional<bool>> known;  ///< by node, where it was asked (isKnown)
  double planned = 0;                      ///< seconds of the first plan's contested ops
  std::vector<const TensorSharding *> placed; ///< by tensor: the place of the first plan, or null
};

} // namespace

Decision dist::decide(const PropagationGraph &graph, const Topology &topology,
                      const DecideOptions &options) {
  return Decider(graph, topology, options).run(options.recuts);
}
