//===- StepCosts.h - Modelled seconds of the local view ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of each op of a function in the local view on one device, and its queue: one
// for computation, and one per group of mesh axes for communication. All devices are
// assumed to be equally fast, so that one represents all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_STEPCOSTS_H
#define TESSERA_PLANNING_STEPCOSTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Planning/OpCosts.h"
#include "tessera/Sharding/Topology.h"

#include <map>

namespace tessera::dist {

/// One execution of a collective.
struct CommunicationCost {
  sharding::AxisList axes; ///< of its group
  sharding::Traffic traffic;
  sharding::Timing timing;
  /// The devices communicate on the cores that they compute on: nothing runs beside it.
  bool occupiesCores = false;
  /// Nothing is sent: the time is computation.
  bool isLocal() const { return traffic.count == 0; }
};

/// Seconds and queue of each op of a function in the local view.
class StepCosts {
public:
  /// All three must outlive this; queried ops must not change. `busyDevices`: the number of devices
  /// that compute at a time, if they share cores; 0: those of the function's mesh.
  StepCosts(mlir::func::FuncOp function, const MeshTable &meshes,
            const sharding::Topology &topology, int64_t busyDevices = 0);

  /// Fails with an error on the op if its axes or layouts do not fit its mesh.
  mlir::FailureOr<CommunicationCost> communicationOf(CollectiveOpInterface op) const;
  /// Seconds of one execution of an op that computes or moves tensors on the device; 0 for others.
  double computeSeconds(mlir::Operation *op) const;

private:
  const MeshTable &meshes;
  const sharding::Topology &topology;
  int64_t devices;
  OpCosts costs;
};

/// The number of devices of the mesh of a function in the local view.
int64_t meshDevicesOf(mlir::func::FuncOp function);

/// The queues of a device while it executes ops in program order. A started collective begins when
/// all earlier ones over the same axes are done; a wait ends when it is done.
class DeviceClock {
public:
  using Queue = std::pair<std::string, sharding::AxisList>; ///< mesh and axes
  static Queue queueOf(CollectiveOpInterface op, const CommunicationCost &cost);

  double now() const { return time; }
  void compute(double seconds) { time += seconds; }
  /// Starts a collective as soon as its queue is free; returns its end.
  double begin(CollectiveOpInterface op, const CommunicationCost &cost);
  /// Waits until `done`; returns the waiting time.
  double waitUntil(double done);
  /// Whether a collective is in progress.
  bool isBusy() const {
    for (const auto &[queue, free] : freeAt)
      if (free > time)
        return true;
    return false;
  }
  /// Repeats the ops since `begin`, for `trips` executions in all.
  void repeat(double begin, int64_t trips) {
    time = begin + static_cast<double>(trips) * (time - begin);
  }

private:
  double time = 0;
  std::map<Queue, double> freeAt;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_STEPCOSTS_H
