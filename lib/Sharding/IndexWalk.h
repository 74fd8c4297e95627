//===- IndexWalk.h - Linear indices of all devices --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `linearIndex` over several lists of axes for the coordinates on some axes, in order
// and without divisions: an index is a sum of one term for each axis, so a step to the
// next coordinate changes a few terms.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_INDEXWALK_H
#define TESSERA_LIB_SHARDING_INDEXWALK_H

#include "tessera/Sharding/Mesh.h"

#include <cstdint>
#include <vector>

namespace tessera::sharding {

class IndexWalk {
public:
  /// Starts at coordinate 0. The coordinates on `axes` (numbers of mesh axes) vary, the last
  /// fastest; the others are 0. `lists` are the lists of axes to index.
  IndexWalk(const Mesh &mesh, const std::vector<int64_t> &axes,
            const std::vector<const AxisList *> &lists);

  /// The linear index over list `list` at the current coordinate.
  int64_t operator[](size_t list) const { return indices[list]; }
  /// Goes to the next coordinate; false after the last one.
  bool next();

private:
  size_t numLists;
  std::vector<std::vector<int64_t>> terms; ///< by axis, [coordinate * numLists + list]
  std::vector<int64_t> coordinate;         ///< by axis
  std::vector<int64_t> indices;            ///< by list
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_INDEXWALK_H
