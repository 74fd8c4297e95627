//===- ReshardSpace.cpp - Placements and the steps between them ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardSpace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera::sharding {

/// Placements that one source is asked to reach, before what is left is priced directly; and
/// partial axes that are reduced, or whole ones that cut, in any order.
static constexpr size_t kMostSettled = 3000, kMostOrdered = 3;

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

ReshardSpace::Code ReshardSpace::encode(const State &state) {
  Code code = 0;
  for (size_t d = 0; d < state.dims.size(); ++d)
    for (size_t at = 0; at < state.dims[d].size(); ++at)
      code |= static_cast<Code>(codeOf(d, at)) << (8 * state.dims[d][at]);
  for (int8_t group : state.partial)
    code |= static_cast<Code>(kIsPartial) << (8 * group);
  return code;
}

ReshardSpace::State ReshardSpace::decode(Code code) const {
  State state;
  state.dims.resize(dims.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    auto place = static_cast<uint8_t>(code >> (8 * group));
    if (place == kIsPartial)
      state.partial.push_back(static_cast<int8_t>(group));
    if (place < kIsCut)
      continue;
    Groups &dim = state.dims[(place - kIsCut) / kMostGroups];
    size_t position = (place - kIsCut) % kMostGroups;
    if (dim.size() <= position)
      dim.resize(position + 1);
    dim[position] = static_cast<int8_t>(group);
  }
  return state;
}

int32_t ReshardSpace::numberOf(Code code) {
  auto [it, isNew] = numbers.try_emplace(code, static_cast<int32_t>(codes.size()));
  if (isNew) {
    codes.push_back(code);
    steps.emplace_back();
    hasSteps.push_back(0);
  }
  return it->second;
}

int64_t ReshardSpace::partsOf(const Groups &chosen) const {
  int64_t size = 1;
  for (int8_t group : chosen)
    size *= sizeOf(groups[group]);
  return size;
}

int64_t ReshardSpace::extentOf(const State &state, size_t dim) const {
  return ceilDiv(dims[dim].extent, dims[dim].parts * partsOf(state.dims[dim]));
}

bool ReshardSpace::fits(const State &state) const {
  for (size_t d = 0; d < dims.size(); ++d)
    if (partsOf(state.dims[d]) > std::max<int64_t>(1, ceilDiv(dims[d].extent, dims[d].parts)))
      return false;
  return true;
}

double ReshardSpace::localBytes(const State &state) const {
  auto bytes = static_cast<double>(bytesPerElement);
  for (size_t d = 0; d < dims.size(); ++d)
    bytes *= static_cast<double>(extentOf(state, d));
  return bytes;
}

/// Part j of the finer cut is the device's that has part j / ratio of the coarser one.
ReshardSpace::Lack ReshardSpace::lackOf(const State &coarse, const State &fine, size_t dim,
                                        bool isGathered) {
  int64_t extent = dims[dim].extent, parts = dims[dim].parts * partsOf(coarse.dims[dim]);
  int64_t ratio = dims[dim].parts * partsOf(fine.dims[dim]) / parts;
  int64_t whole = ceilDiv(extent, parts), part = ceilDiv(extent, parts * ratio);
  if (parts == 1 || whole == ratio * part)
    return {};
  auto [it, isNew] = lacks.try_emplace({static_cast<int64_t>(dim), parts, ratio, isGathered});
  Lack &most = it->second;
  // What each group of devices has, and what is wanted of it: one part of the finer cut, or all
  // parts of the coarser one.
  int64_t step = isGathered ? ratio : 1, had = isGathered ? part : whole;
  for (int64_t j = 0; isNew && j < parts * ratio && j * part < extent; j += step) {
    int64_t group = j / ratio;
    int64_t from = isGathered ? group * whole : j * part;
    int64_t to = std::min(from + (isGathered ? whole : part), extent);
    int64_t begin = isGathered ? j * part : group * whole;
    int64_t end = std::min(begin + (isGathered ? ratio * part : whole), extent);
    int64_t lacking = to - from - std::max<int64_t>(0, std::min(to, end) - std::max(from, begin));
    if (lacking <= most.elements)
      continue;
    most.elements = lacking;
    most.messages = std::max<int64_t>(1, ceilDiv(lacking, had));
  }
  return most;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

double ReshardSpace::secondsOf(const Groups &chosen, CollectiveKind kind, const State &source,
                               const State &target, double wireBytes, int64_t messages) const {
  AxisList axes; // none: all devices
  if (kind != CollectiveKind::exchange)
    for (int8_t group : chosen)
      axes.insert(axes.end(), groups[group].begin(), groups[group].end());
  Traffic traffic;
  traffic.wireBytes = static_cast<int64_t>(wireBytes);
  traffic.count = kind == CollectiveKind::slice ? 0 : 1;
  traffic.messages = messages;
  if (countsCopies) {
    std::vector<int64_t> from, to;
    for (size_t d = 0; d < dims.size(); ++d) {
      from.push_back(extentOf(source, d));
      to.push_back(extentOf(target, d));
    }
    traffic.setCopies(kind, bytesPerElement, from, to);
  }
  return links.seconds(mesh, axes, kind, traffic);
}

void ReshardSpace::step(int32_t from, const State &target, double seconds) {
  if (!fits(target))
    return;
  int32_t number = numberOf(encode(target));
  steps[from].push_back({number, seconds});
}

/// Calls `visit` with every sequence of distinct elements of a set (a few).
template <typename Visit>
static void forEachSequence(const std::vector<int8_t> &axes, std::vector<int8_t> &prefix,
                            const Visit &visit) {
  for (int8_t axis : axes) {
    if (std::find(prefix.begin(), prefix.end(), axis) != prefix.end())
      continue;
    prefix.push_back(axis);
    visit(prefix);
    forEachSequence(axes, prefix, visit);
    prefix.pop_back();
  }
}

/// Every sequence of a few, or all at once and one by one.
template <typename Visit>
static void forEachChoice(const std::vector<int8_t> &axes, const Visit &visit) {
  std::vector<int8_t> prefix;
  if (axes.size() <= kMostOrdered)
    return forEachSequence(axes, prefix, visit);
  visit(axes);
  for (int8_t axis : axes)
    visit({axis});
}

void ReshardSpace::reduce(int32_t from, const State &state) {
  double local = localBytes(state);
  forEachChoice(state.partial, [&](const Groups &chosen) {
    auto n = static_cast<double>(partsOf(chosen));
    State next = state;
    std::erase_if(next.partial, [&](int8_t group) {
      return std::find(chosen.begin(), chosen.end(), group) != chosen.end();
    });
    if (std::is_sorted(chosen.begin(), chosen.end()))
      step(from, next,
           secondsOf(chosen, CollectiveKind::all_reduce, state, next, 2 * local * (n - 1) / n));
    for (size_t d = 0; d < dims.size(); ++d) {
      State scattered = next;
      scattered.dims[d].insert(scattered.dims[d].end(), chosen.begin(), chosen.end());
      if (!lackOf(next, scattered, d, /*isGathered=*/false))
        step(from, scattered,
             secondsOf(chosen, CollectiveKind::reduce_scatter, state, scattered,
                       local * (n - 1) / n));
    }
  });
}

/// The last groups of a dimension are gathered, or go to another.
void ReshardSpace::gather(int32_t from, const State &state, size_t dim, size_t length) {
  const Groups &own = state.dims[dim];
  Groups tail(own.end() - static_cast<std::ptrdiff_t>(length), own.end());
  auto n = static_cast<double>(partsOf(tail));
  double local = localBytes(state);
  State gathered = state;
  gathered.dims[dim].resize(own.size() - length);
  Lack lack = lackOf(gathered, state, dim, /*isGathered=*/true);
  step(from, gathered,
       lack ? secondsOf(tail, CollectiveKind::exchange, state, gathered,
                        localBytes(gathered) - local, static_cast<int64_t>(n) - 1 + lack.messages)
            : secondsOf(tail, CollectiveKind::all_gather, state, gathered,
                        localBytes(gathered) * (n - 1) / n));
  for (size_t to = 0; to < dims.size(); ++to)
    if (to != dim) {
      State moved = gathered;
      moved.dims[to].insert(moved.dims[to].end(), tail.begin(), tail.end());
      Lack other = lackOf(gathered, moved, to, /*isGathered=*/false);
      step(from, moved,
           secondsOf(tail, lack || other ? CollectiveKind::exchange : CollectiveKind::all_to_all,
                     state, moved, local * (n - 1) / n,
                     static_cast<int64_t>(n) - 1 + lack.messages + other.messages));
    }
  if (length == 1 && !lack) { // a shard is its device's contribution to the whole
    State partial = gathered;
    partial.partial.push_back(tail[0]);
    step(from, partial, 0);
  }
}

/// Whole groups make contributions, or cut. Each alone, which sends nothing where parts are whole;
/// parts of parts that are not may be cut from the whole at once.
void ReshardSpace::cut(int32_t from, const State &state, const Groups &unused) {
  for (int8_t group : unused) {
    State partial = state;
    partial.partial.push_back(group);
    step(from, partial, 0);
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    auto cutBy = [&](const Groups &chosen) {
      State next = state;
      next.dims[d].insert(next.dims[d].end(), chosen.begin(), chosen.end());
      if (!fits(next))
        return;
      Lack lack = lackOf(state, next, d, /*isGathered=*/false);
      double rows = localBytes(next) / static_cast<double>(extentOf(next, d));
      step(from, next,
           lack           ? secondsOf(chosen, CollectiveKind::exchange, state, next,
                                      rows * static_cast<double>(lack.elements), lack.messages)
           : countsCopies ? secondsOf(chosen, CollectiveKind::slice, state, next, 0)
                          : 0);
    };
    bool isEven = dims[d].extent % (dims[d].parts * partsOf(state.dims[d]) * partsOf(unused)) == 0;
    if (!isEven || countsCopies)
      forEachChoice(unused, cutBy);
    else
      for (int8_t group : unused)
        cutBy({group});
  }
}

void ReshardSpace::addSteps(int32_t from) {
  const State state = decode(codes[from]);
  reduce(from, state);
  std::array<bool, kMostGroups> isUsed = {};
  for (int8_t group : state.partial)
    isUsed[group] = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    for (int8_t group : state.dims[d])
      isUsed[group] = true;
    for (size_t length = 1; length <= state.dims[d].size(); ++length)
      gather(from, state, d, length);
  }
  Groups unused;
  for (int8_t group = 0; group < std::ssize(groups); ++group)
    if (!isUsed[group])
      unused.push_back(group);
  cut(from, state, unused);
}

const std::vector<ReshardSpace::Step> &ReshardSpace::stepsFrom(int32_t from) {
  if (!hasSteps[from]) {
    hasSteps[from] = 1;
    addSteps(from);
  }
  return steps[from];
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

double ReshardSpace::seconds(Code source, Code target, bool isHurried) {
  double found = isHurried ? std::numeric_limits<double>::infinity() : shortest(source, target);
  return std::isfinite(found) ? found : directSeconds(source);
}

/// Infinite where no path is found, or none soon enough.
double ReshardSpace::shortest(Code source, Code target) {
  int32_t first = numberOf(source), last = numberOf(target);
  auto [it, isNew] = runs.try_emplace(first);
  Run &run = it->second;
  auto reach = [&](int32_t state, double seconds) {
    if (run.distance.size() < codes.size()) {
      run.distance.resize(codes.size(), std::numeric_limits<double>::infinity());
      run.isSettled.resize(codes.size(), 0);
    }
    if (seconds < run.distance[state]) {
      run.distance[state] = seconds;
      run.queue.push({seconds, state});
    }
  };
  if (isNew)
    reach(first, 0);
  while (last >= std::ssize(run.isSettled) || !run.isSettled[last]) {
    if (run.queue.empty() || run.numSettled >= kMostSettled)
      return std::numeric_limits<double>::infinity();
    auto [seconds, state] = run.queue.top();
    run.queue.pop();
    if (run.isSettled[state])
      continue;
    run.isSettled[state] = 1;
    ++run.numSettled;
    for (const Step &next : stepsFrom(state))
      reach(next.target, seconds + next.seconds);
  }
  return run.distance[last];
}

/// Sums are reduced and what changes is gathered; cutting is free.
double ReshardSpace::directSeconds(Code source) const {
  State now = decode(source);
  double sum = 0;
  if (!now.partial.empty()) {
    auto n = static_cast<double>(partsOf(now.partial));
    sum += secondsOf(now.partial, CollectiveKind::all_reduce, now, now,
                     2 * localBytes(now) * (n - 1) / n);
  }
  for (Groups &dim : now.dims)
    if (!dim.empty()) {
      State cut = now;
      Groups all = std::exchange(dim, {});
      auto n = static_cast<double>(partsOf(all));
      sum += secondsOf(all, CollectiveKind::all_gather, cut, now, localBytes(now) * (n - 1) / n);
    }
  return sum;
}

} // namespace tessera::sharding
