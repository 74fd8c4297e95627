//===- ReshardTable.cpp - The times of all reshards of a tensor -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardTable.h"

#include "CanonicalReshard.h"
#include "ReshardSpace.h"

#include "tessera/Sharding/Selections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera::sharding {

//===----------------------------------------------------------------------===//
// Small reshards
//===----------------------------------------------------------------------===//

/// Drops the common prefixes and merges axes that stay neighbors. The signature determines the
/// shape and the groups.
ReshardTable::ReducedReshard ReshardTable::reduceReshard(const AxisPlaces &a,
                                                         const AxisPlaces &b) const {
  ReducedReshard reduced;
  auto numAxes = static_cast<int8_t>(mesh.numAxes());
  constexpr int8_t none = -1;
  reduced.groupOf.fill(none);
  reduced.staysIn.fill(none);
  // Axes at the same place in both, after other axes that stay.
  std::array<int8_t, kMostDims> stays = {};
  for (int8_t at = 0; at < numAxes; ++at)
    for (int8_t axis = 0; axis < numAxes; ++axis)
      if (int8_t dim = a.dim[axis]; dim >= 0 && dim == b.dim[axis] && a.at[axis] == at &&
                                    b.at[axis] == at && stays[dim] == at) {
        ++stays[dim];
        reduced.staysIn[axis] = dim;
      }
  auto isGone = [&](int8_t axis) {
    return reduced.staysIn[axis] >= 0 || (a.dim[axis] < 0 && a.dim[axis] == b.dim[axis]);
  };
  // Places without the axes that stay.
  auto placeIn = [&](const AxisPlaces &places, int8_t axis) {
    return places.dim[axis] < 0 ? int8_t(0)
                                : static_cast<int8_t>(places.at[axis] - stays[places.dim[axis]]);
  };
  auto follows = [&](const AxisPlaces &places, int8_t axis, int8_t before) {
    return places.dim[axis] == places.dim[before] &&
           (places.dim[axis] < 0 || places.at[axis] == places.at[before] + 1);
  };
  // Source dimensions, then the rest by target: an axis joins the group of its predecessor if it
  // follows it in both.
  std::array<int8_t, kMostAxes> &order = reduced.order;
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
    reduced.numGroups += !joins;
    reduced.groupOf[axis] = static_cast<int8_t>(reduced.numGroups - 1);
    if (!joins)
      reduced.first[reduced.numGroups - 1] = axis;
  }
  // Places count groups.
  auto codesOf = [&](const AxisPlaces &places) {
    ReshardSpace::Code code = 0;
    for (int8_t group = 0; group < std::min<int8_t>(reduced.numGroups, ReshardSpace::kMostGroups);
         ++group) {
      int8_t axis = reduced.first[group], dim = places.dim[axis];
      size_t place = 0;
      for (int8_t other = 0; dim >= 0 && other < reduced.numGroups; ++other)
        place += places.dim[reduced.first[other]] == dim &&
                 placeIn(places, reduced.first[other]) < placeIn(places, axis);
      uint8_t own = dim >= 0                     ? ReshardSpace::codeOf(dim, place)
                    : dim == AxisPlaces::partial ? ReshardSpace::kIsPartial
                                                 : ReshardSpace::kIsWhole;
      code |= static_cast<ReshardSpace::Code>(own) << (8 * group);
    }
    return code;
  };
  reduced.source = codesOf(a);
  reduced.target = codesOf(b);
  return reduced;
}

/// The dimensions without the axes that stay, and the groups' mesh axes. The axes that stay matter
/// if parts of a dimension are uneven.
std::pair<std::vector<PartDim>, std::vector<AxisList>>
ReshardTable::partsOf(const ReducedReshard &reduced) const {
  std::vector<PartDim> dims;
  for (int64_t extent : shape)
    dims.push_back({extent, 1});
  for (int8_t axis = 0; axis < mesh.numAxes(); ++axis)
    if (int8_t dim = reduced.staysIn[axis]; dim >= 0)
      dims[dim].parts *= mesh.shape[axis];
  for (PartDim &dim : dims)
    if (dim.extent % mesh.numDevices() == 0)
      dim = {dim.extent / dim.parts, 1};
  // Within a group axes have the order of the source or of the target, which agree if both have
  // one.
  std::vector<AxisList> groups(reduced.numGroups);
  for (int8_t axis : reduced.order)
    if (axis >= 0)
      groups[reduced.groupOf[axis]].push_back(AxisRef::full(mesh, axis));
  return {std::move(dims), std::move(groups)};
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Numbers axes such that equal numbers have equal sizes and links.
static std::vector<int64_t> classesOf(const Mesh &mesh, const LinkModel &links) {
  std::map<std::vector<double>, int64_t> numbers;
  std::vector<int64_t> classes;
  for (size_t axis = 0; axis < mesh.shape.size(); ++axis) {
    std::vector<double> key{static_cast<double>(mesh.shape[axis])};
    auto add = [&](const Link &link) {
      key.push_back(link.alpha);
      key.push_back(link.rate);
      CopyRates copies = link.copies.value_or(CopyRates());
      key.insert(key.end(), {copies.copy, copies.stridedCopy, copies.add, copies.stridedAdd});
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
                           ReshardPlanner &planner, const LinkModel &links)
    : mesh(mesh), shape(std::move(shape)), bytesPerElement(bytesPerElement), planner(planner),
      links(links), classOf(classesOf(mesh, links)),
      isEven(std::all_of(this->shape.begin(), this->shape.end(), [&](int64_t extent) {
        return extent % mesh.numDevices() == 0 || extent == 1;
      })) {}
ReshardTable::~ReshardTable() = default;

double ReshardTable::seconds(const TensorSharding &source, const TensorSharding &target,
                             bool isApproximate) {
  std::lock_guard lock(mutex);
  return price(source, target, isApproximate);
}

/// By the planner, once for all reshards of one form.
static double planSeconds(const ReshardProblem &problem, ReshardPlanner &planner,
                          const LinkModel &links) {
  if (!problem.source.windows.empty() || !problem.target.windows.empty() || links.countsCopies())
    return planner.plan(problem).seconds;
  CanonicalReshard form = canonicalReshard(problem, links);
  return form.scale * planner.plan(form.problem).seconds;
}

double ReshardTable::price(const TensorSharding &source, const TensorSharding &target,
                           bool isApproximate) {
  if (source == target || hasSelection(source, target))
    return 0;
  if (!target.windows.empty() && source.windows.empty())
    return windowSeconds(source, target, isApproximate);
  // Contributions of two kinds are two states to the planner, but one state here.
  bool isMixed = source.isPartial() && target.isPartial() &&
                 source.partial.front().kind != target.partial.front().kind;
  if (isMixed) {
    // One kind is reduced before contributions of the other are made locally.
    TensorSharding whole = target.withoutPartial();
    return price(source, whole, isApproximate) + price(whole, target, isApproximate);
  }
  AxisPlaces a, b;
  if (!readAxisPlaces(source, a) || !readAxisPlaces(target, b))
    return planSeconds({mesh, shape, bytesPerElement, source, target}, planner, links);
  return plainSeconds(source, a, b, isApproximate);
}

double ReshardTable::plainSeconds(const TensorSharding &source, const AxisPlaces &a,
                                  const AxisPlaces &b, bool isApproximate) {
  ReducedReshard reduced = reduceReshard(a, b);
  // If nothing is gathered or added up, devices cut their own elements. Uneven parts of parts may
  // be on other devices.
  bool isCut = isEven;
  for (int8_t group = 0; group < reduced.numGroups; ++group)
    isCut &= a.dim[reduced.first[group]] == AxisPlaces::whole;
  if (isCut && !links.countsCopies())
    return 0;
  if (reduced.numGroups > ReshardSpace::kMostGroups)
    return gatherSeconds(source);
  ReshardSpace *&space = bySignature[{reduced.groupOf, reduced.staysIn}];
  if (!space) {
    auto [dims, groups] = partsOf(reduced);
    std::vector<int64_t> key;
    for (const PartDim &dim : dims)
      key.insert(key.end(), {dim.extent, dim.parts});
    for (const AxisList &group : groups) {
      key.push_back(-1);
      for (const AxisRef &axis : group)
        key.push_back(classOf[axis.axis]);
    }
    std::unique_ptr<ReshardSpace> &own = spaces[key];
    if (!own)
      own = std::make_unique<ReshardSpace>(mesh, links, dims, bytesPerElement, std::move(groups));
    space = own.get();
  }
  return space->seconds(reduced.source, reduced.target, isApproximate);
}

/// Everything is reduced and gathered.
double ReshardTable::gatherSeconds(const TensorSharding &source) const {
  ReshardGraph graph(mesh, shape, bytesPerElement);
  Move reduce, gather;
  reduce.kind = CollectiveKind::all_reduce;
  reduce.axes = source.partialAxes();
  reduce.source = source;
  reduce.target = source.withoutPartial();
  gather.kind = CollectiveKind::all_gather;
  for (const AxisList &axes : source.dims)
    gather.axes.insert(gather.axes.end(), axes.begin(), axes.end());
  gather.source = reduce.target;
  gather.target = TensorSharding::replicated(source.rank());
  double sum = 0;
  for (const Move &move : {reduce, gather})
    if (!move.axes.empty())
      sum += links.seconds(mesh, move.axes, move.kind, graph.leastTrafficOf(move));
  return sum;
}

std::vector<double> ReshardTable::seconds(const std::vector<TensorSharding> &sources,
                                          const std::vector<TensorSharding> &targets,
                                          bool isApproximate) {
  std::lock_guard lock(mutex);
  auto numbersOf = [&](const std::vector<TensorSharding> &shardings) {
    std::vector<size_t> result;
    for (const TensorSharding &sharding : shardings)
      result.push_back(numbers.try_emplace(sharding, numbers.size()).first->second);
    return result;
  };
  std::vector<size_t> rows = numbersOf(sources), columns = numbersOf(targets);
  auto rowOf = [&](Rows &table, size_t source) -> std::vector<double> & {
    table.resize(std::max(table.size(), numbers.size()));
    table[source].resize(numbers.size(), std::numeric_limits<double>::quiet_NaN());
    return table[source];
  };
  std::vector<double> result;
  result.reserve(rows.size() * columns.size());
  for (size_t s = 0; s < rows.size(); ++s) {
    std::vector<double> &row = rowOf(known, rows[s]);
    std::vector<double> &prices = isApproximate ? rowOf(approximateRows, rows[s]) : row;
    for (size_t t = 0; t < columns.size(); ++t) {
      double value = row[columns[t]];
      if (std::isnan(value))
        value = prices[columns[t]];
      if (std::isnan(value))
        value = prices[columns[t]] = price(sources[s], targets[t], isApproximate);
      result.push_back(value);
    }
  }
  return result;
}

/// Whether a move only makes a selection whole on every device; then sets its dimension and axes to
/// those of the gather.
static bool gathersSelection(Move &move) {
  if (!move.source.windows.empty() || move.source.partial != move.target.partial)
    return false;
  AxisList gathered;
  for (size_t d = 0; d < move.source.dims.size(); ++d) {
    const AxisList &axes = move.source.dims[d];
    bool isSelected =
        std::any_of(move.target.windows.begin(), move.target.windows.end(),
                    [&](const Window &window) { return window.dim == static_cast<int64_t>(d); });
    if (isSelected ? !move.target.dims[d].empty() : move.target.dims[d] != axes)
      return false;
    if (isSelected && !axes.empty()) {
      gathered.insert(gathered.end(), axes.begin(), axes.end());
      move.dim = static_cast<int64_t>(d);
    }
  }
  if (gathered.empty())
    return false;
  move.axes = gathered;
  return true;
}

/// The extents of a part of the dimensions that a move leaves as they are cut, evenly, and of all
/// others; removes these cuts. Parts exchange alike, so one of them has the traffic of all.
std::vector<int64_t> ReshardTable::withinParts(TensorSharding &source,
                                               TensorSharding &target) const {
  std::vector<int64_t> extents = shape;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t parts = sizeOf(source.dims[d]);
    bool isRead = std::any_of(target.windows.begin(), target.windows.end(),
                              [&](const Window &w) { return w.dim == static_cast<int64_t>(d); });
    if (isRead || parts == 1 || source.dims[d] != target.dims[d] || extents[d] % parts != 0)
      continue;
    extents[d] /= parts;
    source.dims[d].clear();
    target.dims[d].clear();
  }
  return extents;
}

/// Moves to the shard inside the window, then receives the rest of the window: a halo, or all of a
/// window that does not follow the shards. For a selection, which has no such shard, devices
/// receive the elements that they lack.
double ReshardTable::windowSeconds(const TensorSharding &source, const TensorSharding &target,
                                   bool isApproximate) {
  if (std::any_of(target.windows.begin(), target.windows.end(),
                  [](const Window &window) { return window.isSelection(); })) {
    Move move;
    // Contributions that only the target has are made locally from the result.
    TensorSharding reduced = source;
    std::erase_if(reduced.partial, [&](const PartialAxis &part) {
      return std::find(target.partial.begin(), target.partial.end(), part) == target.partial.end();
    });
    double sum = reduced == source ? 0 : price(source, canonical(reduced), isApproximate);
    move.kind = CollectiveKind::exchange;
    move.source = canonical(reduced);
    move.target = target;
    std::vector<int64_t> extents = withinParts(move.source, move.target);
    ReshardGraph graph(mesh, extents, bytesPerElement);
    // One device may hold all of a selection and send to all others.
    bool isCounted = !isApproximate && mesh.numDevices() <= ReshardGraph::kMostDevicesByBoxes;
    Traffic traffic = isCounted ? graph.trafficOf(move) : graph.leastTrafficOf(move);
    for (const AxisList &axes : reduced.dims)
      move.axes.insert(move.axes.end(), axes.begin(), axes.end());
    double exchanged = links.seconds(mesh, mergeAxes(move.axes), move.kind, traffic);
    if (!gathersSelection(move))
      return sum + exchanged;
    move.kind = CollectiveKind::all_gather;
    double gathered = links.seconds(mesh, move.axes, move.kind, graph.leastTrafficOf(move));
    return sum + std::min(exchanged, gathered);
  }
  TensorSharding shard = target;
  shard.windows.clear();
  shard = canonical(shard);
  return price(source, shard, isApproximate) + haloSeconds(shard, target);
}

double ReshardTable::haloSeconds(const TensorSharding &shard, const TensorSharding &target) {
  auto [known, isNew] = halos.try_emplace(target, 0);
  if (!isNew)
    return known->second;
  ReshardGraph graph(mesh, shape, bytesPerElement);
  Move move;
  move.kind = CollectiveKind::halo_exchange;
  double sum = 0;
  for (const Window &window : target.windows) {
    move.axes = target.dims[window.dim];
    if (sizeOf(move.axes) == 1)
      continue;
    move.source = shard;
    move.target = shard;
    move.target.windows.push_back(window);
    Traffic traffic = graph.leastTrafficOf(move);
    traffic.messages = std::max<int64_t>(traffic.messages, 2); // a border on either side
    sum += links.seconds(mesh, move.axes, move.kind, traffic);
  }
  return known->second = sum;
}

/// Fails for windows, parts of axes, and more axes or dimensions than the encoding supports.
bool ReshardTable::readAxisPlaces(const TensorSharding &sharding, AxisPlaces &places) const {
  places.dim.fill(AxisPlaces::whole);
  places.at.fill(0);
  if (!sharding.windows.empty() || !sharding.open.empty() ||
      mesh.numAxes() > static_cast<int64_t>(kMostAxes) || shape.size() > kMostDims)
    return false;
  // An axis of one device cuts nothing, and its contribution is the value.
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    int8_t place = 0;
    for (const AxisRef &axis : sharding.dims[d]) {
      if (!axis.isFull(mesh))
        return false;
      if (axis.size == 1)
        continue;
      places.dim[axis.axis] = static_cast<int8_t>(d);
      places.at[axis.axis] = place++;
    }
  }
  for (const PartialAxis &partial : sharding.partial) {
    if (partial.axis.size == 1)
      continue;
    if (!partial.axis.isFull(mesh) || partial.kind != sharding.partial.front().kind)
      return false;
    places.dim[partial.axis.axis] = AxisPlaces::partial;
  }
  return true;
}

} // namespace tessera::sharding
