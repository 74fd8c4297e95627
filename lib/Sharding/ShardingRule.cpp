//===- ShardingRule.cpp - Which loops of an op may be cut ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ShardingRule.h"

#include <algorithm>

namespace tessera::sharding {

bool ShardingRule::isElementwise() const {
  return std::all_of(factors.begin(), factors.end(),
                     [](const Factor &factor) { return factor.kind == FactorKind::parallel; });
}

ShardingRule identityRule(const std::vector<int64_t> &shape) {
  ShardingRule rule;
  TensorRule dims;
  for (int64_t extent : shape) {
    dims.push_back({{static_cast<int64_t>(rule.factors.size())}});
    rule.factors.push_back({extent, FactorKind::parallel, ReduceKind::sum});
  }
  rule.operands = {dims};
  rule.results = {dims};
  rule.accumulatorOf = {-1};
  rule.movesOnly = true;
  return rule;
}

void projectDim(const ShardingRule &rule, const DimRule &dim, const AxisList &axes,
                FactorAxes &factorAxes) {
  AxisList rest = axes;
  for (size_t i = 0; i < dim.factors.size() && !rest.empty(); ++i) {
    int64_t factor = dim.factors[i], size = rule.factors[factor].size;
    int64_t parts = sizeOf(rest);
    if (i + 1 == dim.factors.size()) {
      // Behind other factors a part must end where the dimension's parts end.
      if (dim.factors.size() == 1 || size % parts == 0)
        factorAxes[factor] = rest;
      return;
    }
    if (size % parts == 0) { // all of it cuts the major factor
      factorAxes[factor] = rest;
      return;
    }
    AxisList major, minor;
    if (parts % size != 0 || !splitAt(rest, size, major, minor))
      return; // parts would straddle the factors
    factorAxes[factor] = major;
    rest = minor;
  }
}

FactorAxes project(const ShardingRule &rule, const TensorRule &tensor,
                   const TensorSharding &sharding) {
  FactorAxes result(rule.factors.size());
  for (size_t d = 0; d < tensor.size(); ++d)
    projectDim(rule, tensor[d], sharding.dims[d], result);
  return result;
}

FactorAxes legalize(const ShardingRule &rule, FactorAxes axes) {
  AxisList used;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::replicate)
      axes[f].clear();
    // An axis that an earlier factor has ends the list: what follows would lie elsewhere.
    auto taken = std::find_if(axes[f].begin(), axes[f].end(),
                              [&](const AxisRef &axis) { return overlapsAny(used, axis); });
    axes[f].erase(taken, axes[f].end());
    used.insert(used.end(), axes[f].begin(), axes[f].end());
  }
  auto legalizeTensor = [&](const TensorRule &tensor) {
    for (const DimRule &dim : tensor) {
      if (dim.factors.size() < 2)
        continue;
      bool through = true; // everything more major is cut down to single iterations
      for (size_t i = 0; i < dim.factors.size(); ++i) {
        int64_t factor = dim.factors[i];
        int64_t parts = sizeOf(axes[factor]), size = rule.factors[factor].size;
        if (!axes[factor].empty() && (!through || size % parts != 0)) {
          axes[factor].clear();
          parts = 1;
        }
        through = through && parts == size;
      }
    }
  };
  for (const TensorRule &tensor : rule.operands)
    legalizeTensor(tensor);
  for (const TensorRule &tensor : rule.results)
    legalizeTensor(tensor);
  return axes;
}

static TensorSharding tensorSharding(const ShardingRule &rule, const TensorRule &tensor,
                                     const FactorAxes &axes) {
  TensorSharding result = TensorSharding::replicated(tensor.size());
  for (size_t d = 0; d < tensor.size(); ++d) {
    const DimRule &dim = tensor[d];
    for (int64_t factor : dim.factors)
      result.dims[d].insert(result.dims[d].end(), axes[factor].begin(), axes[factor].end());
    if (dim.isWindow && !result.dims[d].empty()) {
      int64_t chunk = ceilDiv(rule.factors[dim.factors[0]].size, sizeOf(result.dims[d]));
      result.windows.push_back({static_cast<int64_t>(d), chunk * dim.stride, dim.shift,
                                (chunk - 1) * dim.stride + dim.extent});
    }
  }
  return result;
}

static void addPartials(const ShardingRule &rule, const FactorAxes &axes,
                        TensorSharding &sharding) {
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule.factors[f].kind == FactorKind::reduction)
      for (const AxisRef &axis : axes[f])
        sharding.partial.push_back({axis, rule.factors[f].reduction});
}

TensorSharding operandSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes) {
  TensorSharding result = tensorSharding(rule, rule.operands[index], axes);
  if (rule.accumulatorOf[index] >= 0)
    addPartials(rule, axes, result);
  return canonical(result);
}

TensorSharding resultSharding(const ShardingRule &rule, int64_t index, const FactorAxes &axes) {
  TensorSharding result = tensorSharding(rule, rule.results[index], axes);
  addPartials(rule, axes, result);
  return canonical(result);
}

FactorAxes deriveFactorAxes(const ShardingRule &rule, const std::vector<TensorSharding> &results,
                            const std::vector<TensorSharding> &operands) {
  FactorAxes axes(rule.factors.size());
  AxisList partial;
  for (size_t r = 0; r < results.size(); ++r) {
    FactorAxes own = project(rule, rule.results[r], results[r]);
    for (size_t f = 0; f < axes.size(); ++f)
      if (axes[f].empty())
        axes[f] = own[f];
    for (const AxisRef &axis : results[r].partialAxes())
      if (!overlapsAny(partial, axis))
        partial.push_back(axis);
  }
  std::vector<FactorAxes> projected;
  for (size_t o = 0; o < operands.size(); ++o)
    projected.push_back(project(rule, rule.operands[o], operands[o]));
  for (const AxisRef &axis : partial) {
    int64_t chosen = -1;
    for (size_t f = 0; f < axes.size() && chosen < 0; ++f)
      if (rule.factors[f].kind == FactorKind::reduction)
        for (const FactorAxes &own : projected)
          if (overlapsAny(own[f], axis)) {
            chosen = static_cast<int64_t>(f);
            break;
          }
    for (size_t f = 0; f < axes.size() && chosen < 0; ++f)
      if (rule.factors[f].kind == FactorKind::reduction &&
          rule.factors[f].size >= axis.size * sizeOf(axes[f]))
        chosen = static_cast<int64_t>(f);
    for (size_t f = 0; f < axes.size() && chosen < 0; ++f)
      if (rule.factors[f].kind == FactorKind::reduction)
        chosen = static_cast<int64_t>(f); // shorter than the axis: some devices reduce nothing
    if (chosen >= 0)
      axes[chosen].push_back(axis);
  }
  // Several axes of one reduction keep the order in which an operand is cut by them.
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule.factors[f].kind == FactorKind::reduction && axes[f].size() > 1)
      for (const FactorAxes &own : projected) {
        AxisList sorted = own[f];
        if (mergeAxes(sorted).size() == axes[f].size() &&
            std::is_permutation(sorted.begin(), sorted.end(), axes[f].begin(), axes[f].end())) {
          axes[f] = sorted;
          break;
        }
      }
  return legalize(rule, axes);
}

} // namespace tessera::sharding
