//===- Fixtures.h - Meshes and shorthands of these tests --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_SHARDING_FIXTURES_H
#define TESSERA_UNITTESTS_SHARDING_FIXTURES_H

#include "tessera/Sharding/Collective.h"

#include <numeric>

namespace tessera::sharding {

using Shape = std::vector<int64_t>;

/// A mesh with axes a, b, c, … and ids counted from `firstId`.
inline Mesh makeMesh(const Shape &shape, int64_t firstId = 0) {
  Mesh mesh{"m", shape, {}, {}};
  int64_t devices = 1;
  for (int64_t extent : shape) {
    mesh.axisNames.push_back(std::string(1, static_cast<char>('a' + mesh.axisNames.size())));
    devices *= extent;
  }
  mesh.processIds = sharding::DeviceIds::range(devices, firstId);
  return mesh;
}

inline AxisRef whole(const Mesh &mesh, int64_t axis) {
  return AxisRef::full(mesh, axis);
}

inline Layout layoutOf(const Shape &global, std::vector<AxisList> dims,
                       std::vector<PartialAxis> partial = {}) {
  return makeLayout(TensorSharding{std::move(dims), std::move(partial), {}, {}}, global);
}

} // namespace tessera::sharding

#endif // TESSERA_UNITTESTS_SHARDING_FIXTURES_H
