//===- Topology.cpp - Devices and the links between them -------------------===//
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

/// Whether devices that differ along `axis` alone always lie within blocks of `block` ids.
static bool staysWithin(const Mesh &mesh, int64_t axis, int64_t block) {
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < mesh.numAxes(); ++a)
    stride *= mesh.shape[a];
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    int64_t first = position - position / stride % mesh.shape[axis] * stride;
    if (mesh.processIds[position] / block != mesh.processIds[first] / block)
      return false;
  }
  return true;
}

LinkModel Topology::linksOf(const Mesh &mesh) const {
  LinkModel model;
  for (int64_t axis = 0; axis < mesh.numAxes(); ++axis) {
    auto named = axisLinks.find(mesh.axisNames[axis]);
    auto it = std::find_if(links.begin(), links.end(), [&](const LinkClass &link) {
      return named != axisLinks.end() ? link.name == named->second
                                      : staysWithin(mesh, axis, link.devices);
    });
    model.axes.push_back((it == links.end() ? links.back() : *it).link);
  }
  return model;
}

double Topology::computeSeconds(double flops, double bytes, const std::string &dtype,
                                int64_t devices) const {
  double seconds = std::max(flops / device.flopsOf(dtype), bytes / device.memoryRate);
  return device.sharesCores ? seconds * static_cast<double>(devices) : seconds;
}

} // namespace tessera::sharding
