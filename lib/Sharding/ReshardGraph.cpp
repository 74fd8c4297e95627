//===- ReshardGraph.cpp - Placements of a tensor, and moves ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReshardGraph.h"

#include "Overlaps.h"

#include "tessera/Sharding/Buffers.h"

#include <algorithm>
#include <numeric>

namespace tessera::sharding {

bool ReshardGraph::areAligned(const TensorSharding &a, const TensorSharding &b) const {
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t coarse = sizeOf(a.dims[d]), fine = sizeOf(b.dims[d]);
    if (coarse == fine)
      continue;
    if (coarse > fine)
      std::swap(coarse, fine);
    int64_t whole = ceilDiv(shape[d], coarse), part = ceilDiv(shape[d], fine);
    // The first coarse part begins with the first fine part; the second one, if it is not empty,
    // does only if fine parts fill the first.
    if (whole < shape[d] && whole != fine / coarse * part)
      return false;
  }
  return true;
}

bool ReshardGraph::isPermutation(const Move &move) const {
  if (mesh.numDevices() > kMostDevicesByBoxes)
    return false; // an exchange sends as much
  Layout source = makeLayout(move.source, shape), target = makeLayout(move.target, shape);
  MeshLayouts used = withoutIdleAxes(mesh, {&source, &target});
  for (const Overlap &overlap : overlapsOf(used.mesh, used.layouts[0], used.layouts[1]))
    if (overlap.parts > (overlap.both > 0 ? 2 : 1))
      return false;
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

std::vector<Overlap> ReshardGraph::overlaps(const TensorSharding &from,
                                            const TensorSharding &to) const {
  return overlapsOf(mesh, makeLayout(from, shape), makeLayout(to, shape));
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
  ExchangeSize size = exchangeSizeOf(mesh, overlaps(move.source, move.target), buffers.operand);
  least.wireBytes = size.received * bytesPerElement;
  least.count = size.received > 0 ? 1 : 0;
  least.setCopies(move.kind, bytesPerElement, had, has);
  least.messages = size.messages;
  return least;
}

} // namespace tessera::sharding
