//===- Topology.cpp - Devices and the links between them ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Topology.h"

#include <algorithm>

namespace tessera::sharding {

double DeviceKind::flopsOf(const std::string &dtype) const {
  auto it = flops.find(dtype);
  return it != flops.end() ? it->second : flops.at("f32");
}

/// Whether each run of `run` consecutive devices along `axis` is within one block of
/// `block` ids.
static bool staysWithin(const Mesh &mesh, int64_t axis, int64_t run, int64_t block) {
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < mesh.numAxes(); ++a)
    stride *= mesh.shape[a];
  // Runs begin at multiples of their span.
  if (mesh.processIds.isRange() && block % (run * stride) == 0 &&
      mesh.processIds.front() % (run * stride) == 0)
    return true;
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    int64_t first = position - position / stride % mesh.shape[axis] % run * stride;
    if (mesh.processIds[position] / block != mesh.processIds[first] / block)
      return false;
  }
  return true;
}

/// The levels of an axis, by the reach of each class of links along it.
static std::vector<LinkLevel> levelsAlong(const Mesh &mesh, int64_t axis,
                                          const std::vector<LinkClass> &links) {
  std::vector<LinkLevel> levels;
  int64_t extent = mesh.shape[axis], reached = 1;
  for (const LinkClass &link : links) {
    int64_t run = reached;
    for (int64_t longer = extent; longer > reached; --longer)
      if (extent % longer == 0 && longer % reached == 0 &&
          staysWithin(mesh, axis, longer, link.devices)) {
        run = longer;
        break;
      }
    if (run > reached)
      levels.push_back({run / reached, link.link});
    reached = run;
  }
  if (reached < extent)
    levels.push_back({extent / reached, links.back().link});
  return levels;
}

LinkModel Topology::linksOf(const Mesh &mesh) const {
  LinkModel model;
  model.algorithms = algorithms;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    auto named = axisLinks.find(mesh.axisNames[axis]);
    auto it = std::find_if(links.begin(), links.end(), [&](const LinkClass &link) {
      return named != axisLinks.end() ? link.name == named->second
                                      : staysWithin(mesh, axis, mesh.shape[axis], link.devices);
    });
    model.axes.push_back((it == links.end() ? links.back() : *it).link);
    model.levels.push_back(named != axisLinks.end()
                               ? std::vector<LinkLevel>{{mesh.shape[axis], model.axes.back()}}
                               : levelsAlong(mesh, axis, links));
  }
  return model;
}

double Topology::computeSeconds(double flops, double bytes, const std::string &dtype,
                                int64_t devices) const {
  double seconds = std::max(flops / device.flopsOf(dtype), bytes / device.memoryRate);
  return device.sharesCores ? seconds * static_cast<double>(devices) : seconds;
}

} // namespace tessera::sharding
