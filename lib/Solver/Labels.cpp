//===- Labels.cpp - Elimination with cost and memory ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Labels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::solver {
namespace {

/// `priced` is cost + price x memory, the content of the model's tables.
struct Label {
  double priced, memory;
};

/// Lists of labels, one per entry of a step's result, row-major.
struct LabelTable {
  std::vector<int64_t> strides;
  std::vector<std::vector<Label>> entries;
};

class Labels {
public:
  Labels(const Model &model, const Plan &plan, const Marginals &marginals,
         const std::vector<std::vector<double>> &memory, const LabelBounds &bounds)
      : model(model), plan(plan), marginals(marginals), memory(memory), bounds(bounds),
        limit(bounds.cost + bounds.price * bounds.budget) {}

  std::optional<Constrained> run(const Deadline &deadline);

private:
  /// The labels of a part at given values; one label for a table of the model.
  const std::vector<Label> &labelsOf(const Step &step, size_t part, const std::vector<Index> &at,
                                     std::vector<Label> &single) const;
  void combine(const Step &step, const std::vector<Index> &at, double outside,
               std::vector<Label> &result);
  void thin(std::vector<Label> &labels);
  bool compute(size_t number, const Deadline &deadline);
  bool find(const Step &step, std::vector<Index> &at, const Label &wanted,
            std::vector<Label> &chosen) const;
  std::vector<int64_t> traceBack() const;

  const Model &model;
  const Plan &plan;
  const Marginals &marginals;
  const std::vector<std::vector<double>> &memory;
  const LabelBounds &bounds;
  double limit;
  std::vector<LabelTable> results; ///< by step
  bool isExact = true;
  std::vector<Label> sum, next, single;
};

const std::vector<Label> &Labels::labelsOf(const Step &step, size_t part,
                                           const std::vector<Index> &at,
                                           std::vector<Label> &alone) const {
  const Part &factor = plan.buckets[step.bucket].parts[part];
  int64_t offset = 0;
  if (step.from[part] >= 0) {
    const LabelTable &table = results[step.from[part]];
    for (size_t d = 0; d < factor.vars.size(); ++d)
      offset += table.strides[d] * at[factor.vars[d]];
    return table.entries[offset];
  }
  const Table &table = marginals.tables[factor.table];
  for (size_t d = 0; d < factor.vars.size(); ++d)
    offset += table.strides[d] * at[factor.vars[d]];
  alone.assign(1, {table.data[offset], 0});
  if (factor.vars.size() == 1)
    alone[0].memory = memory[step.nodes[factor.vars[0]]][at[factor.vars[0]]];
  return alone;
}

/// Removes labels dominated in cost and memory; the others are in ascending order of memory.
static void keepBest(std::vector<Label> &labels, double price) {
  std::sort(labels.begin(), labels.end(), [&](const Label &a, const Label &b) {
    return a.memory != b.memory ? a.memory < b.memory : a.priced < b.priced;
  });
  double least = std::numeric_limits<double>::infinity();
  size_t count = 0;
  for (const Label &label : labels)
    if (double cost = label.priced - price * label.memory; cost < least) {
      least = cost;
      labels[count++] = label;
    }
  labels.resize(count);
}

/// Keeps labels at even distances of memory, always including the cheapest and the smallest.
void Labels::thin(std::vector<Label> &labels) {
  if (labels.size() <= bounds.mostLabels)
    return;
  isExact = false;
  size_t last = labels.size() - 1, most = bounds.mostLabels;
  for (size_t n = 0; n < most; ++n)
    labels[n] = labels[n * last / (most - 1)];
  labels.resize(most);
}

/// Adds to `result` the labels of one assignment of all variables of a bucket.
void Labels::combine(const Step &step, const std::vector<Index> &at, double outside,
                     std::vector<Label> &result) {
  sum.assign(1, {0, 0});
  for (size_t p = 0; p < step.from.size(); ++p) {
    const std::vector<Label> &labels = labelsOf(step, p, at, single);
    next.clear();
    for (const Label &a : sum)
      for (const Label &b : labels)
        if (a.memory + b.memory <= bounds.budget)
          next.push_back({a.priced + b.priced, a.memory + b.memory});
    if (sum.size() > 1 && labels.size() > 1) {
      keepBest(next, bounds.price);
      thin(next);
    }
    std::swap(sum, next);
  }
  for (const Label &label : sum)
    if (label.priced + outside < limit)
      result.push_back(label);
}

bool Labels::compute(size_t number, const Deadline &deadline) {
  const Step &step = plan.steps[number];
  const Bucket &bucket = plan.buckets[step.bucket];
  const Table &outside = marginals.outside[number];
  LabelTable &result = results[number];
  auto rank = std::ssize(bucket.sizes) - bucket.eliminated;
  result.strides.assign(rank, 1);
  int64_t entries = 1;
  for (auto d = rank - 1; d >= 0; --d) {
    result.strides[d] = entries;
    entries *= bucket.sizes[bucket.eliminated + d];
  }
  result.entries.resize(entries);
  std::vector<Index> at(bucket.sizes.size(), 0);
  for (int64_t entry = 0; entry < entries; ++entry) {
    if (entry % 64 == 0 && deadline.isOver())
      return false;
    int64_t offset = 0;
    for (int64_t d = 0; d < rank; ++d) {
      at[bucket.eliminated + d] =
          static_cast<Index>(entry / result.strides[d] % bucket.sizes[bucket.eliminated + d]);
      offset += outside.strides[d] * at[bucket.eliminated + d];
    }
    std::fill(at.begin(), at.begin() + bucket.eliminated, 0);
    std::vector<Label> &labels = result.entries[entry];
    while (true) {
      combine(step, at, outside.data[offset], labels);
      auto v = static_cast<int>(bucket.eliminated) - 1;
      for (; v >= 0 && ++at[v] == bucket.sizes[v]; --v)
        at[v] = 0;
      if (v < 0)
        break;
    }
    keepBest(labels, bounds.price);
    thin(labels);
  }
  return true;
}

/// Finds the first values and labels of parts that form a label of a step's result.
bool Labels::find(const Step &step, std::vector<Index> &at, const Label &wanted,
                  std::vector<Label> &chosen) const {
  const Bucket &bucket = plan.buckets[step.bucket];
  chosen.resize(step.from.size());
  std::vector<Label> alone;
  // The same additions in the same order give the same bits.
  auto search = [&](auto &self, size_t part, Label so) -> bool {
    if (part == step.from.size())
      return so.priced == wanted.priced && so.memory == wanted.memory;
    const std::vector<Label> labels = labelsOf(step, part, at, alone);
    for (const Label &label : labels) {
      chosen[part] = label;
      Label more{so.priced + label.priced, so.memory + label.memory};
      if (more.memory <= wanted.memory && self(self, part + 1, more))
        return true;
    }
    return false;
  };
  std::fill(at.begin(), at.begin() + bucket.eliminated, 0);
  while (true) {
    if (search(search, 0, {0, 0}))
      return true;
    auto v = static_cast<int>(bucket.eliminated) - 1;
    for (; v >= 0 && ++at[v] == bucket.sizes[v]; --v)
      at[v] = 0;
    if (v < 0)
      return false;
  }
}

std::vector<int64_t> Labels::traceBack() const {
  // Components are independent except for the budget: combine their labels.
  struct Root {
    size_t step;
    const std::vector<Label> *labels;
  };
  std::vector<Root> roots;
  for (size_t n = 0; n < plan.steps.size(); ++n)
    if (results[n].strides.empty())
      roots.push_back({n, &results[n].entries[0]});
  struct Path {
    Label label;
    std::vector<Label> chosen;
  };
  std::vector<Path> paths{{{0, 0}, {}}};
  for (const Root &root : roots) {
    std::vector<Path> longer;
    for (const Path &path : paths)
      for (const Label &label : *root.labels)
        if (path.label.memory + label.memory <= bounds.budget) {
          longer.push_back(
              {{path.label.priced + label.priced, path.label.memory + label.memory}, path.chosen});
          longer.back().chosen.push_back(label);
        }
    std::sort(longer.begin(), longer.end(), [](const Path &a, const Path &b) {
      return a.label.memory != b.label.memory ? a.label.memory < b.label.memory
                                              : a.label.priced < b.label.priced;
    });
    paths.clear();
    double least = std::numeric_limits<double>::infinity();
    for (Path &path : longer)
      if (double cost = path.label.priced - bounds.price * path.label.memory; cost < least) {
        least = cost;
        paths.push_back(std::move(path));
      }
  }
  if (paths.empty())
    return {};
  const Path &best = paths.back(); // the most memory, thus the least cost
  std::vector<Label> wanted(plan.steps.size());
  for (size_t r = 0; r < roots.size(); ++r)
    wanted[roots[r].step] = best.chosen[r];
  std::vector<Index> position(model.numNodes(), 0), at;
  std::vector<Label> chosen;
  for (size_t n = plan.steps.size(); n-- > 0;) {
    const Step &step = plan.steps[n];
    at.assign(step.nodes.size(), 0);
    for (size_t v = 0; v < at.size(); ++v)
      at[v] = position[step.nodes[v]];
    if (!find(step, at, wanted[n], chosen))
      return {};
    for (Index v = 0; v < plan.buckets[step.bucket].eliminated; ++v)
      position[step.nodes[v]] = at[v];
    for (size_t p = 0; p < chosen.size(); ++p)
      if (step.from[p] >= 0)
        wanted[step.from[p]] = chosen[p];
  }
  std::vector<int64_t> choice;
  for (Index i = 0; i < model.numNodes(); ++i)
    choice.push_back(model.domains.at(i)[position[i]]);
  return choice;
}

std::optional<Constrained> Labels::run(const Deadline &deadline) {
  results.resize(plan.steps.size());
  for (size_t n = 0; n < plan.steps.size(); ++n)
    if (!compute(n, deadline))
      return std::nullopt;
  Constrained result;
  result.choice = traceBack();
  result.isExact = isExact;
  return result;
}

} // namespace

std::optional<Constrained> minimiseLabels(const Model &model, const Plan &plan,
                                          const Marginals &marginals,
                                          const std::vector<std::vector<double>> &memory,
                                          const LabelBounds &bounds, const Deadline &deadline) {
  return Labels(model, plan, marginals, memory, bounds).run(deadline);
}

} // namespace tessera::solver
