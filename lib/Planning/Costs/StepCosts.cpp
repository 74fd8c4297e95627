//===- StepCosts.cpp - Modelled seconds of the local view -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/StepCosts.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

int64_t dist::meshDevicesOf(func::FuncOp function) {
  auto ids = function->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kMeshDevices);
  return ids ? ids.size() : 1;
}

StepCosts::StepCosts(func::FuncOp function, const MeshTable &meshes,
                     const sharding::Topology &topology, int64_t busyDevices)
    : meshes(meshes), topology(topology),
      devices(busyDevices ? busyDevices : meshDevicesOf(function)), costs(function, topology) {}

FailureOr<CommunicationCost> StepCosts::communicationOf(CollectiveOpInterface op) const {
  const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
  CommunicationCost cost;
  FailureOr<sharding::Traffic> traffic = op.getTraffic(mesh);
  if (failed(traffic))
    return failure();
  cost.traffic = *traffic;
  if (AxisListAttr axes = op.getGroupAxes()) {
    FailureOr<sharding::AxisList> list =
        resolveAxes(axes, mesh, [&]() { return op->emitOpError(); });
    if (failed(list))
      return failure();
    cost.axes = *list;
  }
  cost.timing = topology.linksOf(mesh).timing(mesh, cost.axes, op.getKind(), cost.traffic);
  cost.occupiesCores = topology.device.sharesCores;
  return cost;
}

double StepCosts::computeSeconds(Operation *op) const {
  return hasCost(op) ? costs.seconds(op, devices) : 0;
}

DeviceClock::Queue DeviceClock::queueOf(CollectiveOpInterface op, const CommunicationCost &cost) {
  sharding::AxisList axes = cost.axes;
  llvm::sort(axes);
  return {op.getMeshAttr().getValue().str(), std::move(axes)};
}

double DeviceClock::begin(CollectiveOpInterface op, const CommunicationCost &cost) {
  double &free = freeAt[queueOf(op, cost)];
  return free = std::max(free, time) + cost.timing.seconds;
}

double DeviceClock::waitUntil(double done) {
  double idle = std::max(0.0, done - time);
  time += idle;
  return idle;
}
