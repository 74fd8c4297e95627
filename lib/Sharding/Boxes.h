//===- Boxes.h - Intersection of boxes in inner loops -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_BOXES_H
#define TESSERA_LIB_SHARDING_BOXES_H

#include "tessera/Sharding/Layout.h"

#include <algorithm>

namespace tessera::sharding {

/// Whether two boxes of the same rank share an element: `!intersect(a, b).empty()` without
/// constructing a box, since among many devices most pairs share nothing.
inline bool intersects(const Box &a, const Box &b) {
  for (size_t d = 0; d < a.offset.size(); ++d)
    if (std::min(a.offset[d] + a.size[d], b.offset[d] + b.size[d]) <=
        std::max(a.offset[d], b.offset[d]))
      return false;
  return true;
}

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_BOXES_H
