//===- MeshShapes.h - Grids of a number of devices --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_SEARCH_MESHSHAPES_H
#define TESSERA_LIB_TRANSFORMS_SEARCH_MESHSHAPES_H

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Sharding/Topology.h"

namespace tessera::dist {

/// The grids of up to three axes that the search tries for a number of devices, fewest axes first:
///
///   6  on one link class: [6], [3, 2]      on links that join 2 and 6: [6], [3, 2]
///   12 on links that join 4 and 12:        [12], [3, 4], [4, 3], …
///
/// Axes with equal links are interchangeable, so grids that differ only in the order of such axes
/// are represented by the one with the longest axis outermost.
std::vector<std::vector<int64_t>> meshShapes(int64_t devices, const sharding::Topology &topology);

/// A mesh with axes d0, d1, … over process ids 0, 1, ….
sharding::Mesh makeMesh(const std::string &name, const std::vector<int64_t> &shape);

/// Declares a mesh whose process ids are 0, 1, … at the top of a module.
ProcessMeshOp declareMesh(mlir::ModuleOp module, const sharding::Mesh &mesh);
/// An unused symbol name for a mesh.
std::string freeMeshName(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_SEARCH_MESHSHAPES_H
