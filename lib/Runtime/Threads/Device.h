//===- Device.h - A virtual device: streams of steps that can pause --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_DEVICE_H
#define TESSERA_LIB_RUNTIME_THREADS_DEVICE_H

#include "../Execution/Code.h"
#include "../Execution/KernelLibrary.h"
#include "Channel.h"

#include <map>

namespace tessera::runtime {

/// A part as all its devices share it.
struct LoadedPart {
  int64_t index = 0;
  const Part *part = nullptr;
  Code code;
  std::vector<std::unique_ptr<CollectiveOperation>> collectives; ///< as Code::collectives
};

/// What devices need of their executor.
struct Machine {
  Context &context;
  const KernelLibrary &kernels;
  std::map<int64_t, std::unique_ptr<Channel>> channels; ///< by transfer id
  bool splitGemms = false; ///< fewer devices than workers: large products become several tasks
  bool trace = false;
  std::atomic<bool> failed{false};
  std::mutex failureMutex;
  std::string failure; ///< of the first that failed

  void fail(std::string message);
};

/// One part on one device: a place in its code that advances until it must wait.
class Stream {
public:
  Stream(Machine &machine, const LoadedPart &part, int64_t device);

  /// Back to the first step.
  void restart();
  bool finished() const { return place == part->code.instructions.size(); }
  /// Order of the next step.
  int64_t order() const { return part->code.instructions[place].order; }
  /// Executes the next step; false when it must wait for others.
  bool advance(Track *track);
  /// What a stream that cannot advance is waiting for, in words.
  std::string describeWait() const;

private:
  using Op = Instruction::Op;
  bool execute(const Instruction &instruction);
  void launch(const LaunchStep &step);
  void gemm(const GemmStep &step);
  bool collective(const Instruction &instruction);
  bool wait(const Instruction &instruction) const;
  void copy(const CopyStep &step) const;
  bool beginLoop(const Instruction &instruction);
  int64_t valueOf(int64_t slot) const;
  void setIndex(const LoopStep &loop, int64_t value) const;
  void *at(int64_t slot) const { return slots[slot]; }

  Machine *machine;
  const LoadedPart *part;
  int64_t device;
  std::vector<void *> slots;
  std::vector<void *> arguments; ///< of the launch at hand; grows once
  size_t place = 0;
  size_t next = 0;      ///< where to go when the step at `place` is done
  bool arrived = false; ///< at the synchronous collective at `place`
  int64_t beganNs = -1; ///< when the step at `place` was first tried; -1 before
  std::vector<LoopState> loops;
  std::vector<int64_t> started;           ///< executions of each collective that it arrived at
  std::map<int64_t, int64_t> transferred; ///< messages sent or received, by transfer id
};

/// A device with the streams of all its parts. It runs on one worker at a time, and holds none
/// while it waits.
class Device final : public Job, public Waiter {
public:
  Device(Machine &machine, int64_t id) : id(id), machine(machine) {}

  void addStream(const LoadedPart &part) { streams.emplace_back(machine, part, id); }
  /// Goes back to the first step. All devices are prepared before the first of them is pushed: a
  /// notification must not queue one that is about to be pushed.
  void prepare();
  void run() override;
  void notify() override;
  bool finished() const;
  /// What it waits for; empty when it is finished.
  std::string describeWait() const;

  const int64_t id; ///< process id
  Track track;

private:
  void runStreams();

  enum State : int { idle, queued, running, notified };
  Machine &machine;
  std::vector<Stream> streams;
  std::atomic<int> state{idle};
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_DEVICE_H
