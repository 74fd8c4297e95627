//===- TensorSharding.cpp - The sharding of a tensor on a mesh ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/TensorSharding.h"

#include <algorithm>
#include <array>

namespace tessera::sharding {

static constexpr std::array<std::string_view, 5> kReduceNames = {"sum", "avg", "max", "min",
                                                                 "prod"};

std::string_view toString(ReduceKind kind) {
  return kReduceNames[static_cast<int>(kind)];
}

std::optional<ReduceKind> parseReduceKind(std::string_view text) {
  for (size_t i = 0; i < kReduceNames.size(); ++i)
    if (kReduceNames[i] == text)
      return static_cast<ReduceKind>(i);
  return std::nullopt;
}

TensorSharding TensorSharding::allOpen(const Mesh &mesh, int64_t rank) {
  TensorSharding result = replicated(rank);
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
    result.open.push_back(AxisRef::full(mesh, axis));
  return result;
}

bool TensorSharding::isFree(const AxisRef &axis) const {
  return std::none_of(dims.begin(), dims.end(),
                      [&](const AxisList &axes) { return overlapsAny(axes, axis); }) &&
         std::none_of(partial.begin(), partial.end(),
                      [&](const PartialAxis &part) { return overlapsAny({part.axis}, axis); });
}

bool TensorSharding::isReplicated() const {
  return partial.empty() && windows.empty() &&
         std::all_of(dims.begin(), dims.end(), [](const AxisList &axes) { return axes.empty(); });
}

AxisList TensorSharding::usedAxes() const {
  AxisList result;
  for (const AxisList &axes : dims)
    result.insert(result.end(), axes.begin(), axes.end());
  for (const PartialAxis &part : partial)
    result.push_back(part.axis);
  return result;
}

AxisList TensorSharding::partialAxes() const {
  AxisList result;
  for (const PartialAxis &part : partial)
    result.push_back(part.axis);
  return result;
}

TensorSharding TensorSharding::withoutPartial() const {
  return {dims, {}, open, windows};
}

TensorSharding TensorSharding::closed() const {
  return {dims, partial, {}, windows};
}

TensorSharding canonical(TensorSharding sharding) {
  for (AxisList &axes : sharding.dims)
    axes = mergeAxes(std::move(axes));
  std::sort(sharding.partial.begin(), sharding.partial.end());
  if (sharding.partial.size() > 1) {
    std::vector<PartialAxis> merged;
    for (const PartialAxis &part : sharding.partial) {
      if (!merged.empty() && merged.back().kind == part.kind &&
          merged.back().axis.canMerge(part.axis))
        merged.back().axis.size *= part.axis.size;
      else
        merged.push_back(part);
    }
    sharding.partial = std::move(merged);
  }
  std::sort(sharding.open.begin(), sharding.open.end());
  sharding.open = mergeAxes(std::move(sharding.open));
  return sharding;
}

std::string toString(const Mesh &mesh, const TensorSharding &sharding) {
  std::string result = "[";
  for (size_t i = 0; i < sharding.dims.size(); ++i)
    result += (i ? ", " : "") + toString(mesh, sharding.dims[i]);
  result += "]";
  for (const PartialAxis &part : sharding.partial)
    result +=
        " partial " + std::string(toString(part.kind)) + "(" + toString(mesh, part.axis) + ")";
  if (!sharding.open.empty())
    result += " open " + toString(mesh, sharding.open);
  return result;
}

} // namespace tessera::sharding
