//===- Eliminate.cpp - Running an elimination plan -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Eliminate.h"
#include "Dominance.h"
#include "Kernels.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace tessera::sharding::search {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// How many of the cheapest entries an entry is compared with.
constexpr size_t numRivals = 64;

class Elimination {
public:
  Elimination(const Model &model, const Plan &plan) : model(model), plan(plan) {}
  std::optional<Optimum> run(const Deadline &deadline);

private:
  void compute(Index number);
  Table prune(const PruningDef &pruning);
  const std::vector<double> &outsideDifferences(const std::vector<PruningDef::Outside> &outside,
                                                Index size);
  Optimum traceBack() const;

  const Model &model;
  const Plan &plan;
  std::vector<Table> tables; ///< by number in the plan
  Interner outsideNumbers;
  std::deque<std::vector<double>> outsideKnown; ///< references to them are kept
};

/// The most that a change from one strategy to another can cost in tables that are not counted yet.
const std::vector<double> &
Elimination::outsideDifferences(const std::vector<PruningDef::Outside> &outside, Index size) {
  Key key{size};
  for (const PruningDef::Outside &item : outside)
    key.insert(key.end(), {item.isUnary, item.index, item.isRow});
  auto [number, isNew] = outsideNumbers.intern(key);
  if (!isNew)
    return outsideKnown[number];
  std::vector<double> sum(static_cast<size_t>(size) * size, 0.0);
  for (const PruningDef::Outside &item : outside) {
    if (item.isUnary) {
      const std::vector<double> &cost = model.vectors[item.index];
      for (Index a = 0; a < size; ++a)
        for (Index b = 0; b < size; ++b)
          sum[static_cast<size_t>(a) * size + b] += cost[b] - cost[a];
      continue;
    }
    std::vector<double> worst = worstDifferences(model.matrices[item.index], item.isRow);
    for (size_t x = 0; x < sum.size(); ++x)
      sum[x] += worst[x];
  }
  return outsideKnown.emplace_back(std::move(sum));
}

/// Drops entries of a table T that no optimum uses. Entry x is dropped when some entry y has
///   T[y] + (what changing x to y can cost outside of T, at most) < T[x].
/// A plan with x could change x to y, and what lies behind it, and become cheaper. The inequality is
/// strict, by more than rounding: an optimal plan is never hit, by any number of prunings.
Table Elimination::prune(const PruningDef &pruning) {
  const Table &from = tables[pruning.table];
  auto rank = from.sizes.size();
  Table result;
  result.sizes = from.sizes;
  result.strides = from.strides;
  int64_t count = from.entries();
  result.own = std::make_unique_for_overwrite<double[]>(count);
  std::copy(from.data, from.data + count, result.own.get());
  result.data = result.own.get();
  result.hasInfinite = from.hasInfinite;
  std::vector<const std::vector<double> *> differences;
  for (size_t d = 0; d < rank; ++d)
    differences.push_back(&outsideDifferences(pruning.outside[d], from.sizes[d]));
  std::vector<int64_t> byCost;
  for (int64_t x = 0; x < count; ++x)
    if (from.data[x] != infinity)
      byCost.push_back(x);
  std::sort(byCost.begin(), byCost.end(), [&](int64_t x, int64_t y) {
    return from.data[x] != from.data[y] ? from.data[x] < from.data[y] : x < y;
  });
  struct Rival {
    double cost;
    std::vector<Index> at;
  };
  std::vector<Rival> rivals;
  std::vector<Index> at(rank);
  for (int64_t x : byCost) {
    double cost = from.data[x], margin = 1e-12 * std::abs(cost);
    for (size_t d = 0; d < rank; ++d)
      at[d] = static_cast<Index>(x / from.strides[d] % from.sizes[d]);
    bool dropped = false;
    for (const Rival &rival : rivals) {
      double sum = rival.cost + margin;
      for (size_t d = 0; d < rank; ++d)
        sum += (*differences[d])[static_cast<size_t>(at[d]) * from.sizes[d] + rival.at[d]];
      if ((dropped = sum < cost))
        break;
    }
    if (dropped) {
      result.own[x] = infinity;
      result.hasInfinite = true;
    } else if (rivals.size() < numRivals) {
      rivals.push_back({cost, at});
    }
  }
  return result;
}

void Elimination::compute(Index number) {
  const TableDef &def = plan.tables[number];
  Table &table = tables[number];
  switch (def.kind) {
  case TableDef::unary:
    table.sizes = def.sizes;
    table.strides = {1};
    table.data = model.vectors[def.index].data();
    break;
  case TableDef::pair:
    table.sizes = def.sizes;
    table.strides = {def.sizes[1], 1};
    table.data = model.matrices[def.index].cost.data();
    break;
  case TableDef::bucket: {
    std::vector<Table *> parts;
    for (const Part &part : plan.buckets[def.index].parts)
      parts.push_back(&tables[part.table]);
    table = minPlus(plan.buckets[def.index], parts);
    break;
  }
  case TableDef::pruned:
    table = prune(plan.prunings[def.index]);
    break;
  }
}

/// The eliminated strategies, last eliminated first: by then all others of the bucket are known.
Optimum Elimination::traceBack() const {
  Optimum result{0, std::vector<int64_t>(model.numNodes(), 0)};
  for (Index constant : plan.constants)
    result.cost += tables[constant].data[0];
  std::vector<Index> at(model.numNodes(), 0);
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    const Bucket &bucket = plan.buckets[step->bucket];
    std::vector<Index> trial(bucket.eliminated, 0), best = trial;
    double least = infinity;
    while (true) {
      double sum = 0;
      for (const Part &part : bucket.parts) {
        const Table &table = tables[part.table];
        int64_t offset = 0;
        for (size_t d = 0; d < part.vars.size(); ++d) {
          Index v = part.vars[d];
          offset += table.strides[d] * (v < bucket.eliminated ? trial[v] : at[step->nodes[v]]);
        }
        sum += table.data[offset];
      }
      if (sum < least) {
        least = sum;
        best = trial;
      }
      auto v = static_cast<int>(bucket.eliminated) - 1;
      for (; v >= 0 && ++trial[v] == bucket.sizes[v]; --v)
        trial[v] = 0;
      if (v < 0)
        break;
    }
    for (Index v = 0; v < bucket.eliminated; ++v)
      at[step->nodes[v]] = best[v];
  }
  for (Index i = 0; i < model.numNodes(); ++i)
    result.choice[i] = model.domains.at(i)[at[i]];
  return result;
}

std::optional<Optimum> Elimination::run(const Deadline &deadline) {
  tables.resize(plan.tables.size());
  for (Index number = 0; number < static_cast<Index>(tables.size()); ++number) {
    if (deadline.isOver())
      return std::nullopt;
    compute(number);
  }
  return traceBack();
}

} // namespace

std::optional<Optimum> eliminate(const Model &model, const Plan &plan, const Deadline &deadline) {
  return Elimination(model, plan).run(deadline);
}

} // namespace tessera::sharding::search
