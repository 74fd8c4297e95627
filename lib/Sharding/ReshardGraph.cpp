//===- ReshardGraph.cpp - What moves between placements send ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardGraph.h"

#include "tessera/Sharding/Buffers.h"

#include <algorithm>
#include <numeric>

namespace tessera::sharding {

bool ReshardGraph::endsMeet(const TensorSharding &a, const TensorSharding &b) const {
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t coarse = sizeOf(a.dims[d]), fine = sizeOf(b.dims[d]);
    if (coarse == fine)
      continue;
    if (coarse > fine)
      std::swap(coarse, fine);
    int64_t whole = ceilDiv(shape[d], coarse), part = ceilDiv(shape[d], fine);
    // The first coarse part begins where the first fine one does, the second one, if it has an
    // index, only where fine parts fill the first.
    if (whole < shape[d] && whole != fine / coarse * part)
      return false;
  }
  return true;
}

bool ReshardGraph::isPermutation(const Move &move) const {
  Layout source = makeLayout(move.source, shape), target = makeLayout(move.target, shape);
  MeshLayouts used = withoutIdleAxes(mesh, {&source, &target});
  Redistribution boxes = redistribute(used.mesh, used.layouts[0], used.mesh, used.layouts[1]);
  std::vector<int64_t> sends(used.mesh.numDevices());
  for (const Piece &piece : boxes.pieces)
    for (int64_t device : piece.targets)
      if (device != piece.sources.front())
        if (++sends[piece.sources.front()] > 1)
          return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

namespace {

/// How a dimension is cut before and after a move, in the indices of what is moved.
struct Cut {
  DimLayout had, wants;
  int64_t extent; ///< of what is moved
  int64_t chunk;  ///< of the parts before

  std::pair<int64_t, int64_t> rangeOf(const DimLayout &dim, int64_t part) const {
    auto [first, last] = dim.span(part);
    int64_t begin = std::max<int64_t>(0, first);
    return {begin, std::max(begin, std::min(extent, last))};
  }
  /// Of parts that do not overlap, how many have something of [begin, end).
  int64_t partsIn(int64_t begin, int64_t end) const {
    if (begin >= end)
      return 0;
    int64_t first = had.begin + begin * had.stride, last = had.begin + (end - 1) * had.stride;
    return last / chunk - first / chunk + 1;
  }
};

} // namespace

static std::vector<Cut> cutsOf(const TensorSharding &from, const TensorSharding &to,
                               const std::vector<int64_t> &shape) {
  Layout wants = makeLayout(to, shape), had = selectLike(makeLayout(from, shape), wants);
  std::vector<Cut> cuts;
  for (size_t d = 0; d < shape.size(); ++d)
    cuts.push_back({had.dims[d], wants.dims[d], wants.globalShape[d],
                    std::max<int64_t>(1, ceilDiv(shape[d], sizeOf(from.dims[d])))});
  return cuts;
}

/// The buffers under a sharding, and the largest number of valid elements in one.
static std::pair<std::vector<int64_t>, int64_t> buffersOf(const TensorSharding &sharding,
                                                          const std::vector<int64_t> &shape) {
  if (!sharding.windows.empty()) {
    Layout layout = makeLayout(sharding, shape);
    return {layout.localShape(), layout.maxValidElements()};
  }
  std::pair<std::vector<int64_t>, int64_t> result{shape, 1};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!sharding.dims[d].empty())
      result.first[d] = ceilDiv(shape[d], sizeOf(sharding.dims[d]));
    result.second *= result.first[d];
  }
  return result;
}

bool ReshardGraph::isEven(const TensorSharding &sharding) const {
  if (!sharding.windows.empty())
    return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] % sizeOf(sharding.dims[d]) != 0)
      return false;
  return true;
}

/// Dimensions that have an axis in common, directly or by way of others, are looked at together;
/// what differs in others is independent. So a gather takes time with the devices along one
/// dimension, and not with all of them.
std::vector<ReshardGraph::Overlap> ReshardGraph::overlaps(const TensorSharding &from,
                                                          const TensorSharding &to) const {
  std::vector<Overlap> all{{}};
  const std::vector<Cut> allCuts = cutsOf(from, to, shape);
  int64_t looked = 1; // devices along the axes that were looked at
  std::vector<char> isDone(shape.size());
  for (size_t first = 0; first < shape.size(); ++first) {
    if (isDone[first])
      continue;
    std::vector<size_t> dims{first};
    std::vector<int64_t> axes; // of the mesh
    isDone[first] = 1;
    for (size_t next = 0; next < dims.size(); ++next)
      for (const TensorSharding *sharding : {&from, &to})
        for (const AxisRef &axis : sharding->dims[dims[next]]) {
          if (std::find(axes.begin(), axes.end(), axis.axis) != axes.end())
            continue;
          axes.push_back(axis.axis);
          for (size_t d = 0; d < shape.size(); ++d)
            for (const TensorSharding *other : {&from, &to})
              for (const AxisRef &its : other->dims[d])
                if (its.axis == axis.axis && !isDone[d]) {
                  dims.push_back(d);
                  isDone[d] = 1;
                }
        }
    int64_t devices = 1;
    for (int64_t axis : axes)
      devices *= mesh.shape[axis];
    looked *= devices;
    std::vector<Overlap> own;
    std::vector<int64_t> coordinate(mesh.shape.size(), 0);
    for (int64_t n = 0; n < devices; ++n) {
      int64_t rest = n;
      for (int64_t axis : axes) {
        coordinate[axis] = rest % mesh.shape[axis];
        rest /= mesh.shape[axis];
      }
      Overlap here;
      for (size_t d : dims) {
        const Cut &cut = allCuts[d];
        auto [heldFrom, heldTo] = cut.rangeOf(cut.had, linearIndex(mesh, cut.had.axes, coordinate));
        auto [begin, end] = cut.rangeOf(cut.wants, linearIndex(mesh, cut.wants.axes, coordinate));
        here.wanted *= end - begin;
        here.held *= heldTo - heldFrom;
        here.both *= std::max<int64_t>(0, std::min(end, heldTo) - std::max(begin, heldFrom));
        here.parts *= from.windows.empty() ? cut.partsIn(begin, end) : 1;
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

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

Traffic ReshardGraph::trafficOf(const Move &move) const {
  if (!isByBoxes(move.kind))
    return leastTrafficOf(move);
  return sharding::trafficOf(move.kind, mesh.numDevices(), bytesPerElement, mesh,
                             makeLayout(move.source, shape), mesh, makeLayout(move.target, shape));
}

Traffic ReshardGraph::leastTrafficOf(const Move &move) const {
  auto [had, operand] = buffersOf(move.source, shape);
  auto [has, result] = buffersOf(move.target, shape);
  Buffers buffers{bytesPerElement,
                  operand,
                  result,
                  0,
                  had,
                  has,
                  move.target.partial.size() > move.source.partial.size()};
  if (!isByBoxes(move.kind)) {
    if (move.kind == CollectiveKind::all_gather) {
      buffers.gathered = buffers.result - buffers.operand;
      if (!isEven(move.source) || !isEven(move.target)) {
        buffers.gathered = 0;
        for (const Overlap &overlap : overlaps(move.source, move.target))
          buffers.gathered = std::max(buffers.gathered, overlap.wanted - overlap.held);
      }
    }
    int64_t group = move.axes.empty() ? mesh.numDevices() : sizeOf(move.axes);
    return sharding::trafficOf(move.kind, group, buffers);
  }
  Traffic least{0, 0, 1, 1};
  if (move.target.partial != move.source.partial)
    return least; // contributions are sent as well
  int64_t held = std::max<int64_t>(1, buffers.operand), most = 0, messages = 0;
  for (const Overlap &overlap : overlaps(move.source, move.target)) {
    int64_t lacking = overlap.wanted - overlap.both;
    most = std::max(most, lacking);
    int64_t others = overlap.parts - (overlap.both > 0 ? 1 : 0);
    if (lacking > 0)
      messages += overlap.devices * std::max(ceilDiv(lacking, held), others);
  }
  least.wireBytes = most * bytesPerElement;
  least.count = most > 0 ? 1 : 0;
  least.setCopies(move.kind, bytesPerElement, had, has);
  least.messages = ceilDiv(messages, mesh.numDevices());
  return least;
}

} // namespace tessera::sharding
