//===- CudaDriver.cpp - GPUs through the CUDA driver ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include "GemmArguments.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

namespace tessera::runtime::gpu {

static CuStream cu(Stream stream) {
  return reinterpret_cast<CuStream>(stream);
}
static CuEvent cu(Event event) {
  return reinterpret_cast<CuEvent>(event);
}
static CuPointer cu(const void *pointer) {
  return reinterpret_cast<CuPointer>(pointer);
}

Status CudaDriver::open(int64_t ordinal) {
  TESSERA_RETURN_IF_ERROR(api.open());
  if (api.devices == 1)
    ordinal = 0; // the launcher exposes one per process, or ranks share one (compareCards)
  if (ordinal >= api.devices)
    return Status::error("GPU " + std::to_string(ordinal) + " is needed, this machine has " +
                         std::to_string(api.devices) +
                         " (a process takes the GPU of its local rank)");
  number = ordinal;
  CuDevice device = 0;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGet(&device, static_cast<int>(ordinal)), "cannot open a GPU"));
  char text[256] = {};
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGetName(text, sizeof(text) - 1, device), "cannot get the name of a GPU"));
  name = text;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGetUuid(&id, device), "cannot get the identity of a GPU"));
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGetAttribute(&major, kCuComputeCapabilityMajor, device),
                "cannot get the architecture of a GPU"));
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGetAttribute(&minor, kCuComputeCapabilityMinor, device),
                "cannot get the architecture of a GPU"));
  TESSERA_RETURN_IF_ERROR(api.check(api.deviceGetAttribute(&processors, kCuProcessors, device),
                                    "cannot get the processors of a GPU"));
  TESSERA_RETURN_IF_ERROR(
      api.check(api.primaryCtxRetain(&context, device), "cannot use GPU " + name));
  return api.check(api.ctxSetCurrent(context), "cannot use GPU " + name);
}

CudaDriver::~CudaDriver() {
  release();
}

/// The context is kept: it belongs to the process, and its creation takes longer than opening a
/// program. Errors of the calls that free resources come from earlier work and have been reported.
void CudaDriver::release() {
  if (!context || api.ctxSetCurrent(context) != 0)
    return;
  // A capture that failed is still open, and would forbid the calls below.
  CuGraph open = nullptr;
  if (capturing && api.streamEndCapture(std::exchange(capturing, nullptr), &open) == 0 && open)
    (void)api.graphDestroy(open);
  for (CuGraphExec each : graphs)
    (void)api.graphExecDestroy(each);
  blas.close();
  batched.close();
  dnn.close();
  groups.clear();
  tracing.reset();
  for (CuEvent each : events)
    (void)api.eventDestroy(each);
  for (CuStream each : streams)
    (void)api.streamDestroy(each);
  for (CuPointer each : memory)
    (void)api.memFree(each);
  for (CuModule each : modules)
    (void)api.moduleUnload(each);
  if (ring.memory)
    (void)api.memFreeHost(ring.memory);
  graphs.clear(), events.clear(), marks.clear(), streams.clear(), memory.clear(), modules.clear(),
      claims.clear();
  ring = {};
}

Expected<CuPointer> CudaDriver::allocateMemory(int64_t bytes) {
  CuPointer pointer = 0;
  if (api.memAlloc(&pointer, static_cast<size_t>(std::max<int64_t>(bytes, 1))) == 0)
    return pointer;
  size_t free = 0, total = 0;
  (void)api.memGetInfo(&free, &total);
  return Status::error("a device of the program needs " + std::to_string(bytes) + " bytes, " +
                       name + " has " + std::to_string(free) + " of " + std::to_string(total) +
                       " free");
}

Expected<std::byte *> CudaDriver::allocateKept(int64_t, int64_t bytes) {
  TESSERA_RETURN_IF_ERROR(enter());
  ++counted.allocations;
  auto pointer = allocateMemory(bytes);
  if (!pointer)
    return pointer.status();
  return reinterpret_cast<std::byte *>(*pointer);
}

/// cuMemFree waits for the work that uses the memory.
void CudaDriver::freeKept(std::byte *data) {
  if (enter().ok())
    (void)api.memFree(cu(data));
}

Expected<std::byte *> CudaDriver::allocate(int64_t device, int64_t bytes) {
  ++counted.allocations;
  CuPointer pointer = 0;
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (void *given = allocateElsewhere ? allocateElsewhere(size) : nullptr) {
    pointer = cu(given);
  } else {
    auto made = allocateMemory(bytes);
    if (!made)
      return made.status();
    memory.push_back(pointer = *made);
  }
  claims.emplace_back(device, nullptr, bytes);
  writes = true;
  TESSERA_RETURN_IF_ERROR(api.check(api.memsetD8(pointer, 0, size), "cannot zero memory"));
  return reinterpret_cast<std::byte *>(pointer);
}

Expected<Stream> CudaDriver::createStream(int64_t device, std::string) {
  ++counted.streams;
  CuStream stream = nullptr;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.streamCreate(&stream, kCuStreamNonBlocking), "cannot create a stream"));
  streams.push_back(stream);
  deviceOf[reinterpret_cast<Stream>(stream)] = device;
  return reinterpret_cast<Stream>(stream);
}

Status CudaDriver::startTrace() {
  tracing = std::make_unique<CudaTrace>(api);
  return tracing->start();
}

Status CudaDriver::beginTimed(const Issue &issue) {
  return tracing ? tracing->begin(issue, deviceOf[issue.stream]) : Status();
}

Status CudaDriver::endTimed(const Issue &issue) {
  return tracing ? tracing->end(issue) : Status();
}

Expected<Event> CudaDriver::createEvent(int64_t) {
  ++counted.events;
  CuEvent event = nullptr;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.eventCreate(&event, kCuEventDisableTiming), "cannot create an event"));
  events.push_back(event);
  return reinterpret_cast<Event>(event);
}

Status CudaDriver::record(Event event, Stream stream) {
  ++counted.records;
  return api.check(api.eventRecord(cu(event), cu(stream)), "cannot record an event");
}

Status CudaDriver::wait(Stream stream, Event event) {
  ++counted.waits;
  return api.check(api.streamWaitEvent(cu(stream), cu(event), 0), "cannot wait for an event");
}

Expected<bool> CudaDriver::isDone(Event event) {
  CuResult state = api.eventQuery(cu(event));
  if (state != kCuNotReady)
    TESSERA_RETURN_IF_ERROR(api.check(state, "the GPU failed"));
  return state != kCuNotReady;
}

Status CudaDriver::copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) {
  ++counted.launches;
  if (to == from || bytes == 0)
    return {};
  return timed(issue, [&] {
    return api.check(
        api.memcpyDtoDAsync(cu(to), cu(from), static_cast<size_t>(bytes), cu(issue.stream)),
        "cannot copy");
  });
}

Status CudaDriver::setIndex(Issue issue, std::byte *to, int64_t value) {
  ++counted.launches;
  auto bits = static_cast<uint64_t>(value);
  TESSERA_RETURN_IF_ERROR(
      api.check(api.memsetD32Async(cu(to), static_cast<unsigned>(bits), 1, cu(issue.stream)),
                "cannot set an index"));
  return api.check(
      api.memsetD32Async(cu(to) + 4, static_cast<unsigned>(bits >> 32), 1, cu(issue.stream)),
      "cannot set an index");
}

Status CudaDriver::move(Issue issue, MoveJob job) {
  if (job.strides->elements == 0)
    return {};
  ++counted.launches;
  MoveArguments arguments{};
  TESSERA_RETURN_IF_ERROR(describeMove(job, arguments));
  if (arguments.mode == kMoveCopy && arguments.loops == 0 && arguments.numTargets == 1)
    return timed(issue, [&] {
      return api.check(api.memcpyDtoDAsync(cu(arguments.targets[0]), cu(arguments.sources[0]),
                                           static_cast<size_t>(arguments.run * arguments.width),
                                           cu(issue.stream)),
                       issue.what);
    });
  constexpr int64_t kThreads = 256;
  auto blocks = static_cast<unsigned>(
      std::min<int64_t>((arguments.elements + kThreads - 1) / kThreads, processors * 8));
  void *parameters[] = {&arguments};
  return timed(issue, [&] {
    return api.check(api.launchKernel(moveKernel, blocks, 1, 1, kThreads, 1, 1, 0, cu(issue.stream),
                                      parameters, nullptr),
                     issue.what);
  });
}

Status CudaDriver::launch(Issue issue, const LaunchStep &step, std::vector<void *> slots,
                          std::byte *workspace) {
  const GpuKernel &kernel = loaded->gpu.kernels[step.kernel];
  TESSERA_RETURN_IF_ERROR(beginTimed(issue));
  if (kernel.convolution) {
    auto done = dnn.convolve(*kernel.convolution, slots, workspace, cu(issue.stream));
    if (!done)
      return done.status();
    if (*done) {
      ++counted.launches;
      return endTimed(issue);
    }
  }
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const GpuLaunch &each = kernel.launches[i];
    if (!each.runs(tf32))
      continue;
    std::vector<void *> pointers, parameters;
    for (const GpuArgument &argument : each.arguments)
      pointers.push_back(
          (argument.slot < 0 ? workspace : static_cast<std::byte *>(slots[argument.slot])) +
          argument.offset);
    for (void *&pointer : pointers)
      parameters.push_back(&pointer);
    auto dim = [](int64_t value) { return static_cast<unsigned>(value); };
    ++counted.launches;
    TESSERA_RETURN_IF_ERROR(
        api.check(api.launchKernel(launches[step.kernel][i], dim(each.grid[0]), dim(each.grid[1]),
                                   dim(each.grid[2]), dim(each.block[0]), dim(each.block[1]),
                                   dim(each.block[2]), dim(each.sharedBytes), cu(issue.stream),
                                   parameters.data(), nullptr),
                  "cannot launch kernel " + each.symbol));
  }
  return endTimed(issue);
}

Status CudaDriver::prepareGemm(const GemmStep &step, const void *a, const void *b, void *c,
                               const void *bias) {
  bool multiplies = step.k > 0 && step.batch * step.m * step.n > 0;
  if (multiplies && CublasLt::multiplies(step.dtype))
    return blas.prepare(step, {a, b, c, bias});
  return {};
}

Status CudaDriver::gemm(Issue issue, const GemmStep &step, const void *a, const void *b, void *c,
                        const void *bias, std::byte *workspace) {
  int64_t elements = step.batch * step.m * step.n;
  if (elements == 0 || (step.k == 0 && step.accumulate))
    return {};
  ++counted.launches;
  return timed(issue, [&]() -> Status {
    if (step.k > 0 && CublasLt::multiplies(step.dtype)) {
      auto done = blas.multiply(step, a, b, c, bias, workspace, cu(issue.stream));
      if (!done || *done)
        return done.status();
    }
    GemmArguments arguments = describeGemm(step, a, b, c, bias);
    constexpr int64_t kThreads = 256;
    auto blocks = static_cast<unsigned>(
        std::min<int64_t>((elements + kThreads - 1) / kThreads, processors * 16));
    void *parameters[] = {&arguments};
    return api.check(api.launchKernel(gemmKernel, blocks, 1, 1, kThreads, 1, 1, 0, cu(issue.stream),
                                      parameters, nullptr),
                     "cannot launch a matrix product");
  });
}

/// A missing library is not an error: without it each product is a call of cuBLASLt.
Status CudaDriver::prepareGroup(int64_t device, const GemmStep &step,
                                const std::vector<GemmOperands> &operands) {
  if (!CublasLt::multiplies(step.dtype) || step.k == 0 || step.batch * step.m * step.n == 0)
    return {};
  std::vector<const void *> addresses = Cublas::addresses(step, operands);
  if (!Cublas::areAligned(step, addresses)) {
    if (!std::exchange(saidMisaligned, true))
      std::fprintf(
          stderr,
          "tessera: remark: batches over two dimensions of matrices that are not aligned "
          "to 16 bytes, such as %lld x %lld x %lld %s, are one cuBLASLt call per product\n",
          static_cast<long long>(step.m), static_cast<long long>(step.n),
          static_cast<long long>(step.k), std::string(toString(step.dtype)).c_str());
    return {};
  }
  if (Status opened = triedBatched ? Status() : batched.open(); !opened.ok())
    std::fprintf(stderr,
                 "tessera: warning: %s; without it, one cuBLASLt call per product is used\n",
                 opened.message().c_str());
  triedBatched = true;
  if (!batched.isOpen())
    return {};
  auto bytes = static_cast<int64_t>(addresses.size() * sizeof(void *));
  auto memory = allocate(device, bytes);
  if (!memory)
    return memory.status();
  groups[{&step, operands.front().c}] = *memory;
  return write(device, *memory, reinterpret_cast<const std::byte *>(addresses.data()), bytes);
}

Expected<bool> CudaDriver::gemmGroup(Issue issue, const GemmStep &step,
                                     const std::vector<GemmOperands> &operands,
                                     std::byte *workspace) {
  auto known = groups.find({&step, operands.front().c});
  if (known == groups.end())
    return false;
  bool done = false;
  TESSERA_RETURN_IF_ERROR(timed(issue, [&]() -> Status {
    auto count = static_cast<int64_t>(operands.size()) * step.batch;
    auto issued = batched.multiply(
        step, known->second, count, CublasLt::dataTypeOf(step.dtype),
        CublasLt::dataTypeOf(step.resultDType.value_or(step.dtype)), blas.computeOf(step.dtype),
        workspace, static_cast<size_t>(CublasLt::kWorkspaceBytes), cu(issue.stream));
    done = issued && *issued;
    return issued.status();
  }));
  counted.launches += done;
  return done;
}

Status CudaDriver::timeSteps(int64_t steps) {
  for (int64_t i = 0; i < 2 * steps; ++i) {
    CuEvent event = nullptr;
    TESSERA_RETURN_IF_ERROR(
        api.check(api.eventCreate(&event, /*flags=*/0), "cannot create a timed event"));
    events.push_back(event);
    marks.push_back(event);
  }
  return {};
}

Status CudaDriver::mark(Stream stream) {
  if (marked == marks.size())
    return {};
  return api.check(api.eventRecord(marks[marked++], cu(stream)), "cannot record an event");
}

Expected<std::vector<double>> CudaDriver::stepSeconds() {
  std::vector<double> seconds;
  for (size_t i = 0; i + 1 < marked; i += 2) {
    float milliseconds = 0;
    TESSERA_RETURN_IF_ERROR(api.check(api.eventElapsedTime(&milliseconds, marks[i], marks[i + 1]),
                                      "cannot get the time of an event"));
    seconds.push_back(static_cast<double>(milliseconds) / 1000);
  }
  return seconds;
}

Status CudaDriver::beginCapture(Stream origin) {
  TESSERA_RETURN_IF_ERROR(api.check(api.streamBeginCapture(cu(origin), kCuCaptureThreadLocal),
                                    "cannot begin a capture"));
  capturing = cu(origin);
  return {};
}

Expected<Graph> CudaDriver::endCapture(Stream origin) {
  ++counted.graphs;
  CuGraph graph = nullptr;
  CuGraphExec ready = nullptr;
  capturing = nullptr;
  TESSERA_RETURN_IF_ERROR(
      api.check(api.streamEndCapture(cu(origin), &graph), "cannot end a capture"));
  Status made = api.check(api.graphInstantiate(&ready, graph, 0), "cannot create a graph");
  (void)api.graphDestroy(graph);
  if (!made.ok())
    return made;
  graphs.push_back(ready);
  return reinterpret_cast<Graph>(ready);
}

Status CudaDriver::launchGraph(Graph graph, Stream stream) {
  ++counted.graphLaunches;
  return api.check(api.graphLaunch(reinterpret_cast<CuGraphExec>(graph), cu(stream)),
                   "cannot launch a graph");
}

template <typename Ask> Status CudaDriver::waitUntil(Ask ask) {
  for (int64_t asked = 0;; ++asked) {
    CuResult state = ask();
    if (state != kCuNotReady)
      return api.check(state, "the GPU failed");
    if (whileWaiting && asked % 1000 == 999)
      TESSERA_RETURN_IF_ERROR(whileWaiting());
    if (asked > 100)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Expected<bool> CudaDriver::synchronize(Stream stream, bool forStep) {
  ++(forStep ? counted.synchronisations : counted.reads);
  // A collective never ends if its peer has ended: check the other processes while it runs.
  if (whileWaiting) {
    TESSERA_RETURN_IF_ERROR(waitUntil([&] { return api.streamQuery(cu(stream)); }));
    return true;
  }
  TESSERA_RETURN_IF_ERROR(api.check(api.streamSynchronize(cu(stream)), "the GPU failed"));
  return true;
}

/// A copy from pageable memory returns after it is staged, and a memset immediately; both are on
/// the default stream, for which our streams do not wait (CUDA driver API, "API synchronization
/// behavior").
Status CudaDriver::finishWrites() {
  if (!writes)
    return {};
  TESSERA_RETURN_IF_ERROR(api.check(api.streamSynchronize(nullptr), "cannot copy to the GPU"));
  writes = false;
  return {};
}

Status CudaDriver::write(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  writes = true;
  counted.hostToDevice += bytes;
  return api.check(api.memcpyHtoD(cu(to), from, static_cast<size_t>(bytes)),
                   "cannot copy to the GPU");
}

/// A copy from pageable memory would wait for all earlier work of the stream. A copy from the ring
/// waits only if the ring is full.
Status CudaDriver::upload(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) {
  TESSERA_RETURN_IF_ERROR(finishWrites());
  counted.hostToDevice += bytes;
  if (!ring.memory) {
    void *memory = nullptr;
    TESSERA_RETURN_IF_ERROR(
        api.check(api.memHostAlloc(&memory, PinnedRing::kChunk * PinnedRing::kChunks, 0),
                  "cannot allocate pinned host memory"));
    ring.memory = static_cast<std::byte *>(memory);
    for (CuEvent &event : ring.copied) {
      TESSERA_RETURN_IF_ERROR(
          api.check(api.eventCreate(&event, kCuEventDisableTiming), "cannot create an event"));
      events.push_back(event);
    }
  }
  return timed(issue, [&]() -> Status {
    auto left = static_cast<size_t>(bytes);
    while (left > 0) {
      size_t size = std::min(left, PinnedRing::kChunk), chunk = ring.next++ % PinnedRing::kChunks;
      CuEvent event = ring.copied[chunk];
      TESSERA_RETURN_IF_ERROR(waitUntil([&] { return api.eventQuery(event); }));
      std::byte *staged = ring.memory + chunk * PinnedRing::kChunk;
      std::copy_n(from, size, staged);
      TESSERA_RETURN_IF_ERROR(api.check(api.memcpyHtoDAsync(cu(to), staged, size, cu(issue.stream)),
                                        "cannot copy to the GPU"));
      TESSERA_RETURN_IF_ERROR(
          api.check(api.eventRecord(event, cu(issue.stream)), "cannot record an event"));
      from += size, to += size, left -= size;
    }
    return {};
  });
}

/// Drivers of one process share a context for each GPU.
Status CudaDriver::waitElsewhere(GpuDriver &, Stream stream, Event event) {
  return api.check(api.streamWaitEvent(cu(stream), cu(event), 0), "cannot wait for an event");
}
Status CudaDriver::recordElsewhere(GpuDriver &, Event event, Stream stream) {
  return api.check(api.eventRecord(cu(event), cu(stream)), "cannot record an event");
}

Status CudaDriver::read(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  counted.deviceToHost += bytes;
  return api.check(api.memcpyDtoH(to, cu(from), static_cast<size_t>(bytes)),
                   "cannot copy from the GPU");
}

} // namespace tessera::runtime::gpu
