//===- Marginals.cpp - The least cost of each strategy --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Marginals.h"

#include <algorithm>
#include <numeric>

namespace tessera::solver {

/// The sum of the bucket's parts except `left` and of the tables outside of the bucket, minimized
/// over all variables that `left` lacks; its dimensions are those of `left`.
static Table outsideOfPart(const Bucket &bucket, size_t left, const std::vector<Table *> &parts,
                           Table &outside) {
  const std::vector<Index> &kept = bucket.parts[left].vars;
  Bucket other;
  std::vector<Index> numberOf(bucket.sizes.size(), -1);
  other.eliminated = 0;
  for (Index v = 0; v < std::ssize(bucket.sizes); ++v)
    if (std::find(kept.begin(), kept.end(), v) == kept.end()) {
      numberOf[v] = other.eliminated++;
      other.sizes.push_back(bucket.sizes[v]);
    }
  if (other.eliminated == 0) {
    // A variable with one value: every bucket must eliminate something.
    other.eliminated = 1;
    other.sizes.push_back(1);
  }
  for (size_t d = 0; d < kept.size(); ++d) {
    numberOf[kept[d]] = other.eliminated + static_cast<Index>(d);
    other.sizes.push_back(bucket.sizes[kept[d]]);
  }
  std::vector<Table *> tables;
  auto add = [&](Part part, Table *table) {
    for (Index &v : part.vars)
      v = numberOf[v];
    other.parts.push_back(std::move(part));
    tables.push_back(table);
  };
  for (size_t p = 0; p < parts.size(); ++p)
    if (p != left)
      add(bucket.parts[p], parts[p]);
  Part rest{-1, {}};
  for (Index v = bucket.eliminated; v < std::ssize(bucket.sizes); ++v)
    rest.vars.push_back(v);
  add(rest, &outside);
  return minPlus(other, tables);
}

std::optional<Marginals> findMarginals(const Model &model, const Plan &plan,
                                       const Deadline &deadline) {
  Marginals result;
  result.tables.resize(plan.tables.size());
  auto partsOf = [&](const Bucket &bucket) {
    std::vector<Table *> parts;
    for (const Part &part : bucket.parts)
      parts.push_back(&result.tables[part.table]);
    return parts;
  };
  for (size_t n = 0; n < plan.tables.size(); ++n) {
    if (deadline.isOver())
      return std::nullopt;
    const TableDef &def = plan.tables[n];
    Table &table = result.tables[n];
    if (def.kind == TableDef::bucket) {
      table = minPlus(plan.buckets[def.index], partsOf(plan.buckets[def.index]));
      continue;
    }
    table.sizes = def.sizes;
    bool isUnary = def.kind == TableDef::unary;
    table.strides = isUnary ? std::vector<int64_t>{1} : std::vector<int64_t>{def.sizes[1], 1};
    table.data = isUnary ? model.vectors[def.index].data() : model.matrices[def.index].cost.data();
  }
  for (Index constant : plan.constants)
    result.optimum += result.tables[constant].data[0];

  result.ofStrategy.resize(model.numNodes());
  result.outside.resize(plan.steps.size());
  for (size_t n = plan.steps.size(); n-- > 0;) {
    if (deadline.isOver())
      return std::nullopt;
    const Step &step = plan.steps[n];
    const Bucket &bucket = plan.buckets[step.bucket];
    Table &outside = result.outside[n];
    if (bucket.eliminated == std::ssize(bucket.sizes)) {
      // A root: only other components are outside of it.
      double own = 0;
      for (const TableDef &def : plan.tables)
        if (def.kind == TableDef::bucket && def.index == step.bucket)
          own = result.tables[&def - plan.tables.data()].data[0];
      outside.allocate({});
      outside.own[0] = result.optimum - own;
    }
    std::vector<Table *> parts = partsOf(bucket);
    for (size_t p = 0; p < parts.size(); ++p) {
      if (step.from[p] >= 0) {
        result.outside[step.from[p]] = outsideOfPart(bucket, p, parts, outside);
      } else if (bucket.parts[p].vars.size() == 1) {
        Table rest = outsideOfPart(bucket, p, parts, outside);
        const Table &unary = *parts[p];
        std::vector<double> &costs = result.ofStrategy[step.nodes[bucket.parts[p].vars[0]]];
        for (Index s = 0; s < rest.sizes[0]; ++s)
          costs.push_back(unary.data[s] + rest.data[s * rest.strides[0]]);
      }
    }
  }
  return result;
}

} // namespace tessera::solver
