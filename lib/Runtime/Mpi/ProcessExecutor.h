//===- ProcessExecutor.h - One device of a job of processes -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The device whose process id is this process's rank, in host memory.
// Execution/PartStream.h executes the steps; collectives are the plans of ranks,
// and their operations are queued in lanes, one per grouping of the devices. Lanes
// and transfers progress between steps and while a step waits.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_MPI_PROCESSEXECUTOR_H
#define TESSERA_LIB_RUNTIME_MPI_PROCESSEXECUTOR_H

#include "../Execution/Memory.h"
#include "../Execution/PartStream.h"
#include "../Ranks/ControlChannel.h"
#include "../Ranks/Guard.h"
#include "../Ranks/RankPlan.h"
#include "../Ranks/Watchdog.h"
#include "JobExecutor.h"
#include "ProcessTransfer.h"

namespace tessera::runtime {

class ProcessExecutor;

/// A collective step of a part, and its executions.
struct ProcessCollective {
  const Step *step;
  RankPlan plan;
  int64_t lane = 0;
  std::vector<int64_t> group; ///< process ids; empty without communication
  int64_t communicator = -1, rank = 0;
  int64_t guardChannel = -1; ///< -1: calls are not compared
  CallShapePtr shape;
  int64_t started = 0, completed = 0;
};

/// A part of this device.
struct ProcessPart {
  struct Grouping {
    std::vector<std::vector<int64_t>> groups;
    std::vector<int64_t> communicators;
    int64_t guardChannel = -1;
  };
  int64_t index = 0, position = 0;
  const Part *part = nullptr;
  const Code *code = nullptr;
  std::vector<ProcessCollective> collectives; ///< as Code::collectives
  std::vector<Grouping> groupings;            ///< of lane 1 + i; lane 0 is local
  std::vector<Lane> lanes;
  std::vector<Bytes> staging; ///< by lane
  std::vector<MemoryClaim> claims;
};

/// A part on this device.
class ProcessStream final : public PartStream {
public:
  ProcessStream(ProcessExecutor &executor, ProcessPart &part, std::vector<std::byte *> slots,
                std::byte *packed);
  void restart() override;
  std::string describeWait() const override;

protected:
  Expected<bool> communicate(const Instruction &instruction) override;

private:
  Expected<bool> collective(const Instruction &instruction);

  ProcessExecutor &executor;
  ProcessPart &loaded;
  bool arrived = false;  ///< at the current synchronous collective or recv
  int64_t receiving = 0; ///< the number of that recv
};

class ProcessExecutor final : public JobExecutor, public HostStreams {
public:
  ProcessExecutor(std::shared_ptr<const Artifact> artifact, std::unique_ptr<Transport> transport,
                  double seconds, HeldPlacement placement, const BackendOptions &options);
  ~ProcessExecutor() override;
  /// A collective call of all ranks; the transport has one per device of the program.
  Status open();

  Status run() override;
  Status finish() override;
  Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                   int64_t size) override;
  Status readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                  int64_t size) override;
  Expected<std::vector<const std::byte *>> readSlots(int64_t part,
                                                     const std::vector<int64_t> &positions,
                                                     int64_t slot, int64_t size, Readers readers,
                                                     std::vector<Bytes> &staging) override;
  std::byte *slotData(int64_t part, int64_t position, int64_t slot) override;
  bool holds(int64_t part, int64_t position) const override;
  bool reportsResults() const override { return transport->rank() == 0; }
  std::vector<CollectiveStats> stats() const override;
  std::vector<CollectiveRecord> recorded() const override { return recorder.last(); }
  std::string traceJson() const override;

  Status issue(Issue issue, Start start) override;

  const Program &program() const { return artifact->program; }
  const Processor &computing() const { return processor; }
  /// Starts an execution: queues its actions in its lane.
  Status begin(ProcessPart &part, ProcessCollective &collective);
  Transport &messages() { return *transport; }
  ControlChannel &controlChannel() { return conversation; }

  const std::shared_ptr<const Artifact> artifact;
  std::map<int64_t, std::unique_ptr<ProcessTransfer>> transfers; ///< by id
  Recorder recorder;
  Clock clock;
  CallLog log;

private:
  Status load();
  Status loadPart(int64_t index);
  Status loadTransfers();
  /// Advances lanes and transfers; returns whether any progressed.
  Expected<bool> progress();
  Status runSteps();
  Status openGuard(ProcessPart::Grouping &grouping);
  void guard(Lane &lane, const ProcessCollective &collective);
  bool isIdle() const;
  Status timeoutStatus() const;
  std::byte *resolve(const ProcessPart &part, int64_t lane, int64_t address) const;
  std::string countsText() const;

  const std::unique_ptr<Transport> transport;
  mutable ControlChannel conversation; ///< reports are gathered, too
  std::unique_ptr<HostEngine> engine;
  Memory memory;
  KernelLibrary kernels;
  PackedWeights packed;
  WorkerPool pool;
  const int64_t workers;
  const Processor processor;
  const bool trace, guardsCalls;
  const bool mayDropConstants;
  Track track;
  std::vector<Code> codes; ///< of all parts
  std::vector<std::unique_ptr<ProcessPart>> parts;
  std::vector<std::unique_ptr<ProcessStream>> streams;
  std::vector<PartStream *> order;    ///< the same
  std::vector<std::string> counted;   ///< of all ranks, since the last `finish`
  std::unique_ptr<Watchdog> watchdog; ///< null where there is none
  bool failed = false;
  std::string failure;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_MPI_PROCESSEXECUTOR_H
