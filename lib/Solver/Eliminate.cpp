//===- Eliminate.cpp - Running an elimination plan ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Eliminate.h"
#include "Dominance.h"
#include "InnerLoops.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <utility>

namespace tessera::solver {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Entries are compared with the cheapest few of the necessary ones. If a sample shows that pruning
/// would drop few, the table stays as it is.
constexpr size_t numRivals = 48;
constexpr int64_t numConsidered = 256, numSamples = 64;
/// The same for whole rows of a folded table.
constexpr size_t numRowRivals = 16;
/// Entries copied from tables at once for blocks of a lazy one.
constexpr double gatheredAtOnce = 2e8;

class Elimination {
public:
  Elimination(const Model &model, const Plan &plan) : model(model), plan(plan) {}
  std::optional<Optimum> run(const Deadline &until);

private:
  /// Blocks of a lazy table, by index over their fixed dimensions.
  struct Rows {
    std::vector<char> isDone;
    /// By block y, by block x: the most that y costs more than x; NaN if unknown.
    std::map<int64_t, std::vector<double>> worst;
  };
  struct Lazy {
    std::map<std::vector<Index>, Rows> byDims;
    bool isComplete = false;
  };
  /// Values of some dimensions of a table, one list per block.
  struct Blocks {
    std::vector<Index> dims;
    std::vector<std::vector<Index>> at;
  };

  void compute(Index number);
  Table computeBucket(const Bucket &bucket);
  void require(Index number, const Blocks &blocks);
  void computeBlocks(const Bucket &bucket, Table &table, const Blocks &missing);
  std::vector<Index> requireFor(const Bucket &bucket, const Part &part);
  bool thinOut(const Bucket &bucket, size_t lazyPart, const std::vector<Index> &dims,
               std::vector<Table *> &parts, Table &thinned);
  Table prune(const PruningDef &pruning);
  const std::vector<double> &outsideDifferences(const std::vector<PruningDef::Outside> &outside,
                                                Index size);
  std::vector<Index> bestOf(const Bucket &bucket, const std::vector<Index> &at) const;
  Optimum traceBack() const;

  const Model &model;
  const Plan &plan;
  const Deadline *deadline = nullptr;
  std::vector<Table> tables;  ///< by number in the plan
  std::map<Index, Lazy> lazy; ///< by number in the plan
  Interner outsideNumbers;
  std::deque<std::vector<double>> outsideKnown; ///< keeps references valid
};

/// The most that a change from one strategy to another can cost in tables not yet added.
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

/// Drops entries of a table T that no optimum uses. Entry x is dropped if some entry y has
///   T[y] + (the most that changing x to y can cost outside of T) < T[x].
/// A plan with x could change x to y, with everything eliminated before, and become cheaper. The
/// inequality is strict, by more than rounding: no sequence of prunings drops an optimal plan.
Table Elimination::prune(const PruningDef &pruning) {
  const Table &from = tables[pruning.table];
  auto rank = from.sizes.size();
  std::vector<const double *> differences;
  for (size_t d = 0; d < rank; ++d)
    differences.push_back(outsideDifferences(pruning.outside[d], from.sizes[d]).data());
  struct Rival {
    double cost;
    std::vector<Index> at;
  };
  std::vector<Rival> rivals;
  std::vector<Index> at(rank);
  auto isNeedless = [&](int64_t x) {
    double limit = from.data[x] - 1e-12 * std::abs(from.data[x]);
    for (size_t d = 0; d < rank; ++d)
      at[d] = static_cast<Index>(x / from.strides[d] % from.sizes[d]);
    for (const Rival &rival : rivals) {
      double sum = rival.cost;
      for (size_t d = 0; d < rank; ++d)
        sum += differences[d][static_cast<size_t>(at[d]) * from.sizes[d] + rival.at[d]];
      if (sum < limit)
        return true;
    }
    return false;
  };
  int64_t count = from.entries();
  std::vector<int64_t> cheapest;
  for (int64_t x = 0; x < count; ++x)
    if (from.data[x] != infinity)
      cheapest.push_back(x);
  auto living = static_cast<int64_t>(cheapest.size());
  int64_t considered = std::min(living, numConsidered);
  std::vector<int64_t> sample;
  for (int64_t s = 0; s < numSamples && living > 0; ++s)
    sample.push_back(cheapest[s * living / numSamples]);
  std::partial_sort(cheapest.begin(), cheapest.begin() + considered, cheapest.end(),
                    [&](int64_t x, int64_t y) {
                      return from.data[x] != from.data[y] ? from.data[x] < from.data[y] : x < y;
                    });
  for (int64_t c = 0; c < considered && rivals.size() < numRivals; ++c)
    if (!isNeedless(cheapest[c]))
      rivals.push_back({from.data[cheapest[c]], at});
  Table result;
  result.sizes = from.sizes;
  result.strides = from.strides;
  result.data = from.data;
  result.hasInfinite = from.hasInfinite;
  if (std::count_if(sample.begin(), sample.end(), isNeedless) < numSamples / 4)
    return result;
  result.own = std::make_unique_for_overwrite<double[]>(count);
  result.data = result.own.get();
  result.hasInfinite = true;
  for (int64_t x = 0; x < count; ++x)
    result.own[x] = from.data[x] != infinity && isNeedless(x) ? infinity : from.data[x];
  return result;
}

/// A copy of the table in which one dimension, the first, over the blocks replaces their
/// dimensions.
static Table gather(const Table &from, const std::vector<Index> &dims,
                    const std::vector<std::vector<Index>> &at) {
  std::vector<Index> rest, sizes{static_cast<Index>(at.size())};
  for (Index d = 0; d < static_cast<Index>(from.sizes.size()); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      rest.push_back(d);
      sizes.push_back(from.sizes[d]);
    }
  Table result;
  result.allocate(sizes);
  result.hasInfinite = from.hasInfinite;
  double *to = result.own.get();
  std::vector<Index> coordinate(rest.size(), 0);
  for (const std::vector<Index> &block : at) {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      offset += from.strides[dims[d]] * block[d];
    while (true) {
      *to++ = from.data[offset];
      auto d = static_cast<int>(rest.size()) - 1;
      for (; d >= 0; --d) {
        offset += from.strides[rest[d]];
        if (++coordinate[d] < from.sizes[rest[d]])
          break;
        offset -= from.strides[rest[d]] * from.sizes[rest[d]];
        coordinate[d] = 0;
      }
      if (d < 0)
        break;
    }
  }
  return result;
}

/// Copies a table whose first dimension is over the blocks into the blocks.
static void scatter(const Table &from, Table &to, const std::vector<Index> &dims,
                    const std::vector<std::vector<Index>> &at) {
  std::vector<Index> rest;
  for (Index d = 0; d < static_cast<Index>(to.sizes.size()); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      rest.push_back(d);
  std::vector<Index> coordinate(rest.size(), 0);
  for (size_t b = 0; b < at.size(); ++b) {
    int64_t target = 0, origin = from.strides[0] * static_cast<int64_t>(b);
    for (size_t d = 0; d < dims.size(); ++d)
      target += to.strides[dims[d]] * at[b][d];
    while (true) {
      to.own[target] = from.data[origin];
      auto d = static_cast<int>(rest.size()) - 1;
      for (; d >= 0; --d) {
        target += to.strides[rest[d]];
        origin += from.strides[d + 1];
        if (++coordinate[d] < to.sizes[rest[d]])
          break;
        target -= to.strides[rest[d]] * to.sizes[rest[d]];
        origin -= from.strides[d + 1] * to.sizes[rest[d]];
        coordinate[d] = 0;
      }
      if (d < 0)
        break;
    }
  }
}

/// Puts dimensions first in memory, so that a block is contiguous. Requires that all entries are
/// equal.
static void layOut(Table &table, const std::vector<Index> &first) {
  std::vector<Index> order = first;
  for (Index d = 0; d < std::ssize(table.sizes); ++d)
    if (std::find(first.begin(), first.end(), d) == first.end())
      order.push_back(d);
  int64_t stride = 1;
  for (size_t d = order.size(); d-- > 0; stride *= table.sizes[order[d]])
    table.strides[order[d]] = stride;
}

/// Computes the missing blocks of a lazy table. Without dimensions: all of it.
void Elimination::require(Index number, const Blocks &blocks) {
  Lazy &state = lazy.at(number);
  if (state.isComplete)
    return;
  const Bucket &bucket = plan.buckets[plan.tables[number].index];
  Table &table = tables[number];
  if (blocks.dims.empty()) {
    table = computeBucket(bucket);
    state.isComplete = true;
    return;
  }
  if (state.byDims.empty())
    layOut(table, blocks.dims);
  std::vector<char> &done = state.byDims[blocks.dims].isDone;
  int64_t count = 1;
  for (Index dim : blocks.dims)
    count *= table.sizes[dim];
  done.resize(count, 0);
  Blocks missing{blocks.dims, {}};
  for (const std::vector<Index> &block : blocks.at) {
    int64_t at = 0;
    for (size_t d = 0; d < blocks.dims.size(); ++d)
      at = at * table.sizes[blocks.dims[d]] + block[d];
    if (!std::exchange(done[at], 1))
      missing.at.push_back(block);
  }
  // Blocks are gathered in batches that fit into memory, with the other dimensions of the parts.
  double beside = 1;
  for (const Part &part : bucket.parts) {
    double entries = 1;
    for (Index v : part.vars)
      if (v < bucket.eliminated || std::find(blocks.dims.begin(), blocks.dims.end(),
                                             v - bucket.eliminated) == blocks.dims.end())
        entries *= bucket.sizes[v];
    beside += entries;
  }
  auto batch = std::max<int64_t>(1, static_cast<int64_t>(gatheredAtOnce / beside));
  for (int64_t from = 0; from < std::ssize(missing.at); from += batch) {
    int64_t to = std::min<int64_t>(from + batch, std::ssize(missing.at));
    computeBlocks(bucket, table,
                  {blocks.dims, {missing.at.begin() + from, missing.at.begin() + to}});
    if (deadline->isOver())
      break;
  }
  table.turned.clear();
}

/// Computes several blocks of a bucket's table at once.
void Elimination::computeBlocks(const Bucket &bucket, Table &table, const Blocks &missing) {
  // The same bucket with one variable, the block, in place of the fixed variables.
  std::vector<Index> renamed(bucket.sizes.size(), -1);
  Bucket part;
  part.eliminated = bucket.eliminated;
  for (Index dim : missing.dims)
    renamed[bucket.eliminated + dim] = bucket.eliminated;
  for (Index v = 0; v < static_cast<Index>(bucket.sizes.size()); ++v) {
    if (v == bucket.eliminated)
      part.sizes.push_back(static_cast<Index>(missing.at.size()));
    if (renamed[v] < 0) {
      renamed[v] = static_cast<Index>(part.sizes.size());
      part.sizes.push_back(bucket.sizes[v]);
    }
  }
  std::deque<Table> gathered;
  std::vector<Table *> parts;
  for (const Part &original : bucket.parts) {
    Blocks below;
    std::vector<size_t> which;
    Part now{original.table, {}};
    for (size_t d = 0; d < original.vars.size(); ++d) {
      auto fixed =
          std::find(missing.dims.begin(), missing.dims.end(), original.vars[d] - bucket.eliminated);
      if (original.vars[d] >= bucket.eliminated && fixed != missing.dims.end()) {
        below.dims.push_back(static_cast<Index>(d));
        which.push_back(fixed - missing.dims.begin());
      } else {
        now.vars.push_back(renamed[original.vars[d]]);
      }
    }
    for (const std::vector<Index> &block : missing.at) {
      std::vector<Index> &at = below.at.emplace_back();
      for (size_t d : which)
        at.push_back(block[d]);
    }
    if (lazy.count(original.table))
      require(original.table, below);
    if (below.dims.empty()) {
      parts.push_back(&tables[original.table]);
    } else {
      now.vars.insert(now.vars.begin(), bucket.eliminated);
      gathered.push_back(gather(tables[original.table], below.dims, below.at));
      parts.push_back(&gathered.back());
    }
    part.parts.push_back(std::move(now));
  }
  scatter(minPlus(part, parts, deadline), table, missing.dims, missing.at);
}

/// Computes the entries of a lazy part that a bucket reads: none where another part is infinite.
/// Returns the dimensions that are fixed in the blocks; empty if the whole table is computed.
std::vector<Index> Elimination::requireFor(const Bucket &bucket, const Part &part) {
  Blocks best;
  double share = 1;
  for (const Part &other : bucket.parts) {
    const Table &thin = tables[other.table];
    if (!thin.hasInfinite || lazy.count(other.table))
      continue;
    Blocks blocks;
    std::vector<Index> thinDims;
    double count = 1;
    for (size_t d = 0; d < part.vars.size(); ++d) {
      auto found = std::find(other.vars.begin(), other.vars.end(), part.vars[d]);
      if (found == other.vars.end())
        continue;
      blocks.dims.push_back(static_cast<Index>(d));
      thinDims.push_back(static_cast<Index>(found - other.vars.begin()));
      count *= bucket.sizes[part.vars[d]];
    }
    if (thinDims.empty())
      continue;
    std::vector<char> isLiving(static_cast<size_t>(count), 0);
    int64_t entries = thin.entries();
    for (int64_t x = 0; x < entries; ++x) {
      if (thin.data[x] == infinity)
        continue;
      int64_t at = 0;
      for (Index d : thinDims)
        at = at * thin.sizes[d] + x / thin.strides[d] % thin.sizes[d];
      isLiving[at] = 1;
    }
    auto living = static_cast<double>(std::count(isLiving.begin(), isLiving.end(), 1));
    if (living / count >= share)
      continue;
    share = living / count;
    for (size_t x = 0; x < isLiving.size(); ++x) {
      if (!isLiving[x])
        continue;
      std::vector<Index> &at = blocks.at.emplace_back(thinDims.size());
      auto left = static_cast<int64_t>(x);
      for (size_t d = thinDims.size(); d-- > 0; left /= thin.sizes[thinDims[d]])
        at[d] = static_cast<Index>(left % thin.sizes[thinDims[d]]);
    }
    best = std::move(blocks);
  }
  if (share >= 0.5)
    best = {};
  require(part.table, best);
  return lazy.at(part.table).isComplete ? std::vector<Index>() : best.dims;
}

/// A bucket min over x of f[x] + T[x][o], T lazy: drops x when some y has
///   f[y] + max over o of (T[y][o] - T[x][o]) <= f[x].
/// The maximum is the same for every use of T, so it is cached. Replaces one part by `thinned`.
bool Elimination::thinOut(const Bucket &bucket, size_t lazyPart, const std::vector<Index> &dims,
                          std::vector<Table *> &parts, Table &thinned) {
  const Table &table = *parts[lazyPart];
  std::vector<Index> fixed;
  for (Index dim : dims)
    fixed.push_back(bucket.parts[lazyPart].vars[dim]);
  size_t thin = parts.size();
  for (size_t p = 0; p < parts.size(); ++p) {
    if (p == lazyPart)
      continue;
    size_t inside = 0;
    for (Index v : bucket.parts[p].vars)
      inside += std::find(fixed.begin(), fixed.end(), v) != fixed.end();
    if (inside != bucket.parts[p].vars.size())
      return false;
    if (inside == fixed.size() && parts[p]->hasInfinite)
      thin = p;
  }
  // Blocks must be contiguous, and no dimension within a block may be kept.
  int64_t rowLength = table.entries();
  for (Index dim : dims)
    rowLength /= table.sizes[dim];
  for (size_t d = 0; d < dims.size(); ++d)
    if (fixed[d] >= bucket.eliminated || table.strides[dims[d]] < rowLength)
      return false;
  if (thin == parts.size())
    return false;
  struct Row {
    int64_t number, offset,
        thinnedIndex; ///< block, its offset in the lazy table, entry in `thinned`
    double cost;
  };
  std::vector<Row> rows;
  Rows &known = lazy.at(bucket.parts[lazyPart].table).byDims.at(dims);
  std::vector<Index> at(bucket.sizes.size(), 0);
  for (int64_t number = 0; number < std::ssize(known.isDone); ++number) {
    Row row{number, 0, 0, 0};
    int64_t left = number;
    for (size_t d = dims.size(); d-- > 0; left /= table.sizes[dims[d]]) {
      at[fixed[d]] = static_cast<Index>(left % table.sizes[dims[d]]);
      row.offset += at[fixed[d]] * table.strides[dims[d]];
    }
    for (size_t p = 0; p < parts.size(); ++p) {
      if (p == lazyPart)
        continue;
      int64_t offset = 0;
      for (size_t d = 0; d < bucket.parts[p].vars.size(); ++d)
        offset += parts[p]->strides[d] * at[bucket.parts[p].vars[d]];
      row.cost += parts[p]->data[offset];
      if (p == thin)
        row.thinnedIndex = offset;
    }
    if (row.cost != infinity)
      rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    return a.cost != b.cost ? a.cost < b.cost : a.number < b.number;
  });
  size_t before = rows.size();
  for (size_t rival = 0; rival < std::min(numRowRivals, rows.size()); ++rival) {
    const Row best = rows[rival];
    std::vector<double> &worst = known.worst[best.number];
    worst.resize(known.isDone.size(), std::numeric_limits<double>::quiet_NaN());
    size_t count = rival + 1;
    for (size_t r = rival + 1; r < rows.size(); ++r) {
      double &difference = worst[rows[r].number];
      if (std::isnan(difference))
        difference =
            largestDifference(table.data + best.offset, table.data + rows[r].offset, rowLength);
      if (best.cost + difference > rows[r].cost)
        rows[count++] = rows[r];
    }
    rows.resize(count);
  }
  if (rows.size() == before)
    return false;
  const Table &from = *parts[thin];
  thinned.sizes = from.sizes;
  thinned.strides = from.strides;
  thinned.hasInfinite = true;
  thinned.own = std::make_unique_for_overwrite<double[]>(from.entries());
  std::fill(thinned.own.get(), thinned.own.get() + from.entries(), infinity);
  thinned.data = thinned.own.get();
  for (const Row &row : rows)
    thinned.own[row.thinnedIndex] = from.data[row.thinnedIndex];
  parts[thin] = &thinned;
  return true;
}

Table Elimination::computeBucket(const Bucket &bucket) {
  std::vector<Table *> parts;
  std::vector<Index> dims;
  size_t lazyPart = bucket.parts.size();
  for (size_t p = 0; p < bucket.parts.size(); ++p) {
    const Part &part = bucket.parts[p];
    if (lazy.count(part.table)) {
      lazyPart = p;
      dims = requireFor(bucket, part);
    }
    parts.push_back(&tables[part.table]);
  }
  Table thinned;
  if (!dims.empty())
    thinOut(bucket, lazyPart, dims, parts, thinned);
  return minPlus(bucket, parts, deadline);
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
  case TableDef::bucket:
    if (plan.buckets[def.index].isLazy) {
      lazy[number];
      table.allocate(def.sizes);
      std::fill(table.own.get(), table.own.get() + table.entries(), infinity);
      table.hasInfinite = true;
    } else {
      table = computeBucket(plan.buckets[def.index]);
    }
    break;
  case TableDef::pruned:
    if (lazy.count(plan.prunings[def.index].table))
      require(plan.prunings[def.index].table, {});
    table = prune(plan.prunings[def.index]);
    break;
  }
}

/// The first optimal values of a bucket's eliminated variables, with the others fixed as in `at`.
std::vector<Index> Elimination::bestOf(const Bucket &bucket, const std::vector<Index> &at) const {
  struct Read {
    const double *data;
    std::vector<std::pair<Index, int64_t>> strides; ///< eliminated variable, stride
  };
  std::vector<Read> reads;
  for (const Part &part : bucket.parts) {
    const Table &table = tables[part.table];
    Read &read = reads.emplace_back(Read{table.data, {}});
    for (size_t d = 0; d < part.vars.size(); ++d) {
      if (part.vars[d] < bucket.eliminated)
        read.strides.push_back({part.vars[d], table.strides[d]});
      else
        read.data += table.strides[d] * at[part.vars[d]];
    }
  }
  std::vector<Index> trial(bucket.eliminated, 0), best = trial;
  double least = infinity;
  while (true) {
    double sum = 0;
    for (const Read &read : reads) {
      int64_t offset = 0;
      for (auto [v, stride] : read.strides)
        offset += trial[v] * stride;
      sum += read.data[offset];
    }
    if (sum < least) {
      least = sum;
      best = trial;
    }
    auto v = static_cast<int>(bucket.eliminated) - 1;
    for (; v >= 0 && ++trial[v] == bucket.sizes[v]; --v)
      trial[v] = 0;
    if (v < 0)
      return best;
  }
}

/// Chooses strategies in reverse order of elimination: then all other variables of the bucket are
/// known.
Optimum Elimination::traceBack() const {
  Optimum result{model.constant, std::vector<int64_t>(model.numNodes(), 0)};
  for (Index constant : plan.constants)
    result.cost += tables[constant].data[0];
  std::vector<Index> at(model.numNodes(), 0), local;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    const Bucket &bucket = plan.buckets[step->bucket];
    local.assign(bucket.sizes.size(), 0);
    for (size_t v = bucket.eliminated; v < local.size(); ++v)
      local[v] = at[step->nodes[v]];
    std::vector<Index> best = bestOf(bucket, local);
    for (Index v = 0; v < bucket.eliminated; ++v)
      at[step->nodes[v]] = best[v];
  }
  for (Index i = 0; i < model.numNodes(); ++i)
    result.choice[i] = model.domains.at(i)[at[i]];
  return result;
}

std::optional<Optimum> Elimination::run(const Deadline &until) {
  deadline = &until;
  tables.resize(plan.tables.size());
  for (Index number = 0; number < static_cast<Index>(tables.size()); ++number) {
    compute(number);
    if (until.isOver())
      return std::nullopt;
  }
  return traceBack();
}

} // namespace

std::optional<Optimum> eliminate(const Model &model, const Plan &plan, const Deadline &deadline) {
  return Elimination(model, plan).run(deadline);
}

} // namespace tessera::solver
