//===- Claims.cpp - Claims of tensors on the factors of an op -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Strategies.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

const TensorRule &dist::ruleOf(const RuleNode &node, size_t position) {
  size_t numOperands = node.rule.operands.size();
  return position < numOperands ? node.rule.operands[position]
                                : node.rule.results[position - numOperands];
}

bool dist::follows(const RuleNode &node, size_t position) {
  return node.tensors[position] < 0 ||
         (position < node.rule.operands.size() && node.rule.accumulatorOf[position] >= 0);
}

/// Settles claims: heavier first, then in operand order; a claim that continues an accepted one
/// extends it; an axis serves one factor.
FactorAxes Strategies::settle(const ShardingRule &rule, Claims claims) {
  llvm::stable_sort(claims, [](const Claim &a, const Claim &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.order < b.order;
  });
  FactorAxes axes(rule.factors.size());
  AxisList used;
  for (const Claim &claim : claims) {
    AxisList &own = axes[claim.factor];
    if (own == *claim.axes || !isPrefix(own, *claim.axes))
      continue;
    for (const AxisRef &axis : removePrefix(own, *claim.axes)) {
      if (overlapsAny(used, axis))
        break;
      own.push_back(axis);
      used.push_back(axis);
    }
    own = mergeAxes(std::move(own));
  }
  return legalize(rule, std::move(axes));
}

/// Whether a slice is one element, so that only one device would hold it although all read it.
static bool isTooNarrow(const ShardingRule &rule, const DimRule &dim, const AxisList &axes) {
  return dim.segment && dim.isNarrow && rule.factors[dim.factors[0]].size == 1 && sizeOf(axes) > 1;
}

void Strategies::claim(const RuleNode &node, size_t position, const TensorSharding &sharding,
                       int64_t weight, Claims &claims) {
  auto add = [&](int64_t factor, const AxisList &axes) {
    if (!axes.empty() && node.rule.factors[factor].kind != FactorKind::replicate)
      claims.push_back({factor, &axes, weight, static_cast<int64_t>(position), position});
  };
  const TensorRule &rule = ruleOf(node, position);
  const size_t first = claims.size();
  for (size_t d = 0; d < rule.size(); ++d) {
    const AxisList &axes = sharding.dims[d];
    if (axes.empty() || isTooNarrow(node.rule, rule[d], axes))
      continue;
    if (rule[d].factors.size() == 1) {
      add(rule[d].factors.front(), axes);
      continue;
    }
    auto split = std::make_shared<FactorAxes>(node.rule.factors.size());
    projectDim(node.rule, rule[d], axes, *split);
    for (int64_t factor : rule[d].factors)
      add(factor, (*split)[factor]);
    claims.split.push_back(std::move(split));
  }
  llvm::sort(llvm::drop_begin(claims, first),
             [](const Claim &a, const Claim &b) { return a.factor < b.factor; });
}

Strategies::Claims Strategies::claimsOf(const RuleNode &node) const {
  Claims claims;
  for (size_t i = 0; i < node.tensors.size(); ++i)
    if (!follows(node, i))
      claim(node, i, *graph.tensors[node.tensors[i]].sharding, graph.tensors[node.tensors[i]].bytes,
            claims);
  return claims;
}

/// The claims on which all tensors with the factor agree, for axes that no other factor claims.
Strategies::Claims Strategies::uncontested(const RuleNode &node, const Claims &all) {
  Claims result;
  for (size_t f = 0; f < node.rule.factors.size(); ++f) {
    auto factor = static_cast<int64_t>(f);
    const Claim *first = nullptr;
    int64_t claims = 0, having = 0;
    bool stands = true;
    for (const Claim &claim : all)
      if (claim.factor == factor) {
        first = first ? first : &claim;
        ++claims;
        stands = stands && *claim.axes == *first->axes;
      }
    if (!first || !stands)
      continue;
    for (const Claim &claim : all)
      if (claim.factor != factor)
        stands = stands && llvm::none_of(*first->axes, [&](const AxisRef &axis) {
                   return overlapsAny(*claim.axes, axis);
                 });
    for (size_t i = 0; i < node.tensors.size(); ++i)
      having += !follows(node, i) && llvm::any_of(ruleOf(node, i), [&](const DimRule &dim) {
        return llvm::is_contained(dim.factors, factor);
      });
    if (stands && claims == having) {
      result.push_back(*first);
      result.back().weight = std::numeric_limits<int64_t>::max();
      result.back().order = -1;
    }
  }
  return result;
}

bool dist::isBroadcast(const RuleNode &node, size_t position) {
  if (!node.rule.isElementwise())
    return false;
  const TensorRule &rule = ruleOf(node, position);
  for (size_t f = 0; f < node.rule.factors.size(); ++f)
    if (node.rule.factors[f].size > 1 && llvm::none_of(rule, [&](const DimRule &dim) {
          return llvm::is_contained(dim.factors, static_cast<int64_t>(f));
        }))
      return true;
  return false;
}

FactorAxes Strategies::merge(const PropagationGraph &graph, const RuleNode &node, int64_t round,
                             bool broadcasts) {
  Claims claims;
  for (size_t i = 0; i < node.tensors.size(); ++i) {
    if (node.tensors[i] < 0)
      continue;
    const TensorState &state = graph.tensors[node.tensors[i]];
    if (state.priority <= round && (broadcasts || !isBroadcast(node, i)))
      claim(node, i, *state.sharding, state.bytes, claims);
  }
  return settle(node.rule, std::move(claims));
}
