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

static constexpr double kBytesPerSecond = 450e9;
static constexpr double kIterationsPerSecond = 5e12;

namespace {

class Decider {
public:
  explicit Decider(const PropagationGraph &graph) : graph(graph) {
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
    // Results' claims, then what operands add where the results say nothing (the reductions).
    std::vector<Claim> resultsFirst = fromResults;
    for (Claim &claim : resultsFirst)
      claim.bytes = std::numeric_limits<int64_t>::max();
    resultsFirst.insert(resultsFirst.end(), fromOperands.begin(), fromOperands.end());
    std::vector<Claim> operandsFirst = fromOperands;
    for (Claim &claim : operandsFirst)
      claim.bytes = std::numeric_limits<int64_t>::max() - claim.order;
    operandsFirst.insert(operandsFirst.end(), fromResults.begin(), fromResults.end());

    FactorAxes best;
    std::pair<double, int64_t> bestCost;
    bool first = true;
    for (const std::vector<Claim> &claims : {resultsFirst, all, operandsFirst, fromResults}) {
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

  /// Seconds of the reshards around the op and of its own iterations on a typical accelerator, then
  /// the wire bytes. Iterations count so that no plan undoes the user's cuts to save a few bytes;
  /// latency does not, since collectives are fused later.
  std::pair<double, int64_t> costOf(const RuleNode &node, const FactorAxes &axes) {
    size_t numOperands = node.rule.operands.size();
    int64_t bytes = 0;
    for (size_t i = 0; i < node.tensors.size(); ++i) {
      int64_t tensor = node.tensors[i];
      if (tensor < 0)
        continue;
      const TensorState &state = graph.tensors[tensor];
      TensorSharding wanted = canonical(state.sharding.closed());
      if (i < numOperands)
        bytes += reshardBytes(state, raw[tensor], operandSharding(node.rule, i, axes));
      else
        bytes += reshardBytes(state, resultSharding(node.rule, i - numOperands, axes), wanted);
    }
    int64_t iterations = 1;
    for (size_t f = 0; f < axes.size(); ++f)
      iterations *= std::max<int64_t>(1, ceilDiv(node.rule.factors[f].size, sizeOf(axes[f])));
    return {static_cast<double>(bytes) / kBytesPerSecond +
                static_cast<double>(iterations) / kIterationsPerSecond,
            bytes};
  }

  int64_t reshardBytes(const TensorState &state, const TensorSharding &source,
                       const TensorSharding &target) {
    if (source == target)
      return 0;
    ReshardProblem problem{*state.mesh, shapeOf(state.type),
                           bytesPerElement(state.type.getElementType()), source, target};
    return planner.plan(problem).traffic.wireBytes;
  }

  const PropagationGraph &graph;
  ReshardPlanner planner;
  std::vector<TensorSharding> raw;
};

} // namespace

std::vector<TensorSharding> dist::decideResults(const PropagationGraph &graph) {
  return Decider(graph).run();
}
