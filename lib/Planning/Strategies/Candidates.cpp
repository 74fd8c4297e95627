//===- Candidates.cpp - Candidate cuts and shardings ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/Candidates.h"

#include "tessera/Dialect/Dist/Rules/Rules.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// Calls `visit` with every assignment of `axes` digits of `choices` values each; the first digit
/// changes slowest.
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

/// How many of the `candidates` longest choices, in addition to `others`, give at most `most`
/// assignments.
static size_t choicesWithin(size_t candidates, size_t others, size_t axes, size_t most) {
  while (candidates > 0 && std::pow(static_cast<double>(candidates + others),
                                    static_cast<double>(axes)) > static_cast<double>(most))
    --candidates;
  return candidates;
}

std::vector<SmallVector<int64_t>> dist::forwardSetsOf(const RuleNode &node) {
  std::vector<SmallVector<int64_t>> candidates;
  if (!node.op || node.op->getNumResults() != 1 || !node.rule.isElementwise())
    return candidates;
  for (size_t o = 0; o < node.rule.operands.size(); ++o) {
    if (node.tensors[o] < 0 || node.rule.accumulatorOf[o] >= 0)
      continue;
    SmallVector<int64_t> through =
        operandsToPass(node.op, sharding::ReduceKind::sum, {static_cast<int64_t>(o)});
    if (!through.empty() && !llvm::is_contained(candidates, through))
      candidates.push_back(std::move(through));
  }
  return candidates;
}

/// Whether a neighbor can fill the halo of each window after a cut of the factor.
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

Candidates dist::candidatesOf(const RuleNode &node, const Mesh &mesh, const AxisGroups &groups,
                              size_t most) {
  const ShardingRule &rule = node.rule;
  size_t axes = groups.size();
  std::vector<SmallVector<int64_t>> passes = forwardSetsOf(node);
  passes.resize(choicesWithin(passes.size(), 2, axes, most));
  SmallVector<int64_t> factors;
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind != FactorKind::replicate && rule.factors[f].size > 1)
      factors.push_back(static_cast<int64_t>(f));
  size_t kept = choicesWithin(factors.size(), 1 + passes.size(), axes, most);
  SmallVector<int64_t> longest = factors;
  std::stable_sort(longest.begin(), longest.end(), [&](int64_t a, int64_t b) {
    return rule.factors[a].size > rule.factors[b].size;
  });
  longest.truncate(kept);
  auto isAmongLongest = [&](size_t digit) {
    return digit == 0 || digit > factors.size() || llvm::is_contained(longest, factors[digit - 1]);
  };

  Candidates candidates;
  forEachAssignment(axes, 1 + factors.size() + passes.size(), [&](ArrayRef<size_t> digits) {
    size_t changes = 0;
    for (size_t n = 1; n < digits.size(); ++n)
      changes += digits[n] != digits[n - 1];
    if (changes > 1 && !llvm::all_of(digits, isAmongLongest))
      return;
    Strategy strategy{FactorAxes(rule.factors.size()), {}};
    AxisLabels labels;
    for (auto [group, digit] : llvm::zip_equal(groups, digits))
      for (int64_t axis : group) {
        AxisRef full = AxisRef::full(mesh, axis);
        if (full.size == 1 && group.size() == 1 && digit > 0)
          return; // an axis of one device cuts nothing
        if (digit == 0 || full.size == 1) {
          labels.push_back(kWhole);
        } else if (digit <= factors.size()) {
          labels.push_back(factors[digit - 1]);
          strategy.factors[factors[digit - 1]].push_back(full);
        } else {
          size_t pass = digit - 1 - factors.size();
          labels.push_back(static_cast<int64_t>(rule.factors.size() + pass));
          strategy.forwards.push_back(
              {{full, sharding::ReduceKind::sum}, {passes[pass].begin(), passes[pass].end()}});
        }
      }
    for (int64_t f : factors) {
      int64_t parts = sizeOf(strategy.factors[f]);
      if (parts > 1 && (parts > rule.factors[f].size || !fitsWindows(rule, f, parts)))
        return;
      strategy.factors[f] = mergeAxes(strategy.factors[f]);
    }
    if (legalize(rule, strategy.factors) != strategy.factors)
      return; // parts of a reshaped dimension that are not boxes
    candidates.strategies.push_back(std::move(strategy));
    candidates.labels.push_back(std::move(labels));
  });
  return candidates;
}

/// The open axes of an annotation, by group.
static std::vector<AxisList> openGroups(const TensorState &tensor, const AxisGroups &groups) {
  std::vector<AxisList> result;
  std::vector<int64_t> groupOf(tensor.mesh->numAxes());
  for (auto [g, group] : llvm::enumerate(groups))
    for (int64_t axis : group)
      groupOf[axis] = static_cast<int64_t>(g);
  for (const AxisRef &axis : tensor.given.open) {
    bool joins = !result.empty() && axis.isFull(*tensor.mesh) &&
                 result.back().back().isFull(*tensor.mesh) &&
                 groupOf[result.back().back().axis] == groupOf[axis.axis];
    if (!joins)
      result.emplace_back();
    result.back().push_back(axis);
  }
  return result;
}

AxisLabels dist::labelsOf(const TensorSharding &sharding, int64_t numAxes) {
  AxisLabels labels(numAxes, kWhole);
  int64_t rank = static_cast<int64_t>(sharding.dims.size());
  auto add = [&](const AxisRef &axis, int64_t what) {
    int64_t &label = labels[axis.axis];
    // Lists of several are numbers to the base rank + 1, beyond all labels of one.
    label = label == kWhole ? what : (label + 1) * (rank + 1) + what;
  };
  for (int64_t d = 0; d < rank; ++d)
    for (const AxisRef &axis : sharding.dims[d])
      add(axis, d);
  for (const PartialAxis &partial : sharding.partial)
    add(partial.axis, rank);
  return labels;
}

Placements dist::placementsOf(const TensorState &tensor, const AxisGroups &groups, size_t most) {
  std::vector<AxisList> open = openGroups(tensor, groups);
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
    for (auto [axes, digit] : llvm::zip_equal(open, digits)) {
      if (digit == 0)
        continue;
      if (sizeOf(axes) == 1)
        return;
      int64_t dim = dims[digit - 1];
      for (const AxisRef &axis : axes)
        if (axis.size > 1)
          sharding.dims[dim].push_back(axis);
      if (sizeOf(sharding.dims[dim]) > shape[dim])
        return;
    }
    result.shardings.push_back(canonical(std::move(sharding)));
    result.labels.push_back(labelsOf(result.shardings.back(), tensor.mesh->numAxes()));
  });
  return result;
}
