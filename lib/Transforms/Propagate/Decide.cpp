//===- Decide.cpp - How each op's loops are cut ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"

#include "tessera/Sharding/ReshardPlanner.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

/// What one tensor says of one factor.
struct Claim {
  int64_t factor;
  AxisList axes;
  int64_t bytes;
  int64_t order;
};

} // namespace

static const TensorRule &ruleOf(const RuleNode &node, size_t position) {
  size_t numOperands = node.rule.operands.size();
  return position < numOperands ? node.rule.operands[position]
                                : node.rule.results[position - numOperands];
}

/// Settles claims: heavier first, then in operand order; a claim that continues an accepted one
/// extends it; an axis serves one factor.
static FactorAxes settle(const ShardingRule &rule, std::vector<Claim> claims) {
  std::stable_sort(claims.begin(), claims.end(), [](const Claim &a, const Claim &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.order < b.order;
  });
  FactorAxes axes(rule.factors.size());
  AxisList used;
  for (const Claim &claim : claims) {
    AxisList &own = axes[claim.factor];
    if (!isPrefix(own, claim.axes))
      continue;
    for (const AxisRef &axis : removePrefix(own, claim.axes)) {
      if (overlapsAny(used, axis))
        break;
      own.push_back(axis);
      used.push_back(axis);
    }
    own = mergeAxes(own);
  }
  return legalize(rule, std::move(axes));
}

static void addClaims(const PropagationGraph &graph, const RuleNode &node, size_t position,
                      std::vector<Claim> &claims) {
  int64_t tensor = node.tensors[position];
  if (tensor < 0)
    return;
  const TensorState &state = graph.tensors[tensor];
  FactorAxes axes = project(node.rule, ruleOf(node, position), state.sharding);
  for (size_t f = 0; f < axes.size(); ++f)
    if (!axes[f].empty() && node.rule.factors[f].kind != FactorKind::replicate)
      claims.push_back({static_cast<int64_t>(f), std::move(axes[f]), state.bytes,
                        static_cast<int64_t>(position)});
}

/// Whether a tensor of an elementwise op lacks one of its factors.
static bool isBroadcast(const RuleNode &node, size_t position) {
  if (!node.rule.isElementwise())
    return false;
  std::vector<bool> seen(node.rule.factors.size());
  for (const DimRule &dim : ruleOf(node, position))
    for (int64_t factor : dim.factors)
      seen[factor] = true;
  for (size_t f = 0; f < seen.size(); ++f)
    if (!seen[f] && node.rule.factors[f].size > 1)
      return true;
  return false;
}

FactorAxes dist::mergeFactors(const PropagationGraph &graph, const RuleNode &node, int64_t round,
                              bool broadcasts) {
  std::vector<Claim> claims;
  for (size_t i = 0; i < node.tensors.size(); ++i)
    if (node.tensors[i] >= 0 && graph.tensors[node.tensors[i]].priority <= round &&
        (broadcasts || !isBroadcast(node, i)))
      addClaims(graph, node, i, claims);
  return settle(node.rule, std::move(claims));
}

namespace {

class Decider {
public:
  Decider(const PropagationGraph &graph, const Topology &topology)
      : graph(graph), topology(topology), planner(Objective::time, topology) {
    for (const TensorState &state : graph.tensors)
      raw.push_back(canonical(state.sharding.closed()));
  }

  std::vector<TensorSharding> run() {
    for (const RuleNode &node : graph.nodes)
      if (node.op && node.op->getNumResults() > 0 && !isa<ShardTensorOp>(node.op))
        decide(node);
    return std::move(raw);
  }

private:
  void decide(const RuleNode &node) {
    size_t numOperands = node.rule.operands.size();
    std::vector<Claim> fromOperands, fromResults, all;
    for (size_t i = 0; i < node.tensors.size(); ++i) {
      // The accumulator of a reduction follows; it has no say.
      if (i < numOperands && node.rule.accumulatorOf[i] >= 0)
        continue;
      addClaims(graph, node, i, i < numOperands ? fromOperands : fromResults);
      addClaims(graph, node, i, all);
    }
    // What nobody contests stands, whatever it costs: a cut that all who have the factor agree on
    // divides the work as the user asked. Whether another plan is cheaper is for dist-search to say.
    std::vector<Claim> agreed = uncontested(node, all);
    for (std::vector<Claim> *claims : {&fromOperands, &fromResults, &all})
      claims->insert(claims->begin(), agreed.begin(), agreed.end());
    // Results' claims, then what operands add where the results say nothing (the reductions).
    std::vector<Claim> resultsFirst = fromResults;
    for (Claim &claim : resultsFirst)
      claim.bytes = std::numeric_limits<int64_t>::max();
    resultsFirst.insert(resultsFirst.end(), fromOperands.begin(), fromOperands.end());
    std::vector<Claim> operandsFirst = fromOperands;
    for (Claim &claim : operandsFirst)
      claim.bytes = std::numeric_limits<int64_t>::max() - claim.order;
    operandsFirst.insert(operandsFirst.end(), fromResults.begin(), fromResults.end());

    std::vector<std::vector<Claim>> orders{resultsFirst, all, operandsFirst, fromResults};
    // Where claims contest an axis, each of them may be the one that has it.
    for (const Claim &claim : all) {
      orders.push_back({claim});
      orders.back().front().bytes = std::numeric_limits<int64_t>::max();
      orders.back().insert(orders.back().end(), all.begin(), all.end());
    }

    FactorAxes best;
    std::pair<double, int64_t> bestCost;
    bool first = true;
    for (const std::vector<Claim> &claims : orders) {
      FactorAxes axes = settle(node.rule, claims);
      if (!first && axes == best)
        continue;
      std::pair<double, int64_t> cost = costOf(node, axes);
      if (first || cost < bestCost) {
        best = std::move(axes);
        bestCost = cost;
        first = false;
      }
    }
    for (size_t r = 0; r < node.rule.results.size(); ++r)
      if (node.tensors[numOperands + r] >= 0)
        raw[node.tensors[numOperands + r]] = resultSharding(node.rule, r, best);
  }

  /// The claims on factors that every tensor with the factor makes alike, on axes that no other
  /// factor is claimed for.
  static std::vector<Claim> uncontested(const RuleNode &node, const std::vector<Claim> &all) {
    std::vector<Claim> result;
    for (size_t f = 0; f < node.rule.factors.size(); ++f) {
      const Claim *first = nullptr;
      int64_t claims = 0;
      bool stands = true;
      for (const Claim &claim : all)
        if (claim.factor == static_cast<int64_t>(f)) {
          first = first ? first : &claim;
          ++claims;
          stands = stands && claim.axes == first->axes;
        }
      for (const Claim &claim : all)
        if (first && claim.factor != first->factor)
          stands = stands && llvm::none_of(first->axes, [&](const AxisRef &axis) {
                     return overlapsAny(claim.axes, axis);
                   });
      if (first && stands && claims == tensorsWith(node, static_cast<int64_t>(f))) {
        result.push_back(*first);
        result.back().bytes = std::numeric_limits<int64_t>::max();
        result.back().order = -1;
      }
    }
    return result;
  }

  /// How many tensors that have a say have the factor.
  static int64_t tensorsWith(const RuleNode &node, int64_t factor) {
    int64_t count = 0;
    for (size_t i = 0; i < node.tensors.size(); ++i) {
      bool follows = i < node.rule.operands.size() && node.rule.accumulatorOf[i] >= 0;
      count += node.tensors[i] >= 0 && !follows &&
               llvm::any_of(ruleOf(node, i), [&](const DimRule &dim) {
                 return llvm::is_contained(dim.factors, factor);
               });
    }
    return count;
  }

  /// Seconds of the reshards around the op and of its own work, then the wire bytes. Work counts so
  /// that no plan undoes the user's cuts to save a few bytes; latency does not, since collectives
  /// are fused later.
  std::pair<double, int64_t> costOf(const RuleNode &node, const FactorAxes &axes) {
    size_t numOperands = node.rule.operands.size();
    std::pair<double, int64_t> cost{0, 0};
    double localBytes = 0;
    const TensorState *any = nullptr;
    for (size_t i = 0; i < node.tensors.size(); ++i) {
      int64_t tensor = node.tensors[i];
      if (tensor < 0)
        continue;
      any = &graph.tensors[tensor];
      TensorSharding own = i < numOperands ? operandSharding(node.rule, i, axes)
                                           : resultSharding(node.rule, i - numOperands, axes);
      int64_t parts = 1;
      for (const AxisList &dim : own.dims)
        parts *= sizeOf(dim);
      localBytes += static_cast<double>(any->bytes) / static_cast<double>(parts);
      if (i < numOperands)
        addReshard(*any, raw[tensor], own, cost);
      else
        addReshard(*any, own, canonical(any->sharding.closed()), cost);
    }
    double iterations = 1;
    for (size_t f = 0; f < axes.size(); ++f)
      iterations *= static_cast<double>(
          std::max<int64_t>(1, ceilDiv(node.rule.factors[f].size, sizeOf(axes[f]))));
    if (any)
      cost.first += topology.computeSeconds(iterations * flopsOf(node), localBytes,
                                            dtypeOf(any->type), any->mesh->numDevices());
    return cost;
  }

  /// Scalar operations of an iteration, at least one.
  static double flopsOf(const RuleNode &node) {
    int64_t count = 0;
    for (Region &region : node.op->getRegions())
      for (Block &block : region)
        count += static_cast<int64_t>(block.getOperations().size()) - 1;
    return static_cast<double>(std::max<int64_t>(count, 1));
  }

  static std::string dtypeOf(RankedTensorType type) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getElementType();
    return text;
  }

  void addReshard(const TensorState &state, const TensorSharding &source,
                  const TensorSharding &target, std::pair<double, int64_t> &cost) {
    if (source == target)
      return;
    ReshardProblem problem{*state.mesh, shapeOf(state.type),
                           bytesPerElement(state.type.getElementType()), source, target};
    const LinkModel &links = planner.linksOf(*state.mesh);
    for (const Move &move : planner.plan(problem).moves) {
      int64_t bytes = trafficOf(problem, move).wireBytes;
      cost.first += static_cast<double>(bytes) / links.linkOf(*state.mesh, move.axes).rate;
      cost.second += bytes;
    }
  }

  const PropagationGraph &graph;
  const Topology &topology;
  ReshardPlanner planner;
  std::vector<TensorSharding> raw;
};

} // namespace

std::vector<TensorSharding> dist::decideResults(const PropagationGraph &graph,
                                                const Topology &topology) {
  return Decider(graph, topology).run();
}
