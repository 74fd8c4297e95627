//===- Device.h - A virtual device: streams that can pause ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_THREADS_DEVICE_H
#define TESSERA_LIB_RUNTIME_THREADS_DEVICE_H

#include "../Execution/PartStream.h"
#include "Channel.h"

#include <map>

namespace tessera::runtime {

/// The state of a part shared by its devices.
struct LoadedPart {
  int64_t index = 0;
  const Part *part = nullptr;
  Code code;
  std::vector<std::unique_ptr<CollectiveOperation>> collectives; ///< as Code::collectives
};

/// State of the executor shared by devices.
struct Machine {
  Context &context;
  Processor processor;
  std::map<int64_t, std::unique_ptr<Channel>> channels; ///< by transfer id
  bool trace = false;
  std::atomic<bool> failed{false};
  std::mutex failureMutex;
  std::string failure; ///< of the first that failed

  void fail(std::string message);
};

/// One part on one virtual device.
class Stream final : public PartStream {
public:
  Stream(Machine &machine, const LoadedPart &part, int64_t device);

  void restart() override;
  std::string describeWait() const override;

protected:
  Expected<bool> communicate(const Instruction &instruction) override;

private:
  bool collective(const Instruction &instruction);
  bool wait(const Instruction &instruction) const;

  Machine *machine;
  const LoadedPart *loaded;
  bool arrived = false;                   ///< at the current synchronous collective
  std::vector<int64_t> started;           ///< executions of each collective that it arrived at
  std::map<int64_t, int64_t> transferred; ///< messages sent or received, by transfer id
};

/// A device with the streams of all its parts. It runs on one worker at a time, and occupies none
/// while it waits.
class Device final : public Job, public Waiter {
public:
  Device(Machine &machine, int64_t id) : id(id), machine(machine) {}

  void addStream(const LoadedPart &part) {
    streams.push_back(std::make_unique<Stream>(machine, part, id));
    order.push_back(streams.back().get());
  }
  /// Resets to the first step. All devices are prepared before the first of them is pushed: a
  /// notification must not queue one that is about to be pushed.
  void prepare();
  void run() override;
  void notify() override;
  bool finished() const;
  /// A description of its wait; empty if it has finished.
  std::string describeWait() const;

  const int64_t id; ///< process id
  Track track;

private:
  void runStreams();

  enum State : int { idle, queued, running, notified };
  Machine &machine;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<PartStream *> order; ///< the same
  std::atomic<int> state{idle};
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_THREADS_DEVICE_H
