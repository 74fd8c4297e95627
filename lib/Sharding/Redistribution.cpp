//===- Redistribution.cpp - Moves between two layouts, by pieces ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Redistribution.h"

#include "AtomicParts.h"
#include "Boxes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera::sharding {

namespace {

std::vector<int64_t> coordinatesIn(const Mesh &mesh, const AxisList &parts,
                                   const std::vector<int64_t> &coordinate) {
  std::vector<int64_t> result;
  for (const AxisRef &part : parts)
    result.push_back(coordinateIn(mesh, part, coordinate));
  return result;
}

/// A device of the source mesh as a possible holder.
struct Holder {
  int64_t position;
  std::vector<int64_t> coordinate;
  std::vector<int64_t> atomic;
  Box valid;
  /// This device and those with the other contributions, by index over the reduced axes.
  std::vector<int64_t> contributions;
};

class Redistributor {
public:
  Redistributor(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                const Layout &target)
      : sourceMesh(sourceMesh), source(source), targetMesh(targetMesh), target(target),
        sameMesh(sourceMesh == targetMesh) {}

  Redistribution run() {
    classifyPartials();
    collectHolders();
    for (int64_t position = 0; position < targetMesh.numDevices(); ++position)
      serve(position);
    for (auto &[key, targets] : pieces)
      result.pieces.push_back({key.first, key.second, targets});
    return std::move(result);
  }

private:
  void classifyPartials() {
    auto named = [](const std::vector<PartialAxis> &list, const PartialAxis &part) {
      return std::find(list.begin(), list.end(), part) != list.end();
    };
    for (const PartialAxis &part : source.partial) {
      if (sameMesh && named(target.partial, part)) {
        kept.push_back(part.axis);
        continue;
      }
      reduced.push_back(part.axis);
      if (part.kind == ReduceKind::avg)
        result.scale /= static_cast<double>(part.axis.size);
      if (part.kind != ReduceKind::avg)
        result.kind = part.kind;
    }
    for (const PartialAxis &part : target.partial) {
      if (sameMesh && named(source.partial, part))
        continue;
      result.fillKind = part.kind == ReduceKind::avg ? ReduceKind::sum : part.kind;
      bool cutsSource = sameMesh && std::any_of(source.dims.begin(), source.dims.end(),
                                                [&](const DimLayout &dim) {
                                                  return overlapsAny(dim.axes, part.axis);
                                                });
      if (cutsSource) {
        ownShard.push_back(part.axis);
        if (part.kind == ReduceKind::avg)
          result.scale *= static_cast<double>(part.axis.size);
      } else if (part.kind != ReduceKind::avg) {
        firstOnly.push_back(part.axis);
      }
    }
  }

  void collectHolders() {
    parts = atomicParts(sourceMesh, sameMesh ? std::vector<const Layout *>{&source, &target}
                                             : std::vector<const Layout *>{&source});
    int64_t groupSize = sizeOf(reduced);
    std::map<int64_t, std::vector<int64_t>> groupOfFirst;
    if (groupSize > 1)
      for (auto &group : deviceGroups(sourceMesh, reduced))
        groupOfFirst[group.front()] = group;
    for (int64_t position = 0; position < sourceMesh.numDevices(); ++position) {
      Holder holder{position, sourceMesh.coordinate(position), {}, {}, {position}};
      if (groupSize > 1) {
        auto it = groupOfFirst.find(position);
        if (it == groupOfFirst.end())
          continue; // the first of its group represents it
        holder.contributions = it->second;
      }
      holder.atomic = coordinatesIn(sourceMesh, parts, holder.coordinate);
      holder.valid = source.valid(sourceMesh, holder.coordinate);
      holders.push_back(std::move(holder));
    }
    for (const AxisRef &part : parts)
      isReduced.push_back(overlapsAny(reduced, part));
    for (const Holder &holder : holders)
      byPart[holder.valid].push_back(&holder);
    indexParts();
    if (sameMesh)
      indexHolders();
  }

  /// If the parts form a grid, indexes the intervals of each dimension in ascending order.
  void indexParts() {
    size_t rank = source.dims.size();
    std::vector<std::set<std::pair<int64_t, int64_t>>> distinct(rank);
    for (auto &[part, owners] : byPart)
      if (!part.empty())
        for (size_t d = 0; d < rank; ++d)
          distinct[d].insert({part.offset[d], part.offset[d] + part.size[d]});
    for (auto &spans : distinct) {
      for (auto it = spans.begin(); it != spans.end(); ++it)
        if (std::next(it) != spans.end() && std::next(it)->first < it->second)
          return; // windows overlap
      intervals.emplace_back(spans.begin(), spans.end());
    }
    isGrid = true;
  }

  /// The parts that share elements with `wanted`.
  std::vector<Box> partsIn(const Box &wanted) const {
    std::vector<Box> found{Box{}};
    for (size_t d = 0; d < intervals.size(); ++d) {
      std::vector<Box> longer;
      auto it =
          std::partition_point(intervals[d].begin(), intervals[d].end(), [&](const auto &interval) {
            return interval.second <= wanted.offset[d];
          });
      for (; it != intervals[d].end() && it->first < wanted.offset[d] + wanted.size[d]; ++it)
        for (const Box &box : found) {
          longer.push_back(box);
          longer.back().offset.push_back(it->first);
          longer.back().size.push_back(it->second - it->first);
        }
      found = std::move(longer);
    }
    return found;
  }

  /// Indexes holders by their coordinates in all atomic parts.
  void indexHolders() {
    int64_t count = 1;
    for (const AxisRef &part : parts)
      count *= part.size;
    byAtomic.assign(count, nullptr);
    for (const Holder &holder : holders)
      byAtomic[indexOf(holder.atomic)] = &holder;
    for (const AxisRef &part : parts) {
      bool cuts = false;
      for (const DimLayout &dim : source.dims)
        for (const AxisRef &axis : dim.axes)
          if (axis.overlaps(part)) {
            cuts = true;
            cutsWhole = cutsWhole && axis.contains(part);
          }
      isCutting.push_back(cuts);
    }
  }

  int64_t indexOf(const std::vector<int64_t> &atomic) const {
    int64_t index = 0;
    for (size_t i = 0; i < parts.size(); ++i)
      index = index * parts[i].size + atomic[i];
    return index;
  }

  /// The nearest of `owners`, which hold the same part and so have equal coordinates on the axes
  /// that cut the source: the one whose other coordinates are the target's.
  template <typename Predicate>
  const Holder *nearestOf(const std::vector<const Holder *> &owners, int64_t position,
                          const std::vector<int64_t> &atomic, const Predicate &isAllowed) const {
    if (sameMesh && cutsWhole) {
      std::vector<int64_t> wanted = owners.front()->atomic;
      for (size_t i = 0; i < parts.size(); ++i)
        if (!isCutting[i] && !isReduced[i])
          wanted[i] = atomic[i];
      const Holder *holder = byAtomic[indexOf(wanted)];
      if (holder && holder->valid == owners.front()->valid && isAllowed(*holder))
        return holder;
    }
    const Holder *nearest = nullptr;
    std::tuple<int64_t, int64_t, int64_t> least;
    for (const Holder *holder : owners)
      if (isAllowed(*holder))
        if (auto candidateDistance = distance(position, atomic, *holder);
            !nearest || candidateDistance < least) {
          nearest = holder;
          least = candidateDistance;
        }
    return nearest;
  }

  /// Smaller is nearer: the device itself, then few differing coordinates, then differences in fast
  /// axes.
  std::tuple<int64_t, int64_t, int64_t> distance(int64_t targetPosition,
                                                 const std::vector<int64_t> &targetAtomic,
                                                 const Holder &holder) const {
    if (!sameMesh) {
      bool self = targetMesh.processIds[targetPosition] == sourceMesh.processIds[holder.position];
      int64_t n = sourceMesh.numDevices();
      return {self ? 0 : 1, 0, ((holder.position - targetPosition) % n + n) % n};
    }
    int64_t differing = 0, first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (isReduced[i] || holder.atomic[i] == targetAtomic[i])
        continue;
      if (differing++ == 0)
        first = -static_cast<int64_t>(i);
    }
    int64_t n = sourceMesh.numDevices();
    return {differing, first, ((holder.position - targetPosition) % n + n) % n};
  }

  /// If parts are equal or disjoint, takes each needed part from its nearest holder. False if
  /// windows overlap, or if needed elements remain.
  template <typename Predicate>
  bool takeWholeParts(int64_t position, const Box &wanted, const std::vector<int64_t> &atomic,
                      const Predicate &isAllowed) {
    if (!isGrid || std::any_of(source.dims.begin(), source.dims.end(), [](const DimLayout &dim) {
          return !dim.axes.empty() && (dim.offset != 0 || dim.length > dim.step);
        }))
      return false;
    std::vector<std::pair<Box, const Holder *>> found;
    int64_t elements = 0;
    for (const Box &part : partsIn(wanted)) {
      auto owners = byPart.find(part);
      if (owners == byPart.end())
        continue;
      const Holder *nearest = nearestOf(owners->second, position, atomic, isAllowed);
      if (!nearest)
        return false;
      found.emplace_back(intersect(part, wanted), nearest);
      elements += found.back().first.numElements();
    }
    if (elements != wanted.numElements())
      return false;
    for (auto &[box, holder] : found)
      pieces[{std::move(box), holder->contributions}].push_back(position);
    return true;
  }

  void serve(int64_t position) {
    std::vector<int64_t> coordinate = targetMesh.coordinate(position);
    Box wanted = target.valid(targetMesh, coordinate);
    if (wanted.empty())
      return;
    for (const AxisRef &axis : firstOnly)
      if (coordinateIn(targetMesh, axis, coordinate) != 0) {
        result.fills.emplace_back(position, wanted);
        return;
      }
    std::vector<int64_t> atomic;
    if (sameMesh)
      atomic = coordinatesIn(sourceMesh, parts, coordinate);

    // Elements that a device holds itself are not received.
    if (sameMesh && reduced.empty() && holders[position].valid.contains(wanted)) {
      pieces[{wanted, {position}}].push_back(position);
      return;
    }

    auto isAllowed = [&](const Holder &holder) {
      auto agrees = [&](const AxisRef &axis) {
        return coordinateIn(sourceMesh, axis, holder.coordinate) ==
               coordinateIn(targetMesh, axis, coordinate);
      };
      return std::all_of(kept.begin(), kept.end(), agrees) &&
             std::all_of(ownShard.begin(), ownShard.end(), agrees);
    };
    if (takeWholeParts(position, wanted, atomic, isAllowed))
      return;
    std::vector<std::pair<std::tuple<int64_t, int64_t, int64_t>, const Holder *>> candidates;
    for (const Holder &holder : holders)
      if (intersects(holder.valid, wanted) && isAllowed(holder))
        candidates.emplace_back(distance(position, atomic, holder), &holder);
    std::sort(candidates.begin(), candidates.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });

    std::vector<Box> missing{wanted};
    for (auto &[key, holder] : candidates) {
      std::vector<Box> rest;
      for (const Box &box : missing) {
        if (!intersects(box, holder->valid)) {
          rest.push_back(box);
          continue;
        }
        Box found = intersect(box, holder->valid);
        pieces[{found, holder->contributions}].push_back(position);
        for (Box &piece : subtract(box, found))
          rest.push_back(std::move(piece));
      }
      missing = std::move(rest);
      if (missing.empty())
        return;
    }
    // Remaining elements belong to a partial made from shards: other devices contribute them.
    for (Box &box : missing)
      result.fills.emplace_back(position, std::move(box));
  }

  const Mesh &sourceMesh;
  const Layout &source;
  const Mesh &targetMesh;
  const Layout &target;
  const bool sameMesh;

  AxisList reduced;   ///< partial in the source, not in the target
  AxisList kept;      ///< partial in both
  AxisList ownShard;  ///< made partial and cut the source: each device keeps its shard
  AxisList firstOnly; ///< made partial, source replicated: coordinate 0 keeps the value
  AxisList parts;
  std::vector<bool> isReduced; ///< by atomic part
  std::vector<Holder> holders;
  std::map<Box, std::vector<const Holder *>> byPart;
  bool isGrid = false;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> intervals; ///< of a grid, by dimension
  std::vector<const Holder *> byAtomic; ///< on one mesh; null: not the first of its group
  std::vector<bool> isCutting;          ///< by atomic part: whether it cuts the source
  bool cutsWhole = true; ///< no axis cuts the source in only a part of the atomic part
  std::map<std::pair<Box, std::vector<int64_t>>, std::vector<int64_t>> pieces;
  Redistribution result;
};

} // namespace

Redistribution redistribute(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                            const Layout &target) {
  return Redistributor(sourceMesh, selectLike(source, target), targetMesh, target).run();
}

MeshLayouts withoutIdleAxes(const Mesh &mesh, const std::vector<const Layout *> &layouts) {
  std::vector<int64_t> places(mesh.numAxes(), -1);
  auto use = [&](const AxisRef &axis) { places[axis.axis] = 0; };
  for (const Layout *layout : layouts) {
    for (const DimLayout &dim : layout->dims)
      std::for_each(dim.axes.begin(), dim.axes.end(), use);
    for (const PartialAxis &part : layout->partial)
      use(part.axis);
  }
  MeshLayouts result;
  int64_t devices = 1;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
    if (places[axis] == 0) {
      places[axis] = result.mesh.numAxes();
      result.mesh.shape.push_back(mesh.shape[axis]);
      result.mesh.axisNames.push_back(mesh.axisNames[axis]);
      devices *= mesh.shape[axis];
    }
  result.mesh.processIds = DeviceIds::range(devices);
  for (const Layout *layout : layouts) {
    Layout &own = result.layouts.emplace_back(*layout);
    for (DimLayout &dim : own.dims)
      for (AxisRef &axis : dim.axes)
        axis.axis = places[axis.axis];
    for (PartialAxis &part : own.partial)
      part.axis.axis = places[part.axis.axis];
  }
  return result;
}

int64_t ExchangeTraffic::busiest() const {
  int64_t most = 0;
  for (int64_t elements : received)
    most = std::max(most, elements);
  for (int64_t elements : sent)
    most = std::max(most, elements);
  return most;
}

int64_t ExchangeTraffic::busiestMessages() const {
  return messages.empty() ? 0 : *std::max_element(messages.begin(), messages.end());
}

ExchangeTraffic exchangeTraffic(const Mesh &sourceMesh, const Mesh &targetMesh,
                                const Redistribution &move) {
  ExchangeTraffic traffic{std::vector<int64_t>(targetMesh.numDevices()),
                          std::vector<int64_t>(sourceMesh.numDevices()),
                          std::vector<int64_t>(sourceMesh.numDevices())};
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const Piece &piece : move.pieces)
    for (int64_t target : piece.targets)
      for (int64_t source : piece.sources) {
        if (sourceMesh.processIds[source] == targetMesh.processIds[target])
          continue;
        traffic.received[target] += piece.box.numElements();
        traffic.sent[source] += piece.box.numElements();
        pairs.insert({source, target});
      }
  for (auto &[source, target] : pairs)
    ++traffic.messages[source];
  return traffic;
}

int64_t receiveBound(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                     const Layout &target) {
  if (sourceMesh == targetMesh)
    if (MeshLayouts used = withoutIdleAxes(sourceMesh, {&source, &target});
        used.mesh.numAxes() < sourceMesh.numAxes())
      return receiveBound(used.mesh, used.layouts[0], used.mesh, used.layouts[1]);
  Redistribution move = redistribute(sourceMesh, source, targetMesh, target);
  std::vector<int64_t> lacking(targetMesh.numDevices());
  for (const Piece &piece : move.pieces)
    for (int64_t device : piece.targets) {
      bool held = piece.sources.size() == 1 &&
                  sourceMesh.processIds[piece.sources[0]] == targetMesh.processIds[device];
      if (!held)
        lacking[device] += piece.box.numElements();
    }
  return lacking.empty() ? 0 : *std::max_element(lacking.begin(), lacking.end());
}

} // namespace tessera::sharding
