//===- Driver.h - The executor's interface to a GPU -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The subset of a GPU driver that the execution of steps needs. `cuda` opens
// libcuda.so.1 with dlopen; `stub` uses host memory and emulated kernels. Every
// call with a cost is counted here, so that a test can check that a steady state
// allocates nothing.
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

/// Operands of a matrix product.
struct GemmOperands {
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr;
};

/// Calls since the creation of the driver.
struct DriverCounts {
  int64_t allocations = 0, streams = 0, events = 0, graphs = 0;
  int64_t synchronisations = 0; ///< the host waited for a stream during a step
  int64_t reads = 0;            ///< the host waited to read results
  int64_t launches = 0;         ///< issued operations, including captured ones
  int64_t waits = 0, records = 0;
  int64_t graphLaunches = 0;
  int64_t hostToDevice = 0, deviceToHost = 0; ///< bytes
  int64_t kept = 0; ///< bytes of slots copied on the device, to or from buffers
};

class GpuDriver {
public:
  virtual ~GpuDriver() = default;
  GpuDriver() = default;
  GpuDriver(const GpuDriver &) = delete;
  GpuDriver &operator=(const GpuDriver &) = delete;

  /// Zeroed memory of a device, aligned to 256 bytes; freed with the driver.
  virtual Expected<std::byte *> allocate(int64_t device, int64_t bytes) = 0;
  /// The same for a value that outlives its program: not zeroed, until `freeKept`. Thread-safe.
  virtual Expected<std::byte *> allocateKept(int64_t device, int64_t bytes) = 0;
  virtual void freeKept(std::byte *data) = 0;
  /// Frees everything except such values. No work may be running; afterwards only `read` of a kept
  /// value, `order`, `freeKept` and the destructor may be called.
  virtual void release() = 0;
  /// `name` is used in messages.
  virtual Expected<Stream> createStream(int64_t device, std::string name) = 0;
  virtual Expected<Event> createEvent(int64_t device) = 0;
  /// Devices with equal numbers share a memory, which holds constants once.
  virtual int64_t memoryOf(int64_t device) const { return device; }
  /// Loads the kernels of the artifact on a device.
  virtual Status load(int64_t device, const Artifact &artifact) = 0;

  virtual Status record(Event event, Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  /// Whether the recorded work is done, without waiting; true for an event that was never recorded.
  virtual Expected<bool> isDone(Event event) = 0;
  virtual Status copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  virtual Status setIndex(Issue issue, std::byte *to, int64_t value) = 0;
  virtual Status move(Issue issue, MoveJob job) = 0;
  /// Issues all launches of the step's kernel; `slots` are the pointers of its slots.
  virtual Status launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                        std::byte *workspace) = 0;
  /// `bias` is null if the step has none.
  virtual Status gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
                      const void *bias, std::byte *workspace) = 0;
  /// Issues products that differ only in their operands (Operation::group) as one call. Returns
  /// false, without issuing anything, if the driver has no such call.
  virtual Expected<bool> gemmGroup(Issue issue, const GemmStep &step,
                                   const std::vector<GemmOperands> &operands,
                                   std::byte *workspace) {
    return false;
  }
  virtual Status prepareGroup(int64_t device, const GemmStep &step,
                              const std::vector<GemmOperands> &operands) {
    return {};
  }
  /// Prepares the first `gemm` of this step, for example chooses an algorithm: libraries may refuse
  /// to do so during the capture of a graph.
  virtual Status prepareGemm(const GemmStep &step, const void *a, const void *b, void *c,
                             const void *bias) {
    return {};
  }
  /// Contract steps are compiled for hosts only; GPU programs have kernels for contractions.
  virtual bool runsContractions() const { return false; }
  virtual Status contract(Issue issue, const ContractStep &step, const void *a, const void *b,
                          void *c) {
    return Status::error("this driver does not support 'contract' steps");
  }

  /// Enclose work of others on a stream of this driver (library calls), for traces.
  virtual Status beginTimed(const Issue &issue) { return {}; }
  virtual Status endTimed(const Issue &issue) { return {}; }

  /// Prepares the times of `steps` steps, which marks at their begin and end on a stream delimit.
  /// Marks beyond them have no effect.
  virtual Status timeSteps(int64_t steps) { return {}; }
  virtual Status mark(Stream stream) { return {}; }
  /// The seconds between the marks of each step so far; no work may be running.
  virtual Expected<std::vector<double>> stepSeconds() { return std::vector<double>(); }

  /// Work issued to `origin`, and to streams that wait for it, is recorded instead of run.
  virtual Status beginCapture(Stream origin) = 0;
  virtual Expected<Graph> endCapture(Stream origin) = 0;
  virtual Status launchGraph(Graph graph, Stream stream) = 0;

  /// Allows the calling thread to call the other functions.
  virtual Status enter() { return {}; }
  /// Waits until all work issued to the stream is done, for a step or to read results. False if
  /// this depends on work that this process has not issued yet (only reported by drivers that do
  /// not run by themselves).
  virtual Expected<bool> synchronize(Stream stream, bool forStep) = 0;
  /// Runs ready work if the driver does not run by itself; returns the errors so far.
  virtual Status progress() = 0;
  /// Copy between host memory and a device whose streams are idle. `write` may return before the
  /// bytes arrive, but after it has read `from`; finishWrites() waits for them.
  virtual Status write(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Called before streams read written bytes, or bytes zeroed by `allocate`.
  virtual Status finishWrites() { return {}; }
  virtual Status read(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Like `write`, in stream order.
  virtual Status upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) = 0;
  /// Orders later work on a stream of another driver, or of a foreign one, after an event of this
  /// driver; and conversely records an event of this driver on a foreign stream.
  virtual Status waitElsewhere(GpuDriver &other, Stream stream, Event event) = 0;
  virtual Status recordElsewhere(GpuDriver &other, Event event, Stream stream) = 0;
  /// The CUDA stream with this handle (1 is the legacy default stream); null if there is none.
  virtual Stream foreignStream(uint64_t handle) { return nullptr; }
  /// DeviceBuffer::ordinal.
  virtual int64_t ordinal() const { return -1; }
  /// Scratch memory for a product, in bytes.
  virtual int64_t gemmWorkspaceBytes() const { return 0; }
  /// The same for the kernels of the loaded artifact.
  virtual int64_t kernelWorkspaceBytes() const { return 0; }
  /// Whether issues should list their accesses.
  virtual bool checksTouches() const { return false; }
  /// Whether host code can access device memory.
  virtual bool hostReachable() const { return false; }
  /// Whether issued work cannot proceed unless more is issued.
  virtual bool isStuck() const { return false; }
  /// The step at which a device of a stuck process waits for others; null if it does not.
  virtual const Step *stuckAt(int64_t device) const { return nullptr; }

  const DriverCounts &counts() const { return counted; }
  void countKept(int64_t bytes) { counted.kept += bytes; }

protected:
  DriverCounts counted;
  std::vector<MemoryClaim> claims; ///< of memory from `allocate`
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_DRIVER_H
