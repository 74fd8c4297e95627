//===- MinPlus.cpp - Computation of one bucket ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops run over all variables but two, k (eliminated) and i (kept, contiguous). A
// part is added as soon as all its loop variables are fixed, into a k x i matrix that
// stays in the L1 cache; the innermost loop adds one part and takes the minimum. An
// entry of the bucket thus costs one addition and one minimum, independent of the
// number of parts.
//
//===----------------------------------------------------------------------===//

#include "MinPlus.h"
#include "InnerLoops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::solver {

constexpr double infinity = std::numeric_limits<double>::infinity();

int64_t Table::entries() const {
  int64_t count = 1;
  for (Index size : sizes)
    count *= size;
  return count;
}

void Table::allocate(std::vector<Index> dims) {
  sizes = std::move(dims);
  strides.assign(sizes.size(), 1);
  for (auto d = static_cast<int>(sizes.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * sizes[d + 1];
  own = std::make_unique_for_overwrite<double[]>(entries());
  data = own.get();
}

namespace {

/// The order of the loops.
struct Nest {
  Index i = -1;             ///< contiguous variable; -1: all are eliminated
  std::vector<Index> loops; ///< outermost first
  double cost = infinity;
};

/// The access of the loops to a part.
struct Operand {
  const double *data;
  std::vector<int64_t> stride; ///< by loop
  int64_t strideK;
  bool hasI, hasInfinite;
  int depth; ///< of the loop in which it is added; -1: before all loops
};

class MinPlus {
public:
  MinPlus(const Bucket &bucket, const std::vector<Table *> &parts, const Deadline *deadline)
      : bucket(bucket), parts(parts), deadline(deadline) {}
  Table run();

private:
  /// Whether a part is the same for all eliminated strategies, and not thin.
  bool isAddedLast(size_t part) const;
  void addLast(const Part &part, const Table &table, const Table &result);
  void chooseNest();
  double costOf(const Nest &candidate) const;
  Operand operand(const Part &part, Table &table) const;
  /// Adds a part to `count` rows of `from`, except infinite rows.
  int32_t add(const Operand &part, int64_t offset, const double *from, const Index *rowsFrom,
              int32_t count, double *to, Index *rowsTo) const;
  void loop(int depth, std::vector<int64_t> &offsets, int64_t outOffset, const double *sum,
            const Index *rows, int32_t count);
  void finish(const std::vector<int64_t> &offsets, int64_t outOffset, const double *sum,
              const Index *rows, int32_t count);

  /// Checked now and then: a bucket may take minutes.
  bool isOver() {
    if (deadline && ++numSteps % 1024 == 0 && !stopped)
      stopped = deadline->isOver();
    return stopped;
  }

  const Bucket &bucket;
  const std::vector<Table *> &parts;
  Index k = 0, sizeK = 1, sizeI = 1;
  Nest nest;
  std::vector<Operand> operands;
  std::vector<std::vector<int>> at; ///< by depth: operands added there
  std::vector<std::vector<double>> sums;
  std::vector<std::vector<Index>> liveRows;
  std::vector<double> shift;
  std::vector<int64_t> rowOffset;
  std::vector<int64_t> outStride; ///< by loop
  double *out = nullptr;
  const Deadline *deadline;
  int64_t numSteps = 0;
  bool stopped = false;
};

bool MinPlus::isAddedLast(size_t part) const {
  const std::vector<Index> &vars = bucket.parts[part].vars;
  return !parts[part]->hasInfinite && !vars.empty() &&
         std::all_of(vars.begin(), vars.end(), [&](Index v) { return v >= bucket.eliminated; });
}

/// Adds a part over kept variables to the finished minimum.
void MinPlus::addLast(const Part &part, const Table &table, const Table &result) {
  auto rank = static_cast<int>(result.sizes.size());
  std::vector<int64_t> stride(rank, 0);
  for (size_t d = 0; d < part.vars.size(); ++d)
    stride[part.vars[d] - bucket.eliminated] = table.strides[d];
  std::vector<Index> coordinate(rank, 0);
  const double *from = table.data;
  double *to = out;
  while (true) {
    *to += *from;
    int d = rank - 1;
    for (; d >= 0; --d) {
      from += stride[d];
      to += result.strides[d];
      if (++coordinate[d] < result.sizes[d])
        break;
      from -= stride[d] * result.sizes[d];
      to -= result.strides[d] * result.sizes[d];
      coordinate[d] = 0;
    }
    if (d < 0)
      return;
  }
}

/// Modelled time of a nest: additions at each depth, and copies that make i contiguous.
double MinPlus::costOf(const Nest &candidate) const {
  double inner = sizeK * (candidate.i < 0 ? 1.0 : bucket.sizes[candidate.i]);
  std::vector<double> atDepth(candidate.loops.size() + 1, 0);
  std::vector<char> thins(candidate.loops.size() + 1, 0);
  double cost = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (isAddedLast(p))
      continue;
    const std::vector<Index> &vars = bucket.parts[p].vars;
    size_t depth = 0;
    for (size_t d = 0; d < candidate.loops.size(); ++d)
      if (std::find(vars.begin(), vars.end(), candidate.loops[d]) != vars.end())
        depth = d + 1;
    // A table that exceeds the L2 cache is read from memory each time.
    atDepth[depth] += parts[p]->entries() > 60000 ? 3 : 1;
    thins[depth] |= parts[p]->hasInfinite;
    auto found = std::find(vars.begin(), vars.end(), candidate.i);
    if (found != vars.end() && parts[p]->strides[found - vars.begin()] != 1) {
      auto dim = static_cast<Index>(found - vars.begin());
      bool known = std::any_of(parts[p]->turned.begin(), parts[p]->turned.end(),
                               [&](auto &copy) { return copy.first == dim; });
      cost += known ? 0 : 30.0 * static_cast<double>(parts[p]->entries());
    }
  }
  // An estimate of what pruning leaves, so that thin parts are added first.
  double iterations = 1, left = thins[0] ? 0.2 : 1;
  for (size_t d = 0; d <= candidate.loops.size(); ++d) {
    if (d > 0)
      iterations *= bucket.sizes[candidate.loops[d - 1]];
    cost += iterations * left * (inner * atDepth[d] + 8);
    if (thins[d] && d > 0)
      left *= 0.2;
  }
  return cost;
}

void MinPlus::chooseNest() {
  auto count = static_cast<Index>(bucket.sizes.size());
  for (Index v = 0; v < bucket.eliminated; ++v)
    if (bucket.sizes[v] > bucket.sizes[k])
      k = v;
  sizeK = bucket.sizes[k];
  auto consider = [&](Index i) {
    Nest candidate;
    candidate.i = i;
    for (Index v = 0; v < count; ++v)
      if (v != k && v != i)
        candidate.loops.push_back(v);
    if (candidate.loops.size() > 5) {
      candidate.cost = costOf(candidate);
      if (candidate.cost < nest.cost)
        nest = candidate;
      return;
    }
    do {
      candidate.cost = costOf(candidate);
      if (candidate.cost < nest.cost)
        nest = candidate;
    } while (std::next_permutation(candidate.loops.begin(), candidate.loops.end()));
  };
  for (Index v = bucket.eliminated; v < count; ++v)
    consider(v);
  if (bucket.eliminated == count)
    consider(-1);
  sizeI = nest.i < 0 ? 1 : bucket.sizes[nest.i];
}

/// A copy of a table in which dimension `last` is contiguous and the others keep their order.
static const double *turnedCopy(Table &table, Index last, std::vector<int64_t> &strides) {
  auto rank = static_cast<Index>(table.sizes.size());
  std::vector<Index> order;
  for (Index d = 0; d < rank; ++d)
    if (d != last)
      order.push_back(d);
  order.push_back(last);
  strides.assign(rank, 1);
  for (Index d = rank - 2; d >= 0; --d)
    strides[order[d]] = strides[order[d + 1]] * table.sizes[order[d + 1]];
  for (auto &[dim, copy] : table.turned)
    if (dim == last)
      return copy.get();
  auto copy = std::make_unique_for_overwrite<double[]>(table.entries());
  std::vector<Index> coordinate(rank, 0);
  int64_t rows = table.entries() / std::max<int64_t>(1, table.sizes[last]);
  int64_t from = 0;
  double *to = copy.get();
  for (int64_t row = 0; row < rows; ++row, to += table.sizes[last]) {
    for (Index x = 0; x < table.sizes[last]; ++x)
      to[x] = table.data[from + x * table.strides[last]];
    for (Index d = rank - 2; d >= 0; --d) {
      Index dim = order[d];
      from += table.strides[dim];
      if (++coordinate[dim] < table.sizes[dim])
        break;
      from -= table.strides[dim] * table.sizes[dim];
      coordinate[dim] = 0;
    }
  }
  table.turned.emplace_back(last, std::move(copy));
  return table.turned.back().second.get();
}

Operand MinPlus::operand(const Part &part, Table &table) const {
  Operand result{
      table.data, std::vector<int64_t>(nest.loops.size(), 0), 0, false, table.hasInfinite, -1};
  std::vector<int64_t> strides = table.strides;
  for (size_t d = 0; d < part.vars.size(); ++d)
    if (part.vars[d] == nest.i) {
      result.hasI = true;
      if (strides[d] != 1)
        result.data = turnedCopy(table, static_cast<Index>(d), strides);
    }
  for (size_t d = 0; d < part.vars.size(); ++d) {
    if (part.vars[d] == k)
      result.strideK = strides[d];
    for (size_t l = 0; l < nest.loops.size(); ++l)
      if (part.vars[d] == nest.loops[l]) {
        result.stride[l] = strides[d];
        result.depth = std::max(result.depth, static_cast<int>(l));
      }
  }
  return result;
}

int32_t MinPlus::add(const Operand &part, int64_t offset, const double *from, const Index *rowsFrom,
                     int32_t count, double *to, Index *rowsTo) const {
  int32_t left = 0;
  for (int32_t r = 0; r < count; ++r) {
    const double *row = part.data + offset + rowsFrom[r] * part.strideK;
    double *target = to + static_cast<int64_t>(left) * sizeI;
    const double *origin = from + static_cast<int64_t>(r) * sizeI;
    if (part.hasI) {
      if (part.hasInfinite && std::all_of(row, row + sizeI, [](double x) { return x == infinity; }))
        continue;
      addRows(target, sizeI, origin, row);
    } else {
      if (*row == infinity)
        continue;
      addShift(target, sizeI, origin, *row);
    }
    rowsTo[left++] = rowsFrom[r];
  }
  return left;
}

/// The innermost loop: the last part and the minimum in one pass.
void MinPlus::finish(const std::vector<int64_t> &offsets, int64_t outOffset, const double *sum,
                     const Index *rows, int32_t count) {
  const std::vector<int> &last = at.back();
  if (last.empty()) {
    // No part depends on the innermost loop: broadcast the last part.
    std::fill(shift.begin(), shift.begin() + count, 0.0);
    minOfShifted(out + outOffset, sizeI, sum, sizeI, shift.data(), count);
    return;
  }
  auto depth = static_cast<int>(nest.loops.size());
  for (size_t p = 0; p + 1 < last.size(); ++p) {
    count = add(operands[last[p]], offsets[last[p]], sum, rows, count, sums[depth].data(),
                liveRows[depth].data());
    sum = sums[depth].data();
    rows = liveRows[depth].data();
  }
  const Operand &part = operands[last.back()];
  const double *data = part.data + offsets[last.back()];
  if (part.hasI) {
    for (int32_t r = 0; r < count; ++r)
      rowOffset[r] = rows[r] * part.strideK;
    minOfSums(out + outOffset, sizeI, sum, sizeI, data, rowOffset.data(), count);
  } else {
    for (int32_t r = 0; r < count; ++r)
      shift[r] = data[rows[r] * part.strideK];
    minOfShifted(out + outOffset, sizeI, sum, sizeI, shift.data(), count);
  }
}

void MinPlus::loop(int depth, std::vector<int64_t> &offsets, int64_t outOffset, const double *sum,
                   const Index *rows, int32_t count) {
  bool isLast = depth + 1 == static_cast<int>(nest.loops.size());
  Index size = bucket.sizes[nest.loops[depth]];
  for (Index x = 0; x < size && !isOver(); ++x) {
    const double *nowSum = sum;
    const Index *nowRows = rows;
    int32_t nowCount = count;
    if (isLast) {
      finish(offsets, outOffset, sum, rows, count);
    } else {
      for (int p : at[depth + 1]) {
        nowCount = add(operands[p], offsets[p], nowSum, nowRows, nowCount, sums[depth + 1].data(),
                       liveRows[depth + 1].data());
        nowSum = sums[depth + 1].data();
        nowRows = liveRows[depth + 1].data();
      }
      if (nowCount > 0)
        loop(depth + 1, offsets, outOffset, nowSum, nowRows, nowCount);
    }
    for (size_t p = 0; p < operands.size(); ++p)
      offsets[p] += operands[p].stride[depth];
    outOffset += outStride[depth];
  }
  if (stopped)
    return;
  for (size_t p = 0; p < operands.size(); ++p)
    offsets[p] -= operands[p].stride[depth] * size;
}

Table MinPlus::run() {
  chooseNest();
  bool mayBeInfinite = false;
  for (size_t p = 0; p < parts.size(); ++p) {
    mayBeInfinite |= parts[p]->hasInfinite;
    if (!isAddedLast(p))
      operands.push_back(operand(bucket.parts[p], *parts[p]));
  }
  size_t depths = nest.loops.size() + 1;
  at.resize(depths);
  for (size_t p = 0; p < operands.size(); ++p)
    at[operands[p].depth + 1].push_back(static_cast<int>(p));
  sums.assign(depths, std::vector<double>(static_cast<size_t>(sizeK) * sizeI));
  liveRows.assign(depths, std::vector<Index>(sizeK));
  shift.resize(sizeK);
  rowOffset.resize(sizeK);
  // The result's dimensions are the kept variables, stored in the order of the loops.
  Table result, laid;
  std::vector<Index> order, dims;
  for (Index v : nest.loops)
    if (v >= bucket.eliminated)
      order.push_back(v);
  if (nest.i >= 0)
    order.push_back(nest.i);
  for (Index v : order)
    dims.push_back(bucket.sizes[v]);
  laid.allocate(dims);
  result.sizes.assign(bucket.sizes.begin() + bucket.eliminated, bucket.sizes.end());
  result.strides.resize(result.sizes.size());
  outStride.assign(nest.loops.size(), 0);
  for (size_t d = 0; d < order.size(); ++d) {
    result.strides[order[d] - bucket.eliminated] = laid.strides[d];
    for (size_t l = 0; l < nest.loops.size(); ++l)
      if (nest.loops[l] == order[d])
        outStride[l] = laid.strides[d];
  }
  result.own = std::move(laid.own);
  result.data = out = result.own.get();
  int64_t entries = result.entries();
  std::fill(out, out + entries, infinity);

  std::vector<int64_t> offsets(operands.size(), 0);
  std::vector<Index> rows(sizeK);
  for (Index r = 0; r < sizeK; ++r)
    rows[r] = r;
  std::vector<double> zero(static_cast<size_t>(sizeK) * sizeI, 0.0);
  int32_t count = sizeK;
  if (nest.loops.empty()) {
    finish(offsets, 0, zero.data(), rows.data(), count);
  } else {
    const double *sum = zero.data();
    const Index *live = rows.data();
    for (int p : at[0]) {
      count = add(operands[p], 0, sum, live, count, sums[0].data(), liveRows[0].data());
      sum = sums[0].data();
      live = liveRows[0].data();
    }
    if (count > 0)
      loop(0, offsets, 0, sum, live, count);
  }
  for (size_t p = 0; p < parts.size(); ++p)
    if (isAddedLast(p))
      addLast(bucket.parts[p], *parts[p], result);
  if (mayBeInfinite)
    result.hasInfinite = std::find(out, out + entries, infinity) != out + entries;
  return result;
}

} // namespace

Table minPlus(const Bucket &bucket, const std::vector<Table *> &parts, const Deadline *deadline) {
  if (bucket.eliminated < static_cast<Index>(bucket.sizes.size()))
    return MinPlus(bucket, parts, deadline).run();
  // No variable is kept: keep the longest one, for the innermost loop, and reduce it at the end.
  Bucket kept = bucket;
  auto last = static_cast<Index>(std::max_element(kept.sizes.begin(), kept.sizes.end()) -
                                 kept.sizes.begin());
  Index end = --kept.eliminated;
  std::swap(kept.sizes[last], kept.sizes[end]);
  for (Part &part : kept.parts)
    for (Index &v : part.vars)
      v = v == last ? end : v == end ? last : v;
  if (end == 0) {
    // A single variable: a loop does not pay off.
    kept.sizes.insert(kept.sizes.begin(), 1);
    kept.eliminated = 1;
    for (Part &part : kept.parts)
      for (Index &v : part.vars)
        v = 1;
  }
  Table row = MinPlus(kept, parts, deadline).run(), result;
  result.allocate({});
  result.own[0] = *std::min_element(row.data, row.data + row.entries());
  return result;
}

} // namespace tessera::solver
