//===- AxisGroups.cpp - Mesh axes that are cut together -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/AxisGroups.h"

#include <numeric>

using namespace tessera;
using namespace tessera::dist;
using namespace tessera::sharding;

/// More axes are searched in groups.
static constexpr size_t kMostGroups = 3;

/// Whether a list with one of two neighboring axes has the other directly after it.
static bool keepsTogether(const AxisList &axes, const AxisRef &first, const AxisRef &second) {
  auto it = llvm::find_if(axes, [&](const AxisRef &axis) { return axis.axis == first.axis; });
  bool hasSecond =
      llvm::any_of(axes, [&](const AxisRef &axis) { return axis.axis == second.axis; });
  if (it == axes.end())
    return !hasSecond;
  return *it == first && std::next(it) != axes.end() && *std::next(it) == second;
}

/// Whether all annotations treat an axis and the next one equally.
static bool areAnnotatedEqually(const PropagationGraph &graph, const Mesh &mesh, int64_t axis) {
  AxisRef first = AxisRef::full(mesh, axis), second = AxisRef::full(mesh, axis + 1);
  return llvm::all_of(graph.tensors, [&](const TensorState &tensor) {
    const TensorSharding &given = tensor.given;
    if (tensor.mesh != &mesh)
      return true;
    bool inDims = llvm::all_of(
        given.dims, [&](const AxisList &dim) { return keepsTogether(dim, first, second); });
    AxisList partial;
    for (const PartialAxis &part : given.partial)
      partial.push_back(part.axis);
    return inDims && keepsTogether(partial, first, second) &&
           keepsTogether(given.open, first, second);
  });
}

AxisGroups dist::groupAxes(const PropagationGraph &graph, const Mesh &mesh,
                           const LinkModel &links) {
  AxisGroups groups;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
    groups.push_back({axis});
  if (groups.size() <= kMostGroups)
    return groups;
  std::vector<bool> joinable;
  for (int64_t axis = 0; axis + 1 < mesh.numAxes(); ++axis)
    joinable.push_back(areAnnotatedEqually(graph, mesh, axis));
  auto slowest = [&](const std::vector<int64_t> &group) {
    AxisList axes;
    for (int64_t axis : group)
      axes.push_back(AxisRef::full(mesh, axis));
    return links.linkOf(mesh, axes).rate;
  };
  auto sizeOf = [&](const std::vector<int64_t> &group) {
    return std::accumulate(group.begin(), group.end(), int64_t(1),
                           [&](int64_t size, int64_t axis) { return size * mesh.shape[axis]; });
  };
  while (groups.size() > kMostGroups) {
    size_t best = groups.size();
    std::pair<bool, int64_t> bestRank;
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
      if (!joinable[groups[g].back()])
        continue;
      std::pair<bool, int64_t> rank{slowest(groups[g]) != slowest(groups[g + 1]),
                                    sizeOf(groups[g]) * sizeOf(groups[g + 1])};
      if (best == groups.size() || rank < bestRank) {
        best = g;
        bestRank = rank;
      }
    }
    if (best == groups.size())
      break;
    llvm::append_range(groups[best], groups[best + 1]);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  return groups;
}
