//===- StubDriver.h - Emulate a GPU in host memory --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams and events become a graph of operations, which is run in a seeded random
// order among those that streams and events allow: a legal order of a real GPU,
// which may differ between runs. The accesses of every operation are checked
// against those of all operations that are not ordered with it (Hazards.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_STUBDRIVER_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_STUBDRIVER_H

#include "../../Ranks/Engine.h"
#include "Hazards.h"
#include "StubKernels.h"
#include "tessera/Runtime/Execution/PackedProducts.h"

#include <functional>
#include <map>
#include <mutex>
#include <random>

namespace tessera::runtime::gpu {

/// A rank's part of a call, performed when its operation is reached.
struct StubMeeting {
  int64_t communicator = 0, rank = 0;
  bool isExchange = false;
  RankCall call;
  const std::byte *send = nullptr;
  std::byte *receive = nullptr;
  std::vector<RankMessage> messages;
};

/// The work of an operation, shared by all replays of a captured one.
struct StubWork {
  const Step *step = nullptr;
  const char *what = "";
  int64_t device = 0;
  std::vector<Touch> touches;
  std::function<Status()> run; ///< null with a meeting
  std::optional<StubMeeting> meeting;
};

/// An operation of the graph, performed once, after all its predecessors.
struct StubNode {
  std::shared_ptr<const StubWork> work;
  Accessor accessor;
  VectorClock clock;
  int64_t missing = 0; ///< predecessors that are not done
  bool done = false;
  int64_t openMessages = 0; ///< of an exchange that has begun
  std::vector<std::shared_ptr<StubNode>> followers;
};
using StubNodePtr = std::shared_ptr<StubNode>;

/// Performs the calls of ranks after all have arrived.
class StubMeetings {
public:
  virtual ~StubMeetings() = default;
  /// Called when `node` is next on its stream; adds the nodes that complete with it to `finished`.
  virtual Status arrive(const StubNodePtr &node, std::vector<StubNodePtr> &finished) = 0;
};

class StubDriver final : public GpuDriver {
public:
  explicit StubDriver(uint64_t seed);
  ~StubDriver() override;
  /// Multiplies like the host's devices, bit for bit. The program outlives this.
  void multiplyAsHost(const Program &program) { packing = planPacking(program); }
  Status timeSteps(int64_t steps) override {
    timedSteps = steps;
    return {};
  }
  Status mark(Stream) override {
    ++marks;
    return {};
  }
  Expected<std::vector<double>> stepSeconds() override {
    return std::vector<double>(static_cast<size_t>(std::min(timedSteps, marks / 2)), 0.0);
  }

  Expected<std::byte *> allocate(int64_t device, int64_t bytes) override;
  Expected<std::byte *> allocateKept(int64_t device, int64_t bytes) override;
  void freeKept(std::byte *data) override;
  void release() override { memory.clear(); }
  Expected<Stream> createStream(int64_t device, std::string name) override;
  Expected<Event> createEvent(int64_t device) override;
  Status load(int64_t device, const Artifact &artifact) override;
  Status record(Event event, Stream stream) override;
  Status wait(Stream stream, Event event) override;
  Expected<bool> isDone(Event event) override;
  Status copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status setIndex(Issue issue, std::byte *to, int64_t value) override;
  Status move(Issue issue, MoveJob job) override;
  Status launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                std::byte *workspace) override;
  Status gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
              const void *bias, std::byte *workspace) override;
  bool runsContractions() const override { return true; }
  /// Runs the launches that round operands to TF32; call it before `load`.
  void useTf32() { tf32 = true; }
  Status contract(Issue issue, const ContractStep &step, const void *a, const void *b,
                  void *c) override;
  Status beginCapture(Stream origin) override;
  Expected<Graph> endCapture(Stream origin) override;
  Status launchGraph(Graph graph, Stream stream) override;
  Expected<bool> synchronize(Stream stream, bool forStep) override;
  Status progress() override;
  Status write(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status read(int64_t device, std::byte *to, const std::byte *from, int64_t bytes) override;
  Status upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) override;
  /// Operations of two drivers have no order: the pending work of the other is done immediately.
  Status waitElsewhere(GpuDriver &, Stream, Event) override { return progress(); }
  Status recordElsewhere(GpuDriver &other, Event, Stream) override { return other.progress(); }
  bool checksTouches() const override { return true; }
  int64_t kernelWorkspaceBytes() const override { return kernels ? kernels->workspaceBytes() : 0; }
  bool hostReachable() const override { return true; }
  bool isStuck() const override { return unfinished > 0 && ready.empty(); }
  const Step *stuckAt(int64_t device) const override;

  /// Issues an operation that ranks perform together; `meetings` must outlive it.
  Status rendezvous(Issue issue, StubMeeting meeting);
  void setMeetings(StubMeetings *made) { meetings = made; }
  /// Called with every completed operation.
  std::function<void(const StubWork &)> finished;

private:
  Status enqueue(Issue issue, std::function<Status()> run, std::optional<StubMeeting> meeting = {});
  StubNodePtr submit(int64_t chain, std::shared_ptr<const StubWork> work,
                     const std::vector<StubNodePtr> &after);
  Status execute(const StubNodePtr &node);
  void complete(const StubNodePtr &node);

  bool tf32 = false;
  std::vector<PackPlan> packing; ///< by part
  std::mt19937_64 random;
  uint64_t seed; ///< of `random`, and of the orders within kernels
  Status checkCapacity(int64_t bytes) const;

  std::vector<Bytes> memory;
  std::mutex keptMutex;
  std::map<std::byte *, Bytes> keptMemory; ///< looked up, never iterated
  std::vector<std::unique_ptr<StreamObject>> streams;
  std::vector<std::unique_ptr<EventObject>> events;
  std::vector<std::unique_ptr<GraphObject>> graphs;
  int64_t chains = 0;           ///< of the clocks: one per stream, and one per stream of a graph
  std::vector<int64_t> lengths; ///< number of operations by chain
  std::vector<StubNodePtr> ready;
  std::vector<StubNodePtr> arrived; ///< in an unfinished meeting
  int64_t unfinished = 0;
  Hazards hazards;
  Status failure;
  StubMeetings *meetings = nullptr;
  std::unique_ptr<StubKernels> kernels;
  int64_t timedSteps = 0, marks = 0;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_STUBDRIVER_H
