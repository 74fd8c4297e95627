//===- MeshShapes.cpp - Grids of a number of devices ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeshShapes.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tessera::dist {

/// Grids of more axes have more plans, but we know no machine with more classes of links.
static constexpr size_t kMostAxes = 3;

sharding::Mesh makeMesh(const std::string &name, const std::vector<int64_t> &shape) {
  sharding::Mesh mesh{name, shape, {}, {}};
  int64_t devices = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    mesh.axisNames.push_back("d" + std::to_string(axis));
    devices *= shape[axis];
  }
  mesh.processIds = sharding::DeviceIds::range(devices);
  return mesh;
}

ProcessMeshOp declareMesh(mlir::ModuleOp module, const sharding::Mesh &mesh) {
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(module.getBody());
  llvm::SmallVector<llvm::StringRef> names(mesh.axisNames.begin(), mesh.axisNames.end());
  return ProcessMeshOp::create(builder, module.getLoc(), mesh.name, mesh.shape,
                               builder.getStrArrayAttr(names), mlir::DenseI64ArrayAttr());
}

std::string freeMeshName(mlir::ModuleOp module) {
  std::string name = "mesh";
  for (int64_t n = 0; mlir::SymbolTable::lookupSymbolIn(module, name); ++n)
    name = "mesh" + std::to_string(n);
  return name;
}

static void factorise(int64_t rest, std::vector<int64_t> &prefix,
                      std::vector<std::vector<int64_t>> &shapes) {
  if (prefix.size() + 1 <= kMostAxes && rest > 1) {
    shapes.push_back(prefix);
    shapes.back().push_back(rest);
  }
  if (prefix.size() + 1 >= kMostAxes)
    return;
  for (int64_t factor = 2; factor <= rest / 2; ++factor)
    if (rest % factor == 0) {
      prefix.push_back(factor);
      factorise(rest / factor, prefix, shapes);
      prefix.pop_back();
    }
}

std::vector<std::vector<int64_t>> meshShapes(int64_t devices, const sharding::Topology &topology) {
  if (devices < 2)
    return {{devices}};
  std::vector<std::vector<int64_t>> all, kept;
  std::vector<int64_t> prefix;
  factorise(devices, prefix, all);
  std::stable_sort(all.begin(), all.end(), [](auto &a, auto &b) {
    return a.size() != b.size() ? a.size() < b.size() : a > b;
  });
  std::set<std::vector<std::vector<std::pair<int64_t, sharding::Link>>>> seen;
  for (std::vector<int64_t> &shape : all) {
    sharding::LinkModel links = topology.linksOf(makeMesh("", shape));
    std::vector<std::vector<std::pair<int64_t, sharding::Link>>> axes;
    for (const std::vector<sharding::LinkLevel> &levels : links.levels) {
      axes.emplace_back();
      for (const sharding::LinkLevel &level : levels)
        axes.back().push_back({level.devices, level.link});
    }
    std::sort(axes.begin(), axes.end());
    if (seen.insert(std::move(axes)).second)
      kept.push_back(std::move(shape));
  }
  return kept;
}

} // namespace tessera::dist
