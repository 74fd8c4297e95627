//===- Placement.h - Where workers run and arenas lie -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Workers, one for each physical core, in the order of memory nodes; the ranks of a
// host divide its cores in the order of their local ranks. Devices are assigned to
// nodes in order, so that neighbors of a mesh are neighbors in the machine.
// Nothing here changes a result.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PLACEMENT_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PLACEMENT_H

#include "tessera/Support/CpuTopology.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace tessera::runtime {

/// What a placement depends on.
struct PlacementRequest {
  CpuTopology topology;
  std::vector<int64_t> affinity;    ///< logical processors that the process may use
  std::optional<double> quota;      ///< processors that its control groups grant
  int64_t workers = 0;              ///< 0: decided here
  int64_t localRank = 0, ranks = 1; ///< of the processes (or devices) that share the host
  bool pins = false;                ///< asked for
};

/// Workers of one process and the memory nodes of its devices.
struct Placement {
  int64_t workers = 1;
  std::vector<int64_t> processors; ///< to which each worker is pinned; empty: none is
  std::vector<int64_t> nodes;      ///< of memory, ascending; empty: unknown
  std::vector<int64_t> nodeOf;     ///< of each worker, an index into nodes; empty if not pinned
  bool hasOneNode = true;          ///< the machine's memory, or its nodes do not matter

  /// The nodes, as indices, of device `index` of `count`: one node, or several where there are more
  /// nodes than devices. Empty where memory has one node or workers move.
  std::vector<int64_t> nodesOfDevice(int64_t index, int64_t count) const;
  /// The same by the system's numbers.
  std::vector<int64_t> systemNodesOfDevice(int64_t index, int64_t count) const;
};

/// Decides. The number of workers is that of physical cores within the affinity, at most that of
/// the quota, divided among the ranks: at least 1 each. Workers are pinned if that is asked for,
/// the affinity has the whole machine, no quota limits it, and each has a core of its own.
Placement place(const PlacementRequest &request);

/// The request for this machine and process.
PlacementRequest requestOfProcess(int64_t workers, bool pins, int64_t localRank, int64_t ranks);

/// Holds logical processors against other processes of this machine (of the same network namespace)
/// that pin workers, until it is destroyed. Null if another one holds any of them.
class ProcessorClaim {
public:
  static std::shared_ptr<ProcessorClaim> take(const std::vector<int64_t> &processors);
  ProcessorClaim(const ProcessorClaim &) = delete;
  ProcessorClaim &operator=(const ProcessorClaim &) = delete;
  ~ProcessorClaim();

private:
  ProcessorClaim() = default;
  std::vector<int64_t> processors; ///< of this process, counted
};

/// A placement with its claim, for the life of a pool: without pins if others hold the processors.
struct HeldPlacement {
  Placement placement;
  std::shared_ptr<ProcessorClaim> claim;
};
HeldPlacement hold(Placement placement);

/// Restricts the calling thread to a logical processor; false if the system refuses.
bool pinThread(int64_t processor);

/// Asks for pages of untouched memory on nodes (numbers of the system): on one, while it has room,
/// or interleaved over several. False if the system refuses; then pages are where they are first
/// touched.
bool bindMemory(std::byte *data, size_t size, const std::vector<int64_t> &nodes);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PLACEMENT_H
