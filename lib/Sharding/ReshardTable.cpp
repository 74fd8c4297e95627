//===- ReshardTable.cpp - The times of all reshards of a tensor ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardTable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace tessera::sharding {

ReshardTable::ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
                           ReshardPlanner &planner)
    : mesh(mesh), shape(std::move(shape)), bytesPerElement(bytesPerElement), planner(planner) {
  addStates();
  steps.resize(states.size());
  distances.resize(states.size() << mesh.numAxes());
  for (size_t state = 0; state < states.size(); ++state)
    addSteps(static_cast<int32_t>(state));
}

double ReshardTable::seconds(const TensorSharding &source, const TensorSharding &target) {
  if (source == target)
    return 0;
  if (!target.windows.empty() && source.windows.empty())
    return windowSeconds(source, target);
  State a, b;
  // Contributions of two kinds are two states to the planner, one here.
  bool isMixed = source.isPartial() && target.isPartial() &&
                 source.partial.front().kind != target.partial.front().kind;
  if (isMixed) {
    // One kind is reduced before contributions of the other are made, locally.
    TensorSharding whole = target.withoutPartial();
    return seconds(source, whole) + seconds(whole, target);
  }
  if (stateOf(source, a) && stateOf(target, b)) {
    auto first = numbers.find(a), last = numbers.find(b);
    if (first != numbers.end() && last != numbers.end())
      if (double known = from(first->second, axesOf(a) | axesOf(b))[last->second];
          std::isfinite(known))
        return known;
  }
  return planner.plan({mesh, shape, bytesPerElement, source, target}).seconds;
}

/// To the shard that the window is around, then what the window has beyond it: a halo, or all of a
/// window that does not follow the shards.
double ReshardTable::windowSeconds(const TensorSharding &source, const TensorSharding &target) {
  TensorSharding shard = target;
  shard.windows.clear();
  shard = canonical(shard);
  double sum = seconds(source, shard);
  for (const Window &window : target.windows) {
    const AxisList &axes = target.dims[window.dim];
    if (sizeOf(axes) == 1)
      continue;
    int64_t chunk = ceilDiv(shape[window.dim], sizeOf(axes));
    int64_t lacking = window.length;
    if (window.step == chunk)
      lacking = std::max<int64_t>(0, -window.offset) +
                std::max<int64_t>(0, window.offset + window.length - chunk);
    double slab = static_cast<double>(bytesPerElement) * static_cast<double>(lacking);
    for (size_t d = 0; d < shape.size(); ++d)
      if (static_cast<int64_t>(d) != window.dim)
        slab *= static_cast<double>(ceilDiv(shape[d], sizeOf(target.dims[d])));
    Traffic traffic{static_cast<int64_t>(slab), static_cast<int64_t>(slab), slab > 0 ? 2 : 0, 2};
    sum += planner.linksOf(mesh).seconds(mesh, axes, CollectiveKind::halo_exchange, traffic);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Fails for windows, parts of axes and what else is no state here.
bool ReshardTable::stateOf(const TensorSharding &sharding, State &state) const {
  if (!sharding.windows.empty() || !sharding.open.empty())
    return false;
  state.dims.resize(sharding.dims.size());
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    for (const AxisRef &axis : sharding.dims[d]) {
      if (!axis.isFull(mesh))
        return false;
      state.dims[d].push_back(static_cast<int8_t>(axis.axis));
    }
  for (const PartialAxis &partial : sharding.partial) {
    if (!partial.axis.isFull(mesh) || partial.kind != sharding.partial.front().kind)
      return false;
    state.partial.push_back(static_cast<int8_t>(partial.axis.axis));
  }
  std::sort(state.partial.begin(), state.partial.end());
  return true;
}

uint32_t ReshardTable::axesOf(const State &state) {
  uint32_t axes = 0;
  for (const std::vector<int8_t> &dim : state.dims)
    for (int8_t axis : dim)
      axes |= 1U << axis;
  for (int8_t axis : state.partial)
    axes |= 1U << axis;
  return axes;
}

bool ReshardTable::fits(const State &state) const {
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t parts = 1;
    for (int8_t axis : state.dims[d])
      parts *= mesh.shape[axis];
    if (parts > std::max<int64_t>(1, shape[d]))
      return false;
  }
  return true;
}

double ReshardTable::localBytes(const State &state) const {
  auto bytes = static_cast<double>(bytesPerElement);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t parts = 1;
    for (int8_t axis : state.dims[d])
      parts *= mesh.shape[axis];
    bytes *= static_cast<double>(ceilDiv(shape[d], parts));
  }
  return bytes;
}

int32_t ReshardTable::numberOf(const State &state) {
  auto [it, isNew] = numbers.try_emplace(state, static_cast<int32_t>(states.size()));
  if (isNew)
    states.push_back(state);
  return it->second;
}

/// Every axis is whole, partial, or anywhere among the axes of a dimension.
void ReshardTable::addStates() {
  State whole;
  whole.dims.resize(shape.size());
  numberOf(whole);
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    if (mesh.shape[axis] == 1)
      continue;
    size_t before = states.size();
    for (size_t s = 0; s < before; ++s) {
      State partial = states[s];
      partial.partial.push_back(static_cast<int8_t>(axis));
      numberOf(partial);
      for (size_t d = 0; d < shape.size(); ++d)
        for (size_t at = 0; at <= states[s].dims[d].size(); ++at) {
          State cut = states[s];
          cut.dims[d].insert(cut.dims[d].begin() + static_cast<std::ptrdiff_t>(at),
                             static_cast<int8_t>(axis));
          if (fits(cut))
            numberOf(cut);
        }
    }
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void ReshardTable::step(int32_t from, const State &target, CollectiveKind kind,
                        const std::vector<int8_t> &group, double wireBytes) {
  auto it = numbers.find(target);
  if (it == numbers.end())
    return;
  double seconds = 0;
  if (kind != CollectiveKind::slice) {
    AxisList axes;
    for (int8_t axis : group)
      axes.push_back(AxisRef::full(mesh, axis));
    Traffic traffic;
    traffic.wireBytes = static_cast<int64_t>(wireBytes);
    traffic.count = 1;
    seconds = planner.linksOf(mesh).seconds(mesh, axes, kind, traffic);
  }
  steps[from].push_back({it->second, axesOf(target), seconds});
}

static double sizeOf(const Mesh &mesh, const std::vector<int8_t> &group) {
  double size = 1;
  for (int8_t axis : group)
    size *= static_cast<double>(mesh.shape[axis]);
  return size;
}

/// Calls `visit` with every sequence of distinct axes of a set (a few: mesh axes).
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

static void drop(std::vector<int8_t> &axes, const std::vector<int8_t> &gone) {
  std::erase_if(
      axes, [&](int8_t axis) { return std::find(gone.begin(), gone.end(), axis) != gone.end(); });
}

void ReshardTable::addSteps(int32_t index) {
  const State state = states[index];
  double local = localBytes(state);
  std::vector<int8_t> prefix;
  forEachSequence(state.partial, prefix, [&](const std::vector<int8_t> &axes) {
    double n = sizeOf(mesh, axes);
    State next = state;
    drop(next.partial, axes);
    if (std::is_sorted(axes.begin(), axes.end()))
      step(index, next, CollectiveKind::all_reduce, axes, 2 * local * (n - 1) / n);
    for (size_t d = 0; d < shape.size(); ++d) {
      State scattered = next;
      scattered.dims[d].insert(scattered.dims[d].end(), axes.begin(), axes.end());
      step(index, scattered, CollectiveKind::reduce_scatter, axes, local * (n - 1) / n);
    }
  });
  std::vector<char> isUsed(mesh.numAxes(), 0);
  for (int8_t axis : state.partial)
    isUsed[axis] = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::vector<int8_t> &axes = state.dims[d];
    for (int8_t axis : axes)
      isUsed[axis] = 1;
    for (size_t length = 1; length <= axes.size(); ++length) {
      std::vector<int8_t> tail(axes.end() - static_cast<std::ptrdiff_t>(length), axes.end());
      double n = sizeOf(mesh, tail);
      State gathered = state;
      gathered.dims[d].resize(axes.size() - length);
      step(index, gathered, CollectiveKind::all_gather, tail, localBytes(gathered) * (n - 1) / n);
      for (size_t to = 0; to < shape.size(); ++to)
        if (to != d) {
          State moved = gathered;
          moved.dims[to].insert(moved.dims[to].end(), tail.begin(), tail.end());
          step(index, moved, CollectiveKind::all_to_all, tail, local * (n - 1) / n);
        }
      if (length == 1) { // a shard is its device's contribution to the whole
        State partial = gathered;
        partial.partial.insert(
            std::upper_bound(partial.partial.begin(), partial.partial.end(), tail[0]), tail[0]);
        step(index, partial, CollectiveKind::slice, tail, 0);
      }
    }
  }
  for (int8_t axis = 0; axis < mesh.numAxes(); ++axis) {
    if (isUsed[axis])
      continue;
    State partial = state;
    partial.partial.insert(std::upper_bound(partial.partial.begin(), partial.partial.end(), axis),
                           axis);
    step(index, partial, CollectiveKind::slice, {axis}, 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      State cut = state;
      cut.dims[d].push_back(axis);
      step(index, cut, CollectiveKind::slice, {axis}, 0);
    }
  }
}

const std::vector<double> &ReshardTable::from(int32_t source, uint32_t axes) {
  std::vector<double> &distance = distances[(source << mesh.numAxes()) + axes];
  if (!distance.empty())
    return distance;
  distance.assign(states.size(), std::numeric_limits<double>::infinity());
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[source] = 0;
  queue.push({0, source});
  while (!queue.empty()) {
    auto [seconds, state] = queue.top();
    queue.pop();
    if (seconds > distance[state])
      continue;
    for (const Step &next : steps[state])
      if (double sum = seconds + next.seconds;
          (next.axes & ~axes) == 0 && sum < distance[next.target]) {
        distance[next.target] = sum;
        queue.push({sum, next.target});
      }
  }
  return distance;
}

} // namespace tessera::sharding
