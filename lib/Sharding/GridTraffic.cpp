//===- GridTraffic.cpp - What devices send in an exchange -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some axes cut the source, so that a device's coordinates on them, c, say which part it
// holds; devices that differ in other coordinates, r, hold copies. A target takes a part
// from the holder with its own r (Redistributor::nearestOf). So a holder (c, r) sends
//
//   sum over c' other than c of (product over dimensions d of |part of c, wanted by (c', r)|)
//
// elements. Each axis cuts one dimension of the target at most, so that the sum of
// products is a product of sums, each over the coordinates c' that cut that dimension.
//
//===----------------------------------------------------------------------===//

#include "GridTraffic.h"

#include "AtomicParts.h"
#include "IndexWalk.h"

#include <algorithm>
#include <numeric>

namespace tessera::sharding {

namespace {

using Interval = std::pair<int64_t, int64_t>;

/// The valid intervals of a dimension, by the linear index over its axes.
std::vector<Interval> intervalsOf(const DimLayout &dim, int64_t extent) {
  std::vector<Interval> intervals;
  for (int64_t part = 0, count = sizeOf(dim.axes); part < count; ++part) {
    auto [first, last] = dim.span(part);
    int64_t begin = std::min(extent, std::max<int64_t>(0, first));
    intervals.emplace_back(begin, std::max(begin, std::min(extent, last)));
  }
  return intervals;
}

/// Whether intervals, the empty ones left out, lie one behind the other from 0 to the extent.
bool areTiles(const std::vector<Interval> &intervals, int64_t extent) {
  int64_t end = 0;
  for (auto [begin, last] : intervals) {
    if (begin == last)
      continue;
    if (begin != end)
      return false;
    end = last;
  }
  return end == extent;
}

/// One dimension: what a part has in common with all that targets want, by the part's index and the
/// index over the target's axes that do not cut the source.
struct Dimension {
  std::vector<Interval> held, wanted;
  std::vector<int64_t> copyOf; ///< by target index: the index over axes that do not cut the source
  int64_t copies = 1;
  std::vector<int64_t> elements, targets; ///< [part * copies + copy]

  void sum() {
    elements.assign(held.size() * copies, 0);
    targets.assign(held.size() * copies, 0);
    // Both lists ascend.
    size_t first = 0;
    for (size_t part = 0; part < held.size(); ++part) {
      auto [begin, end] = held[part];
      if (begin == end)
        continue;
      while (first < wanted.size() && wanted[first].second <= begin)
        ++first;
      for (size_t want = first; want < wanted.size() && wanted[want].first < end; ++want) {
        int64_t common = std::min(end, wanted[want].second) - std::max(begin, wanted[want].first);
        if (common <= 0)
          continue;
        elements[part * copies + copyOf[want]] += common;
        ++targets[part * copies + copyOf[want]];
      }
    }
  }
};

} // namespace

std::optional<ExchangeTraffic> gridTraffic(const Mesh &mesh, const Layout &whole,
                                           const Layout &target) {
  if (whole.partial != target.partial)
    return std::nullopt;
  const Layout source = selectLike(whole, target);
  const size_t rank = source.dims.size();
  AxisList cutting; // atomic axes that cut the source
  for (const AxisRef &part : atomicParts(mesh, {&source, &target}))
    for (const DimLayout &dim : source.dims)
      for (const AxisRef &axis : dim.axes)
        if (axis.overlaps(part)) {
          if (!axis.contains(part))
            return std::nullopt;
          cutting.push_back(part);
        }
  std::vector<Dimension> dims(rank);
  int64_t others = sizeOf(cutting); // coordinates on those that cut no dimension of the target
  for (size_t d = 0; d < rank; ++d) {
    Dimension &dim = dims[d];
    int64_t extent = target.globalShape[d];
    dim.held = intervalsOf(source.dims[d], extent);
    dim.wanted = intervalsOf(target.dims[d], extent);
    if (!areTiles(dim.held, extent) ||
        !std::is_sorted(dim.wanted.begin(), dim.wanted.end(),
                        [](const Interval &a, const Interval &b) { return a.first < b.first; }))
      return std::nullopt;
    // Digits of the target's index, last axis fastest, by the atomic axes that they consist of.
    dim.copyOf.assign(dim.wanted.size(), 0);
    int64_t stride = static_cast<int64_t>(dim.wanted.size());
    AxisList atoms;
    for (const AxisRef &axis : target.dims[d].axes) {
      int64_t begin = axis.pre;
      for (const AxisRef &part : atomicParts(mesh, {&source, &target}))
        if (axis.overlaps(part)) {
          if (!axis.contains(part) || part.pre != begin)
            return std::nullopt;
          begin *= part.size;
          atoms.push_back(part);
        }
    }
    for (const AxisRef &atom : atoms) {
      stride /= atom.size;
      if (overlapsAny(cutting, atom)) {
        others /= atom.size;
        continue;
      }
      for (size_t want = 0; want < dim.wanted.size(); ++want)
        dim.copyOf[want] =
            dim.copyOf[want] * atom.size + static_cast<int64_t>(want) / stride % atom.size;
      dim.copies *= atom.size;
    }
    dim.sum();
  }
  ExchangeTraffic traffic;
  std::vector<int64_t> axes(mesh.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<const AxisList *> lists;
  for (size_t d = 0; d < rank; ++d)
    lists.insert(lists.end(), {&source.dims[d].axes, &target.dims[d].axes});
  IndexWalk indices(mesh, axes, lists);
  do { // in the order of positions
    int64_t wanted = 1, own = 1, sent = others, targets = others;
    for (size_t d = 0; d < rank; ++d) {
      const Dimension &dim = dims[d];
      int64_t part = indices[2 * d], want = indices[2 * d + 1];
      auto [begin, end] = dim.wanted[want];
      auto [from, to] = dim.held[part];
      wanted *= end - begin;
      own *= std::max<int64_t>(0, std::min(end, to) - std::max(begin, from));
      sent *= dim.elements[part * dim.copies + dim.copyOf[want]];
      targets *= dim.targets[part * dim.copies + dim.copyOf[want]];
    }
    traffic.received.push_back(wanted - own);
    traffic.sent.push_back(sent - own);
    traffic.messages.push_back(targets - (own > 0 ? 1 : 0));
  } while (indices.next());
  return traffic;
}

} // namespace tessera::sharding
