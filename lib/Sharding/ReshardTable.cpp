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
constexpr int8_t kMostGroups = 8;
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
  Space(const ReshardTable &table, std::vector<int64_t> shape,
        std::vector<std::vector<int8_t>> groups)
      : table(table), shape(std::move(shape)), groups(std::move(groups)) {}

  double seconds(Code source, Code target, bool isHurried);

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

  double shortest(Code source, Code target);
  double directSeconds(Code source) const;
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
  std::unordered_map<int32_t, Run> runs; ///< by source
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

double ReshardTable::Space::seconds(Code source, Code target, bool isHurried) {
  double found = isHurried ? std::numeric_limits<double>::infinity() : shortest(source, target);
  return std::isfinite(found) ? found : directSeconds(source);
}

/// Infinite where no path is found, or none soon enough.
double ReshardTable::Space::shortest(Code source, Code target) {
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

//===----------------------------------------------------------------------===//
// Small reshards
//===----------------------------------------------------------------------===//

/// What both begin with stays, and axes that stay beside each other are one. The signature has what
/// a shape and groups depend on.
ReshardTable::Small ReshardTable::makeSmall(const Lies &a, const Lies &b) const {
  Small small;
  auto numAxes = static_cast<int8_t>(mesh.numAxes());
  constexpr int8_t none = -1;
  small.groupOf.fill(none);
  small.staysIn.fill(none);
  // Axes that both have at the same place behind others that stay.
  std::array<int8_t, kMostDims> stays = {};
  for (int8_t at = 0; at < numAxes; ++at)
    for (int8_t axis = 0; axis < numAxes; ++axis)
      if (int8_t dim = a.dim[axis]; dim >= 0 && dim == b.dim[axis] && a.at[axis] == at &&
                                    b.at[axis] == at && stays[dim] == at) {
        ++stays[dim];
        small.staysIn[axis] = dim;
      }
  auto isGone = [&](int8_t axis) {
    return small.staysIn[axis] >= 0 || (a.dim[axis] < 0 && a.dim[axis] == b.dim[axis]);
  };
  // Places without what stays.
  auto placeIn = [&](const Lies &lies, int8_t axis) {
    return lies.dim[axis] < 0 ? int8_t(0)
                              : static_cast<int8_t>(lies.at[axis] - stays[lies.dim[axis]]);
  };
  auto follows = [&](const Lies &lies, int8_t axis, int8_t before) {
    return lies.dim[axis] == lies.dim[before] &&
           (lies.dim[axis] < 0 || lies.at[axis] == lies.at[before] + 1);
  };
  // Source dimensions, then the rest by target: the next axis joins the group of the one before.
  std::array<int8_t, kMostAxes> &order = small.order;
  order.fill(none);
  int8_t count = 0;
  for (int8_t axis = 0; axis < numAxes; ++axis)
    if (!isGone(axis))
      order[count++] = axis;
  std::sort(order.begin(), order.begin() + count, [&](int8_t x, int8_t y) {
    auto key = [&](int8_t axis) {
      bool isCut = a.dim[axis] >= 0;
      return std::make_tuple(!isCut, a.dim[axis], isCut ? a.at[axis] : int8_t(0), b.dim[axis],
                             b.at[axis], axis);
    };
    return key(x) < key(y);
  });
  for (int8_t n = 0; n < count; ++n) {
    int8_t axis = order[n];
    bool joins = n > 0 && follows(a, axis, order[n - 1]) && follows(b, axis, order[n - 1]);
    small.numGroups += !joins;
    small.groupOf[axis] = static_cast<int8_t>(small.numGroups - 1);
    if (!joins)
      small.first[small.numGroups - 1] = axis;
  }
  // A group's place counts groups.
  auto codesOf = [&](const Lies &lies) {
    Code code = 0;
    for (int8_t group = 0; group < std::min<int8_t>(small.numGroups, kMostGroups); ++group) {
      int8_t axis = small.first[group], dim = lies.dim[axis];
      size_t place = 0;
      for (int8_t other = 0; dim >= 0 && other < small.numGroups; ++other)
        place += lies.dim[small.first[other]] == dim &&
                 placeIn(lies, small.first[other]) < placeIn(lies, axis);
      uint8_t own = dim >= 0 ? codeOf(dim, place) : dim == Lies::partial ? kIsPartial : kIsWhole;
      code |= static_cast<Code>(own) << (8 * group);
    }
    return code;
  };
  small.source = codesOf(a);
  small.target = codesOf(b);
  return small;
}

/// The shape of a part, and the groups' mesh axes.
std::pair<std::vector<int64_t>, std::vector<std::vector<int8_t>>>
ReshardTable::partsOf(const Small &small) const {
  std::vector<int64_t> parts(shape.size(), 1);
  std::vector<std::vector<int8_t>> groups(small.numGroups);
  for (int8_t axis = 0; axis < mesh.numAxes(); ++axis)
    if (int8_t dim = small.staysIn[axis]; dim >= 0)
      parts[dim] *= mesh.shape[axis];
  // Within a group the order is the source's or the target's, which agree where they have one.
  for (int8_t axis : small.order)
    if (axis >= 0)
      groups[small.groupOf[axis]].push_back(axis);
  std::vector<int64_t> local;
  for (size_t d = 0; d < shape.size(); ++d)
    local.push_back(ceilDiv(shape[d], parts[d]));
  return {std::move(local), std::move(groups)};
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
double ReshardTable::Space::directSeconds(Code source) const {
  State now = decode(source);
  double sum = 0;
  if (!now.partial.empty()) {
    auto n = static_cast<double>(table.partsOf(groups, now.partial));
    sum += table.linkSeconds(groups, now.partial, CollectiveKind::all_reduce,
                             2 * localBytes(now) * (n - 1) / n);
  }
  for (std::vector<int8_t> &dim : now.dims)
    if (!dim.empty()) {
      std::vector<int8_t> all = std::exchange(dim, {});
      auto n = static_cast<double>(table.partsOf(groups, all));
      sum +=
          table.linkSeconds(groups, all, CollectiveKind::all_gather, localBytes(now) * (n - 1) / n);
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
  // Contributions of two kinds are two states to the planner, one here.
  bool isMixed = source.isPartial() && target.isPartial() &&
                 source.partial.front().kind != target.partial.front().kind;
  if (isMixed) {
    // One kind is reduced before contributions of the other are made, locally.
    TensorSharding whole = target.withoutPartial();
    return seconds(source, whole) + seconds(whole, target);
  }
  Lies a, b;
  if (!readLies(source, a) || !readLies(target, b))
    return planner.plan({mesh, shape, bytesPerElement, source, target}).seconds;
  return plainSeconds(a, b);
}

double ReshardTable::plainSeconds(const Lies &a, const Lies &b) {
  Small small = makeSmall(a, b);
  // Where nothing is gathered or added up, devices cut what they have.
  bool isCut = true;
  for (int8_t group = 0; group < small.numGroups; ++group)
    isCut &= a.dim[small.first[group]] == Lies::whole;
  if (isCut)
    return 0;
  if (small.numGroups > kMostGroups)
    return gatherSeconds(a);
  Space *&space = bySignature[{small.groupOf, small.staysIn}];
  if (!space) {
    auto [local, groups] = partsOf(small);
    std::vector<int64_t> key = local;
    for (const std::vector<int8_t> &group : groups) {
      key.push_back(-1);
      for (int8_t axis : group)
        key.push_back(classOf[axis]);
    }
    std::unique_ptr<Space> &own = spaces[key];
    if (!own)
      own = std::make_unique<Space>(*this, std::move(local), std::move(groups));
    space = own.get();
  }
  return space->seconds(small.source, small.target, isHurried);
}

/// Everything is reduced and gathered.
double ReshardTable::gatherSeconds(const Lies &source) const {
  auto local = static_cast<double>(bytesPerElement), whole = local;
  std::vector<int64_t> parts(shape.size(), 1);
  std::vector<std::vector<int8_t>> partial(1), cut(1);
  for (int8_t axis = 0; axis < mesh.numAxes(); ++axis)
    if (source.dim[axis] != Lies::whole) {
      (source.dim[axis] == Lies::partial ? partial : cut)[0].push_back(axis);
      if (source.dim[axis] >= 0)
        parts[source.dim[axis]] *= mesh.shape[axis];
    }
  for (size_t d = 0; d < shape.size(); ++d) {
    local *= static_cast<double>(ceilDiv(shape[d], parts[d]));
    whole *= static_cast<double>(shape[d]);
  }
  auto n = static_cast<double>(partsOf(partial, {0})), m = static_cast<double>(partsOf(cut, {0}));
  double sum = 0;
  if (n > 1)
    sum += linkSeconds(partial, {0}, CollectiveKind::all_reduce, 2 * local * (n - 1) / n);
  if (m > 1)
    sum += linkSeconds(cut, {0}, CollectiveKind::all_gather, whole * (m - 1) / m);
  return sum;
}

std::vector<double> ReshardTable::seconds(const std::vector<TensorSharding> &sources,
                                          const std::vector<TensorSharding> &targets) {
  auto numbersOf = [&](const std::vector<TensorSharding> &shardings) {
    std::vector<size_t> result;
    for (const TensorSharding &sharding : shardings)
      result.push_back(numbers.try_emplace(sharding, numbers.size()).first->second);
    return result;
  };
  std::vector<size_t> rows = numbersOf(sources), columns = numbersOf(targets);
  known.resize(numbers.size());
  std::vector<double> result;
  result.reserve(rows.size() * columns.size());
  for (size_t s = 0; s < rows.size(); ++s) {
    std::vector<double> &row = known[rows[s]];
    row.resize(numbers.size(), std::numeric_limits<double>::quiet_NaN());
    for (size_t t = 0; t < columns.size(); ++t) {
      double &value = row[columns[t]];
      if (std::isnan(value))
        value = seconds(sources[s], targets[t]);
      result.push_back(value);
    }
  }
  return result;
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

/// Fails for windows, parts of axes, and more axes or dimensions than there is room for.
bool ReshardTable::readLies(const TensorSharding &sharding, Lies &lies) const {
  lies.dim.fill(Lies::whole);
  lies.at.fill(0);
  if (!sharding.windows.empty() || !sharding.open.empty() ||
      mesh.numAxes() > static_cast<int64_t>(kMostAxes) || shape.size() > kMostDims)
    return false;
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    for (size_t at = 0; at < sharding.dims[d].size(); ++at) {
      const AxisRef &axis = sharding.dims[d][at];
      if (!axis.isFull(mesh))
        return false;
      lies.dim[axis.axis] = static_cast<int8_t>(d);
      lies.at[axis.axis] = static_cast<int8_t>(at);
    }
  for (const PartialAxis &partial : sharding.partial) {
    if (!partial.axis.isFull(mesh) || partial.kind != sharding.partial.front().kind)
      return false;
    lies.dim[partial.axis.axis] = Lies::partial;
  }
  return true;
}

} // namespace tessera::sharding
