//===- AtomicParts.cpp - Parts of mesh axes that layouts name -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AtomicParts.h"

#include <set>

namespace tessera::sharding {

AxisList atomicParts(const Mesh &mesh, const std::vector<const Layout *> &layouts) {
  std::vector<std::set<int64_t>> cuts(mesh.numAxes());
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
    cuts[axis] = {1, mesh.shape[axis]};
  auto add = [&](const AxisRef &axis) {
    cuts[axis.axis].insert(axis.pre);
    cuts[axis.axis].insert(axis.pre * axis.size);
  };
  for (const Layout *layout : layouts) {
    for (const DimLayout &dim : layout->dims)
      for (const AxisRef &axis : dim.axes)
        add(axis);
    for (const PartialAxis &part : layout->partial)
      add(part.axis);
  }
  AxisList result;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    bool nested = true;
    for (auto it = cuts[axis].begin(); std::next(it) != cuts[axis].end(); ++it)
      nested = nested && *std::next(it) % *it == 0;
    if (!nested) // (1)2 and (1)3 of 6 have no common parts
      cuts[axis] = {1, mesh.shape[axis]};
    for (auto it = cuts[axis].begin(); std::next(it) != cuts[axis].end(); ++it)
      result.push_back({axis, *it, *std::next(it) / *it});
  }
  return result;
}

} // namespace tessera::sharding
