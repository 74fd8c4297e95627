//===- StepCosts.h - Modelled seconds of the local view ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each op of a function in the local view takes on one device, and on which of
// its queues: one that computes, and one for each group of mesh axes over which it
// communicates. All devices are assumed to be equally fast, so that one represents all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_STEPCOSTS_H
#define TESSERA_TRANSFORMS_STEPCOSTS_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Sharding/Topology.h"
#include "tessera/Transforms/OpCosts.h"

#include <map>

namespace tessera::dist {

/// One execution of a collective.
struct CommunicationCost {
  sharding::AxisList axes; ///< of its group
  sharding::Traffic traffic;
  sharding::Timing timing;
  /// Nothing leaves the device: the time is computing.
  bool isLocal() const { return traffic.count == 0; }
};

class StepCosts {
public:
  /// All three must outlive this; the ops that are asked for must not change. `busyDevices`: how
  /// many compute at a time, where they share cores; 0: those of the function's mesh.
  StepCosts(mlir::func::FuncOp function, const MeshTable &meshes,
            const sharding::Topology &topology, int64_t busyDevices = 0);

  /// Fails, with an error on the op, where its axes or layouts are not those of its mesh.
  mlir::FailureOr<CommunicationCost> communicationOf(CollectiveOpInterface op) const;
  /// Seconds of one execution of an op that computes or moves tensors on the device; 0 of others.
  double computeSeconds(mlir::Operation *op) const;

private:
  const MeshTable &meshes;
  const sharding::Topology &topology;
  int64_t devices;
  OpCosts costs;
};

/// How many devices the mesh of a function in the local view has.
int64_t meshDevicesOf(mlir::func::FuncOp function);

/// The queues of a device while it executes ops in the order of the text. A started collective
/// begins when all that was started before over the same axes is done; a wait ends when it does.
class DeviceClock {
public:
  using Queue = std::pair<std::string, sharding::AxisList>; ///< mesh and axes
  static Queue queueOf(CollectiveOpInterface op, const CommunicationCost &cost);

  double now() const { return time; }
  void compute(double seconds) { time += seconds; }
  /// Begins a collective as soon as its queue is free; returns when it will be done.
  double begin(CollectiveOpInterface op, const CommunicationCost &cost);
  /// Stands still until then; returns for how many seconds.
  double waitUntil(double done);
  /// Whether a collective is under way.
  bool isBusy() const {
    for (const auto &[queue, free] : freeAt)
      if (free > time)
        return true;
    return false;
  }
  /// What ran since `begin` runs so often in all.
  void repeat(double begin, int64_t trips) {
    time = begin + static_cast<double>(trips) * (time - begin);
  }

private:
  double time = 0;
  std::map<Queue, double> freeAt;
};

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_STEPCOSTS_H
