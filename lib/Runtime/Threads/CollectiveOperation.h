//===- CollectiveOperation.h - Collectives within one process ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective step is split into groups of devices that exchange data. The last
// device of a group to arrive makes its work runnable, as tasks over ranges of the
// pieces; the worker that ends the last task wakes the group.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_COLLECTIVEOPERATION_H
#define TESSERA_LIB_RUNTIME_THREADS_COLLECTIVEOPERATION_H

#include "../Execution/Memory.h"
#include "../Execution/Move.h"
#include "../Execution/Recorder.h"
#include "../Execution/WorkerPool.h"

namespace tessera::runtime {

/// Receives notifications of events for which a device may wait.
class Waiter {
public:
  virtual ~Waiter() = default;
  virtual void notify() = 0;
};

/// State shared by all operations of an executor.
struct Context {
  const Program &program;
  const Memory &memory;
  WorkerPool &pool;
  Recorder &recorder;
  const Clock &clock;
  std::vector<Waiter *> waiters; ///< by process id; null for ids in no mesh
};

class CollectiveOperation;

/// One group of a collective. A device arrives, and may continue when `completed` has reached the
/// number of its arrivals.
class GroupMeeting final : public TaskGroup {
public:
  GroupMeeting(CollectiveOperation &operation, std::vector<int64_t> positions);

  /// Called once per execution by each member, in any order.
  void arrive(int64_t device);
  /// The number of completed executions. Sequentially consistent: a device reads it after it has
  /// published that it runs, and is notified after it has grown; one of the two must see the other.
  int64_t completed() const { return generation.load(); }
  /// Process ids, ascending.
  const std::vector<int64_t> &members() const { return devices; }

  void runTask(int64_t index) override;
  void finish() override;

private:
  friend class CollectiveOperation;
  struct Task {
    const Move *move;
    const MovePiece *piece;
    int64_t operand, begin, end;
  };
  void addTasks(int64_t operand, const Move &move, const MovePiece &piece);
  void execute();

  CollectiveOperation &operation;
  std::vector<int64_t> devices;
  std::vector<Task> tasks;
  int64_t touchedBytes = 0; ///< accessed by all tasks
  std::atomic<int64_t> arrived{0};
  std::atomic<int64_t> generation{0};
  int64_t arrivedNs = 0;
};

/// A collective step of one part, with its moves compiled for fixed buffers.
class CollectiveOperation {
public:
  CollectiveOperation(Context &context, int64_t part, const Step &step);

  const CollectiveStep &collective() const { return definition; }
  const Step &definingStep() const { return step; }
  const std::string &loc() const { return step.loc; }
  /// The group of a device of the part's mesh.
  GroupMeeting &groupOf(int64_t device) { return *groups[groupIndex[device]]; }
  CollectiveStats stats() const;

private:
  friend class GroupMeeting;
  struct Buffers {
    std::unique_ptr<Move> move;
    /// By position of the collective's mesh, and of its target mesh.
    std::vector<std::byte *> sources, targets;
    /// Copies of sources that a target may overwrite, made on arrival; else empty.
    std::vector<Bytes> staging;
    std::vector<const std::byte *> arenaSources; ///< their originals
    std::vector<MemoryClaim> claims = {};        ///< of `staging`
  };
  void build(int64_t part);
  void stageWhereUnsafe(int64_t part);
  void formGroups();
  /// Position in `mesh` of the device at a position of `targetMesh`.
  int64_t sourcePosition(int64_t targetPosition) const {
    return mesh.positionOf(targetMesh.processIds[targetPosition]);
  }

  Context &context;
  const Step &step;
  const CollectiveStep &definition;
  const sharding::Mesh &mesh, &targetMesh;
  std::vector<Buffers> operands;
  std::vector<std::unique_ptr<GroupMeeting>> groups;
  std::vector<int64_t> groupIndex; ///< by process id
  TrafficCounter counter;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_COLLECTIVEOPERATION_H
