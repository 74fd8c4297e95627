//===- Layout.cpp - Elements in each device's buffer ----------------------===//
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

std::pair<int64_t, int64_t> DimLayout::span(int64_t c) const {
  int64_t first = c * step + offset;
  if (divisor == 1)
    return {first, first + length};
  return {ceilDiv(first, divisor), ceilDiv(first + length, divisor)};
}

int64_t DimLayout::size() const {
  return ceilDiv(length, divisor);
}

DimLayout DimLayout::simplified() const {
  DimLayout result = *this;
  if (divisor == 1 || step % divisor != 0 || length % divisor != 0)
    return result;
  result.step = step / divisor;
  result.offset = ceilDiv(offset, divisor);
  result.length = length / divisor;
  result.divisor = 1;
  return result;
}

std::vector<int64_t> Layout::localShape() const {
  std::vector<int64_t> result;
  for (const DimLayout &dim : dims)
    result.push_back(dim.size());
  return result;
}

Box Layout::span(const Mesh &mesh, const std::vector<int64_t> &coordinate) const {
  Box result;
  for (const DimLayout &dim : dims) {
    auto [first, last] = dim.span(linearIndex(mesh, dim.axes, coordinate));
    result.offset.push_back(first);
    result.size.push_back(last - first);
  }
  return result;
}

Box Layout::valid(const Mesh &mesh, const std::vector<int64_t> &coordinate) const {
  Box whole{std::vector<int64_t>(globalShape.size(), 0), globalShape};
  return intersect(span(mesh, coordinate), whole);
}

int64_t Layout::maxValidElements() const {
  // Dimensions are independent, so the largest box takes the largest part of each.
  int64_t count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t best = 0;
    for (int64_t c = 0, n = sizeOf(dims[d].axes); c < n; ++c) {
      auto [first, last] = dims[d].span(c);
      best = std::max(best, std::min(globalShape[d], last) - std::max<int64_t>(0, first));
      if (dims[d].divisor == 1 && best == dims[d].length)
        break; // no part has more
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
    dim = {dim.axes,       window.step,  window.offset, window.length,
           window.divisor, window.begin, window.stride};
    if (window.isSelection())
      result.globalShape[window.dim] = window.count;
  }
  return result;
}

Layout selectLike(const Layout &layout, const Layout &like) {
  Layout result = layout;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    DimLayout &dim = result.dims[d];
    int64_t begin = like.dims[d].begin, stride = like.dims[d].stride, count = like.globalShape[d];
    if (dim.begin == begin && dim.stride == stride && result.globalShape[d] == count)
      continue;
    result.globalShape[d] = count;
    if (sizeOf(dim.axes) == 1) {
      dim = {{}, 0, 0, count, 1, begin, stride};
    } else if (dim.stride == stride && (dim.begin - begin) % stride == 0) {
      // The same elements, counted from another origin.
      dim.offset += (dim.begin - begin) / stride * dim.divisor;
      dim.begin = begin;
    } else {
      dim = DimLayout{dim.axes, dim.step, dim.offset + dim.begin - begin, dim.length, stride,
                      begin,    stride}
                .simplified();
    }
  }
  return result;
}

std::vector<int64_t> localShape(const TensorSharding &sharding,
                                const std::vector<int64_t> &globalShape) {
  return makeLayout(sharding, globalShape).localShape();
}

} // namespace tessera::sharding
