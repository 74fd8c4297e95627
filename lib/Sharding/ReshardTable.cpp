//===- ReshardTable.cpp - The times of all reshards of a tensor ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardTable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

namespace tessera::sharding {

//===----------------------------------------------------------------------===//
// Shortest paths
//===----------------------------------------------------------------------===//

/// A placement, a byte a group: whole, partial, or the place in a dimension.
using Code = uint64_t;
constexpr size_t kMostGroups = 8;
constexpr int64_t kMostDims = 31;
constexpr uint8_t kIsWhole = 0, kIsPartial = 1, kIsCut = 2;

/// Placements that one source is asked to reach, before what is left is priced directly; and
/// partial axes that are reduced in any order.
constexpr size_t kMostSettled = 3000, kMostOrdered = 3;

static uint8_t codeOf(size_t dim, size_t position) {
  return static_cast<uint8_t>(kIsCut + dim * kMostGroups + position);
}

/// All placements of tensors of one shape over groups of axes, found as they are needed.
class ReshardTable::Space {
public:
  Space(const ReshardTable &table, const Small &small)
      : table(table), shape(small.shape), groups(small.groups) {}

  /// Infinite where no path is found, or none soon enough.
  double seconds(const State &source, const State &target);

private:
  struct Step {
    int32_t target;
    double seconds;
  };
  using Entry = std::pair<double, int32_t>;
  /// A run of Dijkstra's algorithm, which goes on when the next target is asked for.
  struct Run {
    std::vector<double> distance; ///< by state
    std::vector<char> isSettled;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    size_t numSettled = 0;
  };

  static Code encode(const State &state);
  State decode(Code code) const;
  int32_t numberOf(Code code);
  bool fits(const State &state) const; ///< every part has an index
  double localBytes(const State &state) const;
  const std::vector<Step> &stepsFrom(int32_t from);
  void addSteps(int32_t from);
  void step(int32_t from, const State &target, CollectiveKind kind,
            const std::vector<int8_t> &chosen, double wireBytes);

  const ReshardTable &table;
  std::vector<int64_t> shape;
  std::vector<std::vector<int8_t>> groups;
  std::vector<Code> codes;
  std::unordered_map<Code, int32_t> numbers;
  std::vector<std::vector<Step>> steps; ///< by state
  std::vector<char> hasSteps;
  std::map<int32_t, Run> runs; ///< by source
};

Code ReshardTable::Space::encode(const State &state) {
  Code code = 0;
  for (size_t d = 0; d < state.dims.size(); ++d)
    for (size_t at = 0; at < state.dims[d].size(); ++at)
      code |= static_cast<Code>(codeOf(d, at)) << (8 * state.dims[d][at]);
  for (int8_t group : state.partial)
    code |= static_cast<Code>(kIsPartial) << (8 * group);
  return code;
}

ReshardTable::State ReshardTable::Space::decode(Code code) const {
  State state;
  state.dims.resize(shape.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    auto place = static_cast<uint8_t>(code >> (8 * group));
    if (place == kIsPartial)
      state.partial.push_back(static_cast<int8_t>(group));
    if (place < kIsCut)
      continue;
    std::vector<int8_t> &dim = state.dims[(place - kIsCut) / kMostGroups];
    size_t position = (place - kIsCut) % kMostGroups;
    if (dim.size() <= position)
      dim.resize(position + 1);
    dim[position] = static_cast<int8_t>(group);
  }
  return state;
}

int32_t ReshardTable::Space::numberOf(Code code) {
  auto [it, isNew] = numbers.try_emplace(code, static_cast<int32_t>(codes.size()));
  if (isNew) {
    codes.push_back(code);
    steps.emplace_back();
    hasSteps.push_back(0);
  }
  return it->second;
}

bool ReshardTable::Space::fits(const State &state) const {
  for (size_t d = 0; d < shape.size(); ++d)
    if (table.partsOf(groups, state.dims[d]) > std::max<int64_t>(1, shape[d]))
      return false;
  return true;
}

double ReshardTable::Space::localBytes(const State &state) const {
  auto bytes = static_cast<double>(table.bytesPerElement);
  for (size_t d = 0; d < shape.size(); ++d)
    bytes *= static_cast<double>(ceilDiv(shape[d], table.partsOf(groups, state.dims[d])));
  return bytes;
}

void ReshardTable::Space::step(int32_t from, const State &target, CollectiveKind kind,
                               const std::vector<int8_t> &chosen, double wireBytes) {
  if (!fits(target))
    return;
  double seconds =
      kind == CollectiveKind::slice ? 0 : table.linkSeconds(groups, chosen, kind, wireBytes);
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

static void drop(std::vector<int8_t> &axes, const std::vector<int8_t> &gone) {
  std::erase_if(
      axes, [&](int8_t axis) { return std::find(gone.begin(), gone.end(), axis) != gone.end(); });
}

void ReshardTable::Space::addSteps(int32_t index) {
  const State state = decode(codes[index]);
  double local = localBytes(state);
  auto reduceOver = [&](const std::vector<int8_t> &chosen) {
    auto n = static_cast<double>(table.partsOf(groups, chosen));
    State next = state;
    drop(next.partial, chosen);
    if (std::is_sorted(chosen.begin(), chosen.end()))
      step(index, next, CollectiveKind::all_reduce, chosen, 2 * local * (n - 1) / n);
    for (size_t d = 0; d < shape.size(); ++d) {
      State scattered = next;
      scattered.dims[d].insert(scattered.dims[d].end(), chosen.begin(), chosen.end());
      step(index, scattered, CollectiveKind::reduce_scatter, chosen, local * (n - 1) / n);
    }
  };
  std::vector<int8_t> prefix;
  if (state.partial.size() <= kMostOrdered) {
    forEachSequence(state.partial, prefix, reduceOver);
  } else {
    reduceOver(state.partial);
    for (int8_t group : state.partial)
      reduceOver({group});
  }
  std::array<bool, kMostGroups> isUsed = {};
  for (int8_t group : state.partial)
    isUsed[group] = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::vector<int8_t> &dim = state.dims[d];
    for (int8_t group : dim)
      isUsed[group] = true;
    for (size_t length = 1; length <= dim.size(); ++length) {
      std::vector<int8_t> tail(dim.end() - static_cast<std::ptrdiff_t>(length), dim.end());
      auto n = static_cast<double>(table.partsOf(groups, tail));
      State gathered = state;
      gathered.dims[d].resize(dim.size() - length);
      step(index, gathered, CollectiveKind::all_gather, tail, localBytes(gathered) * (n - 1) / n);
      for (size_t to = 0; to < shape.size(); ++to)
        if (to != d) {
          State moved = gathered;
          moved.dims[to].insert(moved.dims[to].end(), tail.begin(), tail.end());
          step(index, moved, CollectiveKind::all_to_all, tail, local * (n - 1) / n);
        }
      if (length == 1) { // a shard is its device's contribution to the whole
        State partial = gathered;
        partial.partial.push_back(tail[0]);
        step(index, partial, CollectiveKind::slice, tail, 0);
      }
    }
  }
  for (int8_t group = 0; group < std::ssize(groups); ++group) {
    if (isUsed[group])
      continue;
    State partial = state;
    partial.partial.push_back(group);
    step(index, partial, CollectiveKind::slice, {group}, 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      State cut = state;
      cut.dims[d].push_back(group);
      step(index, cut, CollectiveKind::slice, {group}, 0);
    }
  }
}

const std::vector<ReshardTable::Space::Step> &ReshardTable::Space::stepsFrom(int32_t from) {
  if (!hasSteps[from]) {
    hasSteps[from] = 1;
    addSteps(from);
  }
  return steps[from];
}

double ReshardTable::Space::seconds(const State &source, const State &target) {
  int32_t first = numberOf(encode(source)), last = numberOf(encode(target));
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

//===----------------------------------------------------------------------===//
// Small reshards
//===----------------------------------------------------------------------===//

/// What both begin with stays, and axes that stay beside each other are one.
ReshardTable::Small ReshardTable::makeSmall(State a, State b) const {
  Small small{shape, {}, {}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    size_t same = 0;
    int64_t parts = 1;
    while (same < std::min(a.dims[d].size(), b.dims[d].size()) &&
           a.dims[d][same] == b.dims[d][same])
      parts *= mesh.shape[a.dims[d][same++]];
    small.shape[d] = ceilDiv(shape[d], parts);
    for (State *state : {&a, &b})
      state->dims[d].erase(state->dims[d].begin(),
                           state->dims[d].begin() + static_cast<std::ptrdiff_t>(same));
  }
  const std::vector<int8_t> partial = a.partial;
  drop(a.partial, b.partial);
  drop(b.partial, partial);

  // Where the target has an axis: whole, partial, or a place in a dimension.
  constexpr std::pair<int, int> whole{-2, 0}, contributed{-1, 0};
  std::vector<std::pair<int, int>> inTarget(mesh.numAxes(), whole);
  std::vector<int8_t> groupOf(mesh.numAxes(), -1);
  for (size_t d = 0; d < b.dims.size(); ++d)
    for (size_t at = 0; at < b.dims[d].size(); ++at)
      inTarget[b.dims[d][at]] = {static_cast<int>(d), static_cast<int>(at)};
  for (int8_t axis : b.partial)
    inTarget[axis] = contributed;
  auto add = [&](const std::vector<int8_t> &axes) {
    int8_t before = -1;
    for (int8_t axis : axes) {
      if (groupOf[axis] >= 0)
        continue;
      bool isNext = false;
      if (before >= 0) {
        auto [dim, at] = inTarget[before];
        isNext = inTarget[axis] == std::make_pair(dim, dim < 0 ? 0 : at + 1);
      }
      if (!isNext)
        small.groups.emplace_back();
      small.groups.back().push_back(axis);
      groupOf[axis] = static_cast<int8_t>(small.groups.size() - 1);
      before = axis;
    }
  };
  for (const std::vector<int8_t> &dim : a.dims)
    add(dim);
  std::vector<int8_t> byTarget = a.partial;
  std::stable_sort(byTarget.begin(), byTarget.end(),
                   [&](int8_t x, int8_t y) { return inTarget[x] < inTarget[y]; });
  add(byTarget);
  for (const std::vector<int8_t> &dim : b.dims)
    add(dim);
  add(b.partial);

  auto rename = [&](const std::vector<int8_t> &axes) {
    std::vector<int8_t> numbers;
    for (int8_t axis : axes)
      if (int8_t group = groupOf[axis];
          std::find(numbers.begin(), numbers.end(), group) == numbers.end())
        numbers.push_back(group);
    return numbers;
  };
  for (auto [from, to] : {std::pair{&a, &small.source}, std::pair{&b, &small.target}}) {
    for (const std::vector<int8_t> &dim : from->dims)
      to->dims.push_back(rename(dim));
    to->partial = rename(from->partial);
  }
  return small;
}

int64_t ReshardTable::partsOf(const std::vector<std::vector<int8_t>> &groups,
                              const std::vector<int8_t> &chosen) const {
  int64_t size = 1;
  for (int8_t group : chosen)
    for (int8_t axis : groups[group])
      size *= mesh.shape[axis];
  return size;
}

double ReshardTable::linkSeconds(const std::vector<std::vector<int8_t>> &groups,
                                 const std::vector<int8_t> &chosen, CollectiveKind kind,
                                 double wireBytes) const {
  AxisList axes;
  for (int8_t group : chosen)
    for (int8_t axis : groups[group])
      axes.push_back(AxisRef::full(mesh, axis));
  Traffic traffic;
  traffic.wireBytes = static_cast<int64_t>(wireBytes);
  traffic.count = 1;
  return links.seconds(mesh, axes, kind, traffic);
}

/// Sums are reduced and what changes is gathered; cutting is free.
double ReshardTable::directSeconds(const Small &small) const {
  auto bytesOf = [&](const State &state) {
    auto bytes = static_cast<double>(bytesPerElement);
    for (size_t d = 0; d < small.shape.size(); ++d)
      bytes *= static_cast<double>(ceilDiv(small.shape[d], partsOf(small.groups, state.dims[d])));
    return bytes;
  };
  State now = small.source;
  double sum = 0;
  if (!now.partial.empty()) {
    auto n = static_cast<double>(partsOf(small.groups, now.partial));
    sum += linkSeconds(small.groups, now.partial, CollectiveKind::all_reduce,
                       2 * bytesOf(now) * (n - 1) / n);
  }
  for (std::vector<int8_t> &dim : now.dims)
    if (!dim.empty()) {
      std::vector<int8_t> all = std::exchange(dim, {});
      auto n = static_cast<double>(partsOf(small.groups, all));
      sum += linkSeconds(small.groups, all, CollectiveKind::all_gather, bytesOf(now) * (n - 1) / n);
    }
  return sum;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Axes of equal sizes and links have equal numbers.
static std::vector<int64_t> classesOf(const Mesh &mesh, const LinkModel &links) {
  std::map<std::vector<double>, int64_t> numbers;
  std::vector<int64_t> classes;
  for (size_t axis = 0; axis < mesh.shape.size(); ++axis) {
    std::vector<double> key{static_cast<double>(mesh.shape[axis])};
    auto add = [&](const Link &link) {
      key.push_back(link.alpha);
      key.push_back(link.rate);
    };
    if (axis < links.axes.size())
      add(links.axes[axis]);
    if (axis < links.levels.size())
      for (const LinkLevel &level : links.levels[axis]) {
        key.push_back(static_cast<double>(level.devices));
        add(level.link);
      }
    classes.push_back(numbers.try_emplace(key, static_cast<int64_t>(numbers.size())).first->second);
  }
  return classes;
}

ReshardTable::ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
                           ReshardPlanner &planner)
    : mesh(mesh), shape(std::move(shape)), bytesPerElement(bytesPerElement), planner(planner),
      links(planner.linksOf(mesh)), classOf(classesOf(mesh, links)) {}
ReshardTable::~ReshardTable() = default;

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
  if (!stateOf(source, a) || !stateOf(target, b))
    return planner.plan({mesh, shape, bytesPerElement, source, target}).seconds;
  Small small = makeSmall(std::move(a), std::move(b));
  double direct = directSeconds(small);
  if (direct == 0 || isHurried || small.groups.size() > kMostGroups ||
      std::ssize(shape) > kMostDims)
    return direct;
  std::vector<int64_t> key = small.shape;
  for (const std::vector<int8_t> &group : small.groups) {
    key.push_back(-1);
    for (int8_t axis : group)
      key.push_back(classOf[axis]);
  }
  std::unique_ptr<Space> &space = spaces[key];
  if (!space)
    space = std::make_unique<Space>(*this, small);
  return std::min(direct, space->seconds(small.source, small.target));
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

} // namespace tessera::sharding
