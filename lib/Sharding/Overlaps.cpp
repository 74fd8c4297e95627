//===- Overlaps.cpp - Held and needed elements of a tensor ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Overlaps.h"

#include <algorithm>
#include <optional>

namespace tessera::sharding {

namespace {

/// How a dimension is cut before and after a move, in indices of the moved elements.
struct Cut {
  DimLayout had, wants;
  int64_t extent; ///< of the moved elements
  int64_t chunk;  ///< of the parts before the move

  std::pair<int64_t, int64_t> rangeOf(const DimLayout &dim, int64_t part) const {
    auto [first, last] = dim.span(part);
    int64_t begin = std::max<int64_t>(0, first);
    return {begin, std::max(begin, std::min(extent, last))};
  }
  /// The number of parts, if they do not overlap, that share elements with [begin, end).
  int64_t partsIn(int64_t begin, int64_t end) const {
    if (begin >= end)
      return 0;
    int64_t first = had.begin + begin * had.stride, last = had.begin + (end - 1) * had.stride;
    return last / chunk - first / chunk + 1;
  }
};

} // namespace

/// Whether the parts are plain shards: no windows, no selections.
static bool isPlain(const Layout &layout) {
  return std::all_of(layout.dims.begin(), layout.dims.end(), [](const DimLayout &dim) {
    return dim.offset == 0 && dim.length == dim.step && dim.divisor == 1 && dim.begin == 0 &&
           dim.stride == 1;
  });
}

/// The dimensions connected with `first` by common mesh axes, directly or indirectly, and their
/// axes. `isDone` marks them.
static std::pair<std::vector<size_t>, std::vector<int64_t>>
dependentDims(size_t first, const Layout &source, const Layout &target, std::vector<char> &isDone) {
  std::vector<size_t> dims{first};
  std::vector<int64_t> axes;
  isDone[first] = 1;
  for (size_t next = 0; next < dims.size(); ++next)
    for (const Layout *layout : {&source, &target})
      for (const AxisRef &axis : layout->dims[dims[next]].axes) {
        if (std::find(axes.begin(), axes.end(), axis.axis) != axes.end())
          continue;
        axes.push_back(axis.axis);
        for (size_t d = 0; d < source.dims.size(); ++d)
          for (const Layout *other : {&source, &target})
            for (const AxisRef &otherAxis : other->dims[d].axes)
              if (otherAxis.axis == axis.axis && !isDone[d]) {
                dims.push_back(d);
                isDone[d] = 1;
              }
      }
  return {std::move(dims), std::move(axes)};
}

/// The overlaps of the parts of one dimension, of which only one side is cut, or both alike: full
/// parts, a part that the extent fills in part, and empty ones. Nothing if it is cut otherwise.
static std::optional<std::vector<Overlap>> overlapsOfOneCut(const Cut &cut, int64_t devices) {
  const AxisList &axes = cut.had.axes.empty() ? cut.wants.axes : cut.had.axes;
  bool isOneCut = cut.had.axes.empty() || cut.wants.axes.empty() || cut.had == cut.wants;
  int64_t parts = sizeOf(axes), step = (cut.had.axes.empty() ? cut.wants : cut.had).step;
  if (!isOneCut || axes.empty() || step <= 0)
    return std::nullopt;
  int64_t full = std::min(parts, cut.extent / step);
  std::vector<Overlap> overlaps;
  for (auto [part, count] :
       {std::pair<int64_t, int64_t>{0, full}, {full, 1}, {full + 1, parts - full - 1}}) {
    if (count <= 0 || part >= parts)
      continue;
    auto [heldFrom, heldTo] = cut.rangeOf(cut.had, cut.had.axes.empty() ? 0 : part);
    auto [begin, end] = cut.rangeOf(cut.wants, cut.wants.axes.empty() ? 0 : part);
    overlaps.push_back({end - begin, heldTo - heldFrom,
                        std::max<int64_t>(0, std::min(end, heldTo) - std::max(begin, heldFrom)),
                        cut.partsIn(begin, end), count * (devices / parts)});
  }
  return overlaps;
}

/// Dimensions without common axes are independent, so the time depends on the devices along the
/// axes of the move, not on all devices of the mesh.
std::vector<Overlap> overlapsOf(const Mesh &mesh, const Layout &source, const Layout &target) {
  const Layout selected = selectLike(source, target);
  const bool plain = isPlain(source);
  std::vector<Overlap> all{{}};
  int64_t looked = 1; // devices along the axes visited
  std::vector<char> isDone(source.dims.size());
  for (size_t first = 0; first < source.dims.size(); ++first) {
    if (isDone[first])
      continue;
    auto [dims, axes] = dependentDims(first, source, target, isDone);
    std::vector<Cut> cuts;
    for (size_t d : dims)
      cuts.push_back({selected.dims[d], target.dims[d], target.globalShape[d],
                      std::max<int64_t>(1, source.dims[d].step)});
    int64_t devices = 1;
    for (int64_t axis : axes)
      devices *= mesh.shape[axis];
    looked *= devices;
    std::vector<Overlap> own;
    std::vector<int64_t> coordinate(mesh.shape.size(), 0);
    bool isPlainCut = plain && cuts.size() == 1 && isPlain(target);
    auto classes = isPlainCut ? overlapsOfOneCut(cuts.front(), devices) : std::nullopt;
    if (classes)
      own = std::move(*classes);
    for (int64_t n = 0; n < devices && !classes; ++n) {
      int64_t rest = n;
      for (int64_t axis : axes) {
        coordinate[axis] = rest % mesh.shape[axis];
        rest /= mesh.shape[axis];
      }
      Overlap here;
      for (const Cut &cut : cuts) {
        auto [heldFrom, heldTo] = cut.rangeOf(cut.had, linearIndex(mesh, cut.had.axes, coordinate));
        auto [begin, end] = cut.rangeOf(cut.wants, linearIndex(mesh, cut.wants.axes, coordinate));
        here.wanted *= end - begin;
        here.held *= heldTo - heldFrom;
        here.both *= std::max<int64_t>(0, std::min(end, heldTo) - std::max(begin, heldFrom));
        here.parts *= plain ? cut.partsIn(begin, end) : 1;
      }
      auto same = std::find_if(own.begin(), own.end(), [&](const Overlap &known) {
        return known.wanted == here.wanted && known.held == here.held && known.both == here.both &&
               known.parts == here.parts;
      });
      if (same == own.end())
        own.push_back(here);
      else
        ++same->devices;
    }
    std::vector<Overlap> joined;
    for (const Overlap &a : all)
      for (const Overlap &b : own)
        joined.push_back({a.wanted * b.wanted, a.held * b.held, a.both * b.both, a.parts * b.parts,
                          a.devices * b.devices});
    all = std::move(joined);
  }
  for (Overlap &overlap : all)
    overlap.devices *= mesh.numDevices() / looked;
  return all;
}

ExchangeSize exchangeSizeOf(const Mesh &mesh, const std::vector<Overlap> &overlaps, int64_t held) {
  ExchangeSize size;
  int64_t sent = 0, holders = 0, messages = 0;
  held = std::max<int64_t>(1, held);
  for (const Overlap &overlap : overlaps) {
    int64_t lacking = overlap.wanted - overlap.both;
    int64_t others = overlap.parts - (overlap.both > 0 ? 1 : 0);
    size.received = std::max(size.received, lacking);
    sent += lacking * overlap.devices;
    holders += overlap.held > 0 ? overlap.devices : 0;
    if (lacking > 0)
      messages += overlap.devices * std::max(ceilDiv(lacking, held), others);
  }
  size.elements = std::max(size.received, holders > 0 ? ceilDiv(sent, holders) : 0);
  size.messages = ceilDiv(messages, mesh.numDevices());
  return size;
}

} // namespace tessera::sharding
