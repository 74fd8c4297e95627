//===- Executor.h - A program opened on devices -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface of every backend, and its reports.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_EXECUTOR_H
#define TESSERA_RUNTIME_EXECUTION_EXECUTOR_H

#include "tessera/Runtime/Artifact/Artifact.h"

#include <functional>
#include <memory>

namespace tessera::runtime {

/// Default limit, in seconds, of processes of a job waiting for each other: MPI and NCCL may need
/// most of a minute to start.
inline constexpr double kDefaultTimeout = 120;

/// What a backend needs to open its devices. Backends ignore what does not apply to them.
struct BackendOptions {
  int64_t devices = 0;       ///< devices to offer; 0 = as many as the program needs
  int64_t cores = 0;         ///< workers; 0 = one for each physical core that the process may use
  bool trace = false;        ///< record what every device does, for traceJson
  uint64_t scheduleSeed = 0; ///< of `stub`: selects a legal order of the streams
  double timeoutSeconds = 0; ///< how long processes wait for each other; 0 = kDefaultTimeout
  /// For processes: the folder for dumps of a rank's last calls after a failure; empty: that of
  /// TESSERA_DUMP_DIR, else none.
  std::string dumpFolder = {};
  bool guardsCalls = false; ///< processes compare every call before data moves
  /// Precision of f32 products on GPUs: "highest" (f32) or "high" (TF32); empty means "highest".
  std::string precision = {};
  /// Pins workers, and arenas to memory nodes, where this process has the machine for itself.
  bool pins = false;
  /// Nothing but the executor reads the artifact's constants from now on: it may give back the
  /// memory of those that it keeps in another form.
  bool ownsConstants = false;
};

/// Bytes moved by a collective or transfer so far, counted by the routines that move them; several
/// receivers of one value count as in a ring or chain.
struct CollectiveStats {
  int64_t id = 0;
  std::string kind; ///< "all_reduce", …, "transfer"
  std::string loc;
  int64_t executions = 0;
  int64_t predictedWireBytes = 0;                ///< of one execution, by the compiler
  std::vector<int64_t> sentBytes, receivedBytes; ///< by process id, over all executions

  /// The most that a device has sent or received; predicted as wire bytes times executions.
  int64_t countedWireBytes() const;
  int64_t totalBytes() const; ///< received, summed over devices
};

/// One entry of the recorder, which keeps the last 1024 collectives.
struct CollectiveRecord {
  int64_t id = 0;
  std::string_view kind, loc; ///< of the executor's program
  int64_t sequence = 0;       ///< number of earlier executions
  int64_t firstDevice = 0;    ///< of the group that took part
  int64_t arrivedNs = 0;      ///< when the last device arrived, since the executor was opened
  int64_t finishedNs = 0;
};

/// A copy of a slot in memory of its device, freed with the last owner, possibly after the
/// executor. Used by one thread at a time.
class DeviceBuffer {
public:
  virtual ~DeviceBuffer() = default;
  virtual std::byte *data() const = 0; ///< an address of the device
  virtual int64_t size() const = 0;
  /// The number of the GPU, as CUDA numbers those visible to the process; -1: host memory.
  virtual int64_t ordinal() const = 0;
  /// Waits for the bytes, and copies them.
  virtual Status read(std::byte *to) = 0;
  /// Makes later work on a stream of CUDA (1: the legacy default stream, 2: that of the thread)
  /// wait for the bytes. The memory is then not reused for other values.
  virtual Status handOver(uint64_t stream) = 0;
};

/// A program opened on devices. Not thread-safe; a failed run leaves it unusable.
class Executor {
public:
  virtual ~Executor() = default;
  /// Executes every part once on every device.
  virtual Status run() = 0;
  /// Copies `size` bytes to or from the start of a device's slot. Positions are of the part's mesh.
  virtual Status writeSlot(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                           int64_t size) = 0;
  virtual Status readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                          int64_t size) = 0;
  /// The same for a device in this process, without the others.
  virtual Status readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                          int64_t size);
  /// The slot's memory if the host can access it, else null.
  virtual std::byte *slotData(int64_t part, int64_t position, int64_t slot) { return nullptr; }
  /// Values of more bytes are copied in parts by all workers: clearing the pages of fresh memory,
  /// at the first access, is most of the time of a first step.
  static constexpr int64_t kPartBytes = int64_t(4) << 20;
  /// Runs body(0) … body(count-1), on idle workers too if there are any; returns when all are done.
  virtual void parallelFor(int64_t count, const std::function<void(int64_t)> &body);
  /// Whether the host can read slots only by a copy: then results are worth keeping on devices.
  virtual bool keepsOnDevices() const { return false; }
  /// A copy of the first `size` bytes of a slot, unaffected by later steps. Made asynchronously on
  /// the device, after all issued work.
  virtual Expected<std::shared_ptr<DeviceBuffer>> keepSlot(int64_t part, int64_t position,
                                                           int64_t slot, int64_t size);
  /// Whether `fillSlot` accepts such a buffer: it is on the device's GPU.
  virtual bool takes(int64_t part, int64_t position, const DeviceBuffer &buffer) const {
    return false;
  }
  /// Copies a buffer to a slot asynchronously on the device.
  virtual Status fillSlot(int64_t part, int64_t position, int64_t slot, DeviceBuffer &buffer);
  /// The same for foreign memory, after earlier and before later work on the legacy default stream.
  /// `ordinal` is that of the memory's GPU.
  virtual Status fillSlotFrom(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                              int64_t size);
  virtual bool takesMemory(int64_t part, int64_t position, int64_t ordinal) const { return false; }
  /// Whether a device is in this process; writes to others are dropped.
  virtual bool holds(int64_t part, int64_t position) const { return true; }
  /// Whether this process reports for the job: only it prints and writes files.
  virtual bool reportsResults() const { return true; }
  /// The processes that need a read value: all, or the one that reports.
  enum class Readers { all, reporter };
  /// The first `size` bytes of a slot of several devices, in place or copied to `staging`; null in
  /// a process that neither has nor needs them. Called by all processes together.
  virtual Expected<std::vector<const std::byte *>>
  readSlots(int64_t part, const std::vector<int64_t> &positions, int64_t slot, int64_t size,
            Readers readers, std::vector<Bytes> &staging);
  virtual std::vector<CollectiveStats> stats() const { return {}; }
  virtual std::vector<CollectiveRecord> recorded() const { return {}; }
  /// Waits for asynchronous work, so that a time taken afterwards includes the steps.
  virtual Status finish() { return {}; }
  /// Counts of calls of the backend's driver so far, by name ("allocations", "launches", …).
  virtual std::vector<std::pair<std::string, int64_t>> counters() const { return {}; }
  /// Takes the times of the next `steps` steps on the devices, for stepSeconds.
  virtual Status timeSteps(int64_t steps) { return {}; }
  /// How long the devices took for each of these steps, in seconds, by events of the first device
  /// in this process; waits for the steps. Empty if the backend has no such times; zeros on `stub`,
  /// which has no clock.
  virtual Expected<std::vector<double>> stepSeconds() { return std::vector<double>(); }
  /// Chrome/Perfetto trace, one track per device; empty without BackendOptions::trace.
  virtual std::string traceJson() const { return {}; }
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_EXECUTOR_H
