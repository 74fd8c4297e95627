//===- InProcess.h - Collectives as moves in one address space --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_INPROCESS_H
#define TESSERA_LIB_RUNTIME_GPU_INPROCESS_H

#include "Driver.h"
#include "Plan.h"

#include <map>

namespace tessera::runtime::gpu {

class Issuer;

/// A collective of virtual devices on one GPU. The last member of a group to issue it issues the
/// moves, on the first member's stream, between events that join the streams of all members.
class InProcessCollective {
public:
  InProcessCollective(const Program &program, const Part &part, const PlannedCollective &planned);
  Status open(GpuDriver &driver);
  void restart();

  /// Called when `issuer` reaches the collective, after it has issued its waits. Returns true once
  /// per member, after the moves of its group are issued.
  Expected<bool> arrive(Issuer &issuer, int64_t stream);

private:
  struct Group {
    std::vector<Issuer *> members; ///< by index in `positions`; null until arrival
    std::vector<int64_t> positions;
    std::vector<Event> arrived; ///< one per member
    Event done = nullptr;
    int64_t count = 0, told = 0;
    bool issued = false;
  };
  Status issue(Group &group, int64_t stream);

  const PlannedCollective &planned;
  std::vector<Move> moves;
  std::vector<Group> groups;
  std::vector<int64_t> groupOf; ///< by position of the part's mesh
  /// Maps ends of pieces to positions of the part's mesh.
  const sharding::Mesh &partMesh;
  GpuDriver *driver = nullptr;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_INPROCESS_H
