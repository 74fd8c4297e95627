//===- Executor.h - A program opened on devices -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every backend implements, and what it says of its work.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_EXECUTION_EXECUTOR_H
#define TESSERA_RUNTIME_EXECUTION_EXECUTOR_H

#include "tessera/Runtime/Artifact/Artifact.h"

#include <memory>

namespace tessera::runtime {

/// Seconds that processes of a job wait for each other where nobody says how long: MPI and NCCL may
/// need most of a minute to begin.
inline constexpr double kDefaultTimeout = 120;

struct BackendOptions {
  int64_t devices = 0;       ///< devices to offer; 0 = as many as the program needs
  int64_t cores = 0;         ///< workers of `threads`; 0 = as many as the machine has
  bool trace = false;        ///< record what every device does, for traceJson
  uint64_t scheduleSeed = 0; ///< of `stub`: which legal order of the streams is run
  double timeoutSeconds = 0; ///< how long processes wait for each other; 0 = kDefaultTimeout
  /// Of processes: the folder that gets a rank's last calls when one fails; empty: that of
  /// TESSERA_DUMP_DIR, else none.
  std::string dumpFolder = {};
  bool guardsCalls = false; ///< processes compare every call before data moves
  /// Precision of f32 products on GPUs: "highest" (f32) or "high" (TF32); empty means "highest".
  std::string precision = {};
};

/// What a collective or transfer has moved so far. Bytes are counted by the routines that move
/// them; several receivers of one value count as a ring or chain would send it.
struct CollectiveStats {
  int64_t id = 0;
  std::string kind; ///< "all_reduce", …, "transfer"
  std::string loc;
  int64_t executions = 0;
  int64_t predictedWireBytes = 0;                ///< of one execution, by the compiler
  std::vector<int64_t> sentBytes, receivedBytes; ///< by process id, over all executions

  /// Most that a device has sent or received: what wire bytes times executions predicts.
  int64_t countedWireBytes() const;
  int64_t totalBytes() const; ///< received, summed over devices
};

/// One entry of the recorder, which keeps the last 1024 collectives.
struct CollectiveRecord {
  int64_t id = 0;
  std::string_view kind, loc; ///< of the executor's program
  int64_t sequence = 0;       ///< how often this collective had run before
  int64_t firstDevice = 0;    ///< of the group that took part
  int64_t arrivedNs = 0;      ///< when the last device arrived, since the executor was opened
  int64_t finishedNs = 0;
};

/// The bytes of a slot, kept in memory of its device beside the program's own, until the last owner
/// goes; the executor may go before. Methods are those of one thread at a time.
class DeviceBuffer {
public:
  virtual ~DeviceBuffer() = default;
  virtual std::byte *data() const = 0; ///< an address of the device
  virtual int64_t size() const = 0;
  /// Of the GPU, by number, as CUDA counts those that a process sees; -1: host memory.
  virtual int64_t ordinal() const = 0;
  /// Waits until the bytes are there, and copies them.
  virtual Status read(std::byte *to) = 0;
  /// Work that is given from now on to a stream of CUDA (1: the legacy default stream, 2: that of
  /// the thread) finds the bytes. The memory is not used again for other values then.
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
  /// The same of a device in this process, without the others.
  virtual Status readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                          int64_t size);
  /// The slot's memory where the host can reach it, else null.
  virtual std::byte *slotData(int64_t part, int64_t position, int64_t slot) { return nullptr; }
  /// Whether slots are in memory that only a copy reads: then results are worth keeping there.
  virtual bool keepsOnDevices() const { return false; }
  /// A copy of the first `size` bytes of a slot, which stays when steps overwrite the slot. Made on
  /// the device, behind what was issued; nobody waits for it.
  virtual Expected<std::shared_ptr<DeviceBuffer>> keepSlot(int64_t part, int64_t position,
                                                           int64_t slot, int64_t size);
  /// Whether `fillSlot` takes such a buffer: it is of a GPU that the device has.
  virtual bool takes(int64_t part, int64_t position, const DeviceBuffer &buffer) const {
    return false;
  }
  /// Copies a buffer to a slot on the device; nobody waits for it.
  virtual Status fillSlot(int64_t part, int64_t position, int64_t slot, DeviceBuffer &buffer);
  /// The same of memory of somebody else, behind what the legacy default stream has been given;
  /// what that is given later finds the copy done. `ordinal` is that of the memory's GPU.
  virtual Status fillSlotFrom(int64_t part, int64_t position, int64_t slot, const std::byte *data,
                              int64_t size);
  virtual bool takesMemory(int64_t part, int64_t position, int64_t ordinal) const { return false; }
  /// Whether a device is in this process; what is written to others is dropped.
  virtual bool holds(int64_t part, int64_t position) const { return true; }
  /// Whether this process speaks for all that run the program: it alone prints and writes files.
  virtual bool speaks() const { return true; }
  /// Who needs what is read: all processes, or the one that speaks.
  enum class Readers { all, speaker };
  /// The first `size` bytes of a slot of several devices, where they are, or copied to `staging`;
  /// null in a process that does not need what it has not. Called by all processes together.
  virtual Expected<std::vector<const std::byte *>>
  readSlots(int64_t part, const std::vector<int64_t> &positions, int64_t slot, int64_t size,
            Readers readers, std::vector<Bytes> &staging);
  virtual std::vector<CollectiveStats> stats() const { return {}; }
  virtual std::vector<CollectiveRecord> recorded() const { return {}; }
  /// Waits for what runs by itself; a time that is taken behind it is that of the steps.
  virtual Status finish() { return {}; }
  /// What the backend's driver was called for so far, by name ("allocations", "launches", …).
  virtual std::vector<std::pair<std::string, int64_t>> counters() const { return {}; }
  /// Chrome/Perfetto trace, a track a device; empty without BackendOptions::trace.
  virtual std::string traceJson() const { return {}; }
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_EXECUTION_EXECUTOR_H
