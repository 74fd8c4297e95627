//===- Ways.cpp - All ways to cut an op or to lay a tensor -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ways.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Calls `visit` with every assignment of `axes` many digits, each of which has `choices` values;
/// the first digit changes slowest.
static void forEachAssignment(size_t axes, size_t choices,
                              llvm::function_ref<void(ArrayRef<size_t>)> visit) {
  SmallVector<size_t> digits(axes, 0);
  for (;;) {
    visit(digits);
    size_t at = axes;
    while (at > 0 && ++digits[at - 1] == choices)
      digits[--at] = 0;
    if (at == 0)
      return;
  }
}

/// How many of the `candidates` longest choices may stay beside `others` so that there are at most
/// `most` assignments.
static size_t choicesWithin(size_t candidates, size_t others, size_t axes, size_t most) {
  while (candidates > 0 && std::pow(static_cast<double>(candidates + others),
                                    static_cast<double>(axes)) > static_cast<double>(most))
    --candidates;
  return candidates;
}

std::vector<SmallVector<int64_t>> dist::waysToPass(const RuleNode &node) {
  std::vector<SmallVector<int64_t>> ways;
  if (!node.op || node.op->getNumResults() != 1 || !node.rule.isElementwise())
    return ways;
  for (size_t o = 0; o < node.rule.operands.size(); ++o) {
    if (node.tensors[o] < 0 || node.rule.accumulatorOf[o] >= 0)
      continue;
    SmallVector<int64_t> through =
        operandsToPass(node.op, sharding::ReduceKind::sum, {static_cast<int64_t>(o)});
    if (!through.empty() && !llvm::is_contained(ways, through))
      ways.push_back(std::move(through));
  }
  return ways;
}

/// Whether a cut of the factor leaves windows of it that a neighbour can fill.
static bool fitsWindows(const ShardingRule &rule, int64_t factor, int64_t parts) {
  for (const TensorRule &tensor : rule.operands)
    for (const DimRule &dim : tensor)
      if (dim.isWindow && dim.factors.front() == factor) {
        int64_t size = rule.factors[factor].size;
        if (size % parts != 0 || size / parts * dim.stride < dim.extent)
          return false;
      }
  return true;
}

Ways dist::waysToCut(const RuleNode &node, const Mesh &mesh, size_t most) {
  const ShardingRule &rule = node.rule;
  auto axes = static_cast<size_t>(mesh.numAxes());
  std::vector<SmallVector<int64_t>> passes = waysToPass(node);
  SmallVector<int64_t> factors;
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind != FactorKind::replicate && rule.factors[f].size > 1)
      factors.push_back(static_cast<int64_t>(f));
  size_t kept = choicesWithin(factors.size(), 1 + passes.size(), axes, most);
  if (kept < factors.size()) {
    std::stable_sort(factors.begin(), factors.end(), [&](int64_t a, int64_t b) {
      return rule.factors[a].size > rule.factors[b].size;
    });
    factors.truncate(kept);
    llvm::sort(factors);
  }

  Ways ways;
  forEachAssignment(axes, 1 + factors.size() + passes.size(), [&](ArrayRef<size_t> digits) {
    Strategy strategy{FactorAxes(rule.factors.size()), {}};
    AxisLabels labels;
    for (auto [axis, digit] : llvm::enumerate(digits)) {
      AxisRef full = AxisRef::full(mesh, static_cast<int64_t>(axis));
      if (full.size == 1 && digit > 0)
        return; // an axis of one device cuts nothing
      if (digit == 0) {
        labels.push_back(kWhole);
      } else if (digit <= factors.size()) {
        labels.push_back(factors[digit - 1]);
        strategy.axes[factors[digit - 1]].push_back(full);
      } else {
        size_t pass = digit - 1 - factors.size();
        labels.push_back(static_cast<int64_t>(rule.factors.size() + pass));
        strategy.passing.push_back({{full, sharding::ReduceKind::sum}, passes[pass]});
      }
    }
    for (int64_t f : factors) {
      int64_t parts = sizeOf(strategy.axes[f]);
      if (parts > 1 && (parts > rule.factors[f].size || !fitsWindows(rule, f, parts)))
        return;
      strategy.axes[f] = mergeAxes(strategy.axes[f]);
    }
    if (legalize(rule, strategy.axes) != strategy.axes)
      return; // parts of a reshaped dimension that would be no boxes
    ways.strategies.push_back(std::move(strategy));
    ways.labels.push_back(std::move(labels));
  });
  return ways;
}

Placements dist::placementsOf(const TensorState &tensor, size_t most) {
  const AxisList &open = tensor.given.open;
  std::vector<int64_t> shape = shapeOf(tensor.type);
  SmallVector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1)
      dims.push_back(static_cast<int64_t>(d));
  size_t kept = choicesWithin(dims.size(), 1, open.size(), most);
  if (kept < dims.size()) {
    std::stable_sort(dims.begin(), dims.end(),
                     [&](int64_t a, int64_t b) { return shape[a] > shape[b]; });
    dims.truncate(kept);
    llvm::sort(dims);
  }
  Placements result;
  forEachAssignment(open.size(), 1 + dims.size(), [&](ArrayRef<size_t> digits) {
    TensorSharding sharding = tensor.given.closed();
    AxisLabels labels(tensor.mesh->numAxes(), kWhole);
    for (auto [axis, digit] : llvm::zip(open, digits)) {
      if (digit == 0)
        continue;
      if (axis.size == 1)
        return;
      int64_t dim = dims[digit - 1];
      sharding.dims[dim].push_back(axis);
      // Parts of one axis add up to one label: only equality counts.
      labels[axis.axis] = labels[axis.axis] * (static_cast<int64_t>(shape.size()) + 1) + dim + 1;
      if (sizeOf(sharding.dims[dim]) > shape[dim])
        return;
    }
    result.shardings.push_back(canonical(std::move(sharding)));
    result.labels.push_back(std::move(labels));
  });
  return result;
}
