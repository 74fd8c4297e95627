//===- IndexWalk.cpp - Linear indices of all devices ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexWalk.h"

namespace tessera::sharding {

IndexWalk::IndexWalk(const Mesh &mesh, const std::vector<int64_t> &axes,
                     const std::vector<const AxisList *> &lists)
    : numLists(lists.size()), coordinate(axes.size(), 0), indices(lists.size(), 0) {
  std::vector<int64_t> on(mesh.shape.size(), 0);
  for (int64_t axis : axes) {
    std::vector<int64_t> &own = terms.emplace_back();
    for (on[axis] = 0; on[axis] < mesh.shape[axis]; ++on[axis])
      for (const AxisList *list : lists)
        own.push_back(linearIndex(mesh, *list, on));
    on[axis] = 0;
  }
}

bool IndexWalk::next() {
  for (size_t axis = coordinate.size(); axis-- > 0;) {
    const std::vector<int64_t> &own = terms[axis];
    const int64_t *before = &own[coordinate[axis] * numLists];
    bool isLast = ++coordinate[axis] * numLists == own.size();
    if (isLast)
      coordinate[axis] = 0;
    const int64_t *after = &own[coordinate[axis] * numLists];
    for (size_t list = 0; list < numLists; ++list)
      indices[list] += after[list] - before[list];
    if (!isLast)
      return true;
  }
  return false;
}

} // namespace tessera::sharding
