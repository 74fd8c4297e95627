//===- Driver.h - What the executor needs of a GPU --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The subset of a GPU's driver that steps are executed with. `cuda` opens
// libcuda.so.1 with dlopen, `stub` is host memory and emulated kernels. Every
// call that costs something is counted here, so that "nothing is allocated in a
// steady state" is a number a test reads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_DRIVER_H
#define TESSERA_LIB_RUNTIME_GPU_DRIVER_H

#include "../Execution/DeviceMemory.h"
#include "../Execution/MoveJob.h"
#include "tessera/Runtime/Artifact/Artifact.h"

namespace tessera::runtime::gpu {

struct EventObject;
struct GraphObject;
using Stream = StreamObject *;
using Event = EventObject *;
using Graph = GraphObject *;

/// Operands of a product.
struct GemmOperands {
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr;
};

/// Calls since the driver was made.
struct DriverCounts {
  int64_t allocations = 0, streams = 0, events = 0, graphs = 0;
  int64_t synchronisations = 0; ///< a step had the host wait for a stream
  int64_t reads = 0;            ///< the host waited since it wanted results
  int64_t launches = 0;         ///< operations issued, captured ones included
  int64_t waits = 0, records = 0;
  int64_t graphLaunches = 0;
  int64_t hostToDevice = 0, deviceToHost = 0; ///< bytes
  int64_t kept = 0; ///< bytes of slots copied on the device, to buffers and from them
};

class GpuDriver {
public:
  virtual ~GpuDriver() = default;
  GpuDriver() = default;
  GpuDriver(const GpuDriver &) = delete;
  GpuDriver &operator=(const GpuDriver &) = delete;

  /// Zeroed memory of a device, aligned to 256 bytes, until the driver goes.
  virtual Expected<std::byte *> allocate(int64_t device, int64_t bytes) = 0;
  /// The same of a value that outlives its program: until `freeKept`, not zeroed. Thread-safe.
  virtual Expected<std::byte *> allocateKept(int64_t device, int64_t bytes) = 0;
  virtual void freeKept(std::byte *data) = 0;
  /// Frees all that was made here but for such values. Nothing runs any more; only `read` of a kept
  /// value, `order`, `freeKept` and the destructor may follow.
  virtual void release() = 0;
  /// `name` is for messages.
  virtual Expected<Stream> createStream(int64_t device, std::string name) = 0;
  virtual Expected<Event> createEvent(int64_t device) = 0;
  /// Devices with equal numbers share a memory: constants are there once.
  virtual int64_t memoryOf(int64_t device) const { return device; }
  /// Opens the kernels of the artifact on a device.
  virtual Status load(int64_t device, const Artifact &artifact) = 0;

  virtual Status record(Event event, Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  /// Whether what was recorded is done; does not wait. An event that was never recorded is.
  virtual Expected<bool> isDone(Event event) = 0;
  virtual Status copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  virtual Status setIndex(Issue issue, std::byte *to, int64_t value) = 0;
  virtual Status move(Issue issue, MoveJob job) = 0;
  /// All launches of the step's kernel; pointers are those of its slots.
  virtual Status launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                        std::byte *workspace) = 0;
  /// `bias` is null where the step has none.
  virtual Status gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
                      const void *bias, std::byte *workspace) = 0;
  /// Products of one description on several operands (Operation::group) as one call. False, and
  /// nothing is issued, where there is none.
  virtual Expected<bool> gemmGroup(Issue issue, const GemmStep &step,
                                   const std::vector<GemmOperands> &operands,
                                   std::byte *workspace) {
    return false;
  }
  virtual Status prepareGroup(int64_t device, const GemmStep &step,
                              const std::vector<GemmOperands> &operands) {
    return {};
  }
  /// What `gemm` needs to know before its first call for this step: chosen here, since libraries
  /// may refuse to answer while a graph is captured.
  virtual Status prepareGemm(const GemmStep &step, const void *a, const void *b, void *c,
                             const void *bias) {
    return {};
  }
  /// Contractions that are steps are those of hosts; drivers of devices have them as kernels.
  virtual bool runsContractions() const { return false; }
  virtual Status contract(Issue issue, const ContractStep &step, const void *a, const void *b,
                          void *c) {
    return Status::error("this driver does not support 'contract' steps");
  }

  /// Around what others issue to a stream of this driver (calls of a library), for traces.
  virtual Status beginTimed(const Issue &issue) { return {}; }
  virtual Status endTimed(const Issue &issue) { return {}; }

  /// What is issued to `origin`, and to streams that wait for it, is recorded, not run.
  virtual Status beginCapture(Stream origin) = 0;
  virtual Expected<Graph> endCapture(Stream origin) = 0;
  virtual Status launchGraph(Graph graph, Stream stream) = 0;

  /// Makes the calling thread one that may call the rest.
  virtual Status enter() { return {}; }
  /// Waits until everything issued to the stream is done, for a step or to read results. False: it
  /// waits for what this process has not issued yet (only drivers that do not run by themselves say
  /// so).
  virtual Expected<bool> synchronize(Stream stream, bool forStep) = 0;
  /// Runs what can run, where nothing runs by itself; reports what went wrong so far.
  virtual Status progress() = 0;
  /// Between host memory and a device whose streams are idle. What is written may still be on its
  /// way when `write` returns, though `from` may be used again; finishWrites() waits for it.
  virtual Status write(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Called before streams read what was written, or zeroed by `allocate`.
  virtual Status finishWrites() { return {}; }
  virtual Status read(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// As `write`, in the order of the stream.
  virtual Status upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// What a stream of another driver, or of somebody else, is given from now on finds done what
  /// this driver's event was recorded behind; and the other way round, of an event of this driver
  /// recorded on a foreign stream.
  virtual Status waitElsewhere(GpuDriver &other, Stream stream, Event event) = 0;
  virtual Status recordElsewhere(GpuDriver &other, Event event, Stream stream) = 0;
  /// The stream of CUDA with that handle: 1 is the legacy default stream; null where there is none.
  virtual Stream foreignStream(uint64_t handle) { return nullptr; }
  /// DeviceBuffer::ordinal.
  virtual int64_t ordinal() const { return -1; }
  /// Scratch that a product may use, in bytes.
  virtual int64_t gemmWorkspaceBytes() const { return 0; }
  /// The same for the kernels of the loaded artifact.
  virtual int64_t kernelWorkspaceBytes() const { return 0; }
  /// Whether issues should say what they touch.
  virtual bool checksTouches() const { return false; }
  /// Whether host code may look into device memory.
  virtual bool hostReachable() const { return false; }
  /// Whether something issued cannot go on, though nothing more will be issued.
  virtual bool isStuck() const { return false; }
  /// The step in which a device of a stuck process waits for others; null when it does not.
  virtual const Step *stuckAt(int64_t device) const { return nullptr; }

  const DriverCounts &counts() const { return counted; }
  void countKept(int64_t bytes) { counted.kept += bytes; }

protected:
  DriverCounts counted;
  std::vector<MemoryClaim> claims; ///< of what `allocate` gave
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_DRIVER_H
