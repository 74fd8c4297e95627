//===- Layout.cpp - Which elements a device holds --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Layout.h"

#include <algorithm>

namespace tessera::sharding {

int64_t Box::numElements() const {
  int64_t count = 1;
  for (int64_t extent : size)
    count *= extent;
  return count;
}

bool Box::contains(const Box &other) const {
  return other.empty() || intersect(*this, other) == other;
}

Box intersect(const Box &a, const Box &b) {
  Box result = a;
  for (size_t d = 0; d < a.offset.size(); ++d) {
    int64_t begin = std::max(a.offset[d], b.offset[d]);
    int64_t end = std::min(a.offset[d] + a.size[d], b.offset[d] + b.size[d]);
    result.offset[d] = begin;
    result.size[d] = std::max<int64_t>(0, end - begin);
  }
  return result;
}

std::vector<Box> subtract(const Box &box, const Box &hole) {
  Box common = intersect(box, hole);
  if (box.empty())
    return {};
  if (common.empty())
    return {box};
  std::vector<Box> result;
  Box rest = box;
  for (size_t d = 0; d < box.offset.size(); ++d) {
    int64_t before = common.offset[d] - rest.offset[d];
    int64_t after = rest.offset[d] + rest.size[d] - (common.offset[d] + common.size[d]);
    if (before > 0) {
      Box piece = rest;
      piece.size[d] = before;
      result.push_back(std::move(piece));
    }
    if (after > 0) {
      Box piece = rest;
      piece.offset[d] = common.offset[d] + common.size[d];
      piece.size[d] = after;
      result.push_back(std::move(piece));
    }
    rest.offset[d] = common.offset[d];
    rest.size[d] = common.size[d];
  }
  return result;
}

std::vector<int64_t> Layout::localShape() const {
  std::vector<int64_t> result;
  for (const DimLayout &dim : dims)
    result.push_back(dim.length);
  return result;
}

Box Layout::span(const Mesh &mesh, const std::vector<int64_t> &coordinate) const {
  Box result;
  for (const DimLayout &dim : dims) {
    result.offset.push_back(linearIndex(mesh, dim.axes, coordinate) * dim.step + dim.offset);
    result.size.push_back(dim.length);
  }
  return result;
}

Box Layout::valid(const Mesh &mesh, const std::vector<int64_t> &coordinate) const {
  Box whole{std::vector<int64_t>(globalShape.size(), 0), globalShape};
  return intersect(span(mesh, coordinate), whole);
}

int64_t Layout::maxValidElements() const {
  // Extents are independent of each other, so the largest box takes each dimension's largest part.
  int64_t count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t best = 0;
    for (int64_t c = 0, n = sizeOf(dims[d].axes); c < n; ++c) {
      int64_t begin = std::max<int64_t>(0, c * dims[d].step + dims[d].offset);
      int64_t end = std::min(globalShape[d], c * dims[d].step + dims[d].offset + dims[d].length);
      best = std::max(best, end - begin);
    }
    count *= best;
  }
  return count;
}

Layout makeLayout(const TensorSharding &sharding, const std::vector<int64_t> &globalShape) {
  Layout result{globalShape, {}, sharding.partial};
  for (size_t d = 0; d < globalShape.size(); ++d) {
    int64_t chunk = ceilDiv(globalShape[d], sizeOf(sharding.dims[d]));
    result.dims.push_back({sharding.dims[d], chunk, 0, chunk});
  }
  for (const Window &window : sharding.windows) {
    DimLayout &dim = result.dims[window.dim];
    dim.step = window.step;
    dim.offset = window.offset;
    dim.length = window.length;
  }
  return result;
}

std::vector<int64_t> localShape(const TensorSharding &sharding,
                                const std::vector<int64_t> &globalShape) {
  return makeLayout(sharding, globalShape).localShape();
}

} // namespace tessera::sharding
