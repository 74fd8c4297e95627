//===- Executor.h - Execute parts on real or emulated GPUs ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One executor for `cuda`, `vdev` and `stub`. They differ in the driver, in the
// implementation of collectives, and in the devices of this process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_EXECUTOR_H
#define TESSERA_LIB_RUNTIME_GPU_EXECUTOR_H

#include "../Execution/Recorder.h"
#include "InProcess.h"
#include "KeptMemory.h"
#include "Plan.h"
#include "Transfers.h"

#include <functional>

namespace tessera::runtime::gpu {

/// Faults injected by tests, which check that they are detected.
struct PlantedFaults {
  int64_t dropWait = -1;        ///< the n-th wait is neither issued nor captured
  int64_t swapCollectives = -1; ///< this device issues the first two collectives of a segment in
                                ///< reverse order
  int64_t wrongCount = -1;      ///< this device sends one element too few
};

struct ExecutorOptions {
  /// Destroyed last: it owns streams and graphs.
  OwnedDriver driver;
  /// Null if all devices are in this process and share an address space (InProcess.h).
  std::unique_ptr<RankEngine> engine;
  std::vector<int64_t> devices; ///< process ids in this process; empty: all
  bool capture = true;          ///< segments become graphs
  bool messages = false;        ///< transfers between parts are messages of a communicator
  /// For devices in several processes: distributes `size` bytes of the process of device `owner`
  /// (`mine`) to all processes. Called by all of them in the same order.
  std::function<Status(int64_t owner, bool mine, std::byte *data, int64_t size)> share;
  /// Called at the end, unless an error occurred: tells other processes that this one is done.
  std::function<void()> leave;
  PlanOptions plan;
  PlantedFaults faults;
};

class GpuExecutor;

/// The state of a part shared by its devices in this process.
struct GpuPart {
  int64_t index = 0;
  const Part *part = nullptr;
  Plan plan;
  std::vector<std::unique_ptr<InProcessCollective>> inProcess; ///< parallel to Plan::collectives
  std::vector<std::vector<int64_t>> communicators;             ///< by grouping and group
  std::vector<int64_t> stagingOffsets;                         ///< by stream, within a block
  int64_t workspaceOffset = 0, blockBytes = 0;
};

/// One part on one device, at a position of its plan.
class Issuer {
public:
  Issuer(GpuExecutor &executor, GpuPart &part, int64_t device);
  Status open(std::byte *constants);
  void restart();
  bool finished() const { return place == part.plan.code.size(); }
  int64_t order() const { return part.plan.code[place].order; }
  /// Issues the next plan step; false if it must wait for work that others issue.
  Expected<bool> advance();
  /// Issues a segment's operations; false if one waits for other devices: call again.
  Expected<bool> issueSegment(const Segment &segment);
  /// Skips its segment, which was issued by other means (a graph of all devices).
  void skipSegment();
  void countSegment(const Segment &segment);
  /// Describes what it waits for.
  std::string describeWait() const;

  std::byte *resolve(int64_t address, int64_t stream) const;
  std::byte *slot(int64_t index) const { return resolve(addressOf(part.part->slots[index]), 0); }
  Stream stream(int64_t index) const { return streams[index]; }
  /// Its memory, of GpuPart::blockBytes.
  std::byte *memory() const { return block; }
  /// An event for unplanned uses.
  Event spareEvent() const { return events.back(); }
  const Step *currentStep() const { return part.plan.code[place].step; }

  GpuPart &part;
  const int64_t device;            ///< process id
  const int64_t position;          ///< in the part's mesh
  std::vector<int64_t> executions; ///< of each collective

private:
  Status issue(const Operation &operation, int64_t collective);
  std::vector<GemmOperands> operandsOf(const Operation &operation) const;
  /// Prepares its products in the driver: libraries may refuse to do so during a capture.
  Status prepareProducts();
  Status issueCollective(const Operation &operation, int64_t collective);
  Status issueAction(const Operation &operation, const RankAction &action, int64_t collective);
  int64_t communicatorOf(const Operation &operation, int64_t collective) const;
  Issue issueOf(const Operation &operation, const char *what) const;
  Expected<bool> runSegment(int64_t index);
  Expected<bool> readValue(int64_t slot, int64_t &value);
  Expected<bool> beginLoop(const PlanStep &step);
  std::string missingText(const Step &step) const;

  GpuExecutor &executor;
  std::byte *block = nullptr, *constants = nullptr;
  std::vector<Stream> streams;
  std::vector<Event> events;
  std::vector<Graph> graphs; ///< by segment; null until captured
  std::vector<LoopState> loops;
  size_t place = 0, next = 0;
  size_t operation = 0; ///< within the current segment
  bool waited = false;  ///< its waits are issued
};

class GpuExecutor final : public Executor {
public:
  GpuExecutor(std::shared_ptr<const Artifact> artifact, ExecutorOptions options)
      : artifact(std::move(artifact)), options(std::move(options)) {}
  ~GpuExecutor() override;
  Status open();

  Status run() override;
  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override;
  Status readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override;
  Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override;
  std::byte *slotData(int64_t part, int64_t position, int64_t slot) override;
  bool keepsOnDevices() const override { return true; }
  Expected<std::shared_ptr<DeviceBuffer>> keepSlot(int64_t part, int64_t position, int64_t slot,
                                                   int64_t size) override;
  bool takes(int64_t part, int64_t position, const DeviceBuffer &buffer) const override;
  Status fillSlot(int64_t part, int64_t position, int64_t slot, DeviceBuffer &buffer) override;
  Status fillSlotFrom(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                      int64_t size) override;
  bool takesMemory(int64_t part, int64_t position, int64_t ordinal) const override;
  bool holds(int64_t part, int64_t position) const override;
  Status finish() override { return settle(); }
  std::vector<std::pair<std::string, int64_t>> counters() const override;
  Status timeSteps(int64_t steps) override;
  Expected<std::vector<double>> stepSeconds() override;
  std::vector<CollectiveStats> stats() const override;
  std::vector<CollectiveRecord> recorded() const override { return recorder.last(); }
  std::string traceJson() const override { return trace ? trace() : std::string(); }

  GpuDriver &driver() const { return *options.driver; }
  const Program &program() const { return artifact->program; }

  std::shared_ptr<const Artifact> artifact;
  ExecutorOptions options;
  Recorder recorder;
  Clock clock;
  std::function<std::string()> trace;                     ///< if the backend makes one
  std::map<int64_t, std::unique_ptr<Transfer>> transfers; ///< by id
  int64_t waitsIssued = 0; ///< of the first step; captured waits count once

private:
  Status openPart(int64_t index, int64_t workspaceBytes);
  Status openTransfers();
  Status issueAll();
  Status captureAll();
  Status launchWhole();
  Status stuck() const;
  Status settle();
  Issuer *find(int64_t part, int64_t position) const;
  /// The stream for copies between steps: after the last step of a device, before the next.
  Stream betweenSteps(const Issuer &issuer) const;
  /// Prepares copies between steps, after pending writes; fails after a failed step.
  Status beginCopies();

  std::vector<std::unique_ptr<GpuPart>> parts;
  std::vector<std::unique_ptr<Issuer>> issuers;
  Graph whole = nullptr;                      ///< of all devices, for collectives in one process
  std::map<int64_t, std::byte *> constantsOf; ///< by device
  bool opened = false;
  bool timed = false;  ///< the driver takes the times of steps
  bool settled = true; ///< no work is running
  std::string failure;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_EXECUTOR_H
