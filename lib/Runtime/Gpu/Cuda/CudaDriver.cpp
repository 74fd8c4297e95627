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
#include <thread>

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
    ordinal = 0; // the launcher shows each process its own, or ranks share one (compareCards)
  if (ordinal >= api.devices)
    return Status::error("GPU " + std::to_string(ordinal) + " is needed, this machine has " +
                         std::to_string(api.devices) +
                         " (a process takes the GPU of its local rank)");
  CuDevice device = 0;
  TESSERA_RETURN_IF_ERROR(api.check(api.deviceGet(&device, static_cast<int>(ordinal)), "a GPU"));
  char text[256] = {};
  TESSERA_RETURN_IF_ERROR(api.check(api.deviceGetName(text, sizeof(text) - 1, device), "its name"));
  name = text;
  TESSERA_RETURN_IF_ERROR(api.check(api.deviceGetUuid(&id, device), "its identity"));
  TESSERA_RETURN_IF_ERROR(api.check(
      api.deviceGetAttribute(&major, kCuComputeCapabilityMajor, device), "its architecture"));
  TESSERA_RETURN_IF_ERROR(api.check(
      api.deviceGetAttribute(&minor, kCuComputeCapabilityMinor, device), "its architecture"));
  TESSERA_RETURN_IF_ERROR(
      api.check(api.deviceGetAttribute(&processors, kCuProcessors, device), "its processors"));
  TESSERA_RETURN_IF_ERROR(api.check(api.primaryCtxRetain(&context, device), "GPU " + name));
  return api.check(api.ctxSetCurrent(context), "GPU " + name);
}

CudaDriver::~CudaDriver() {
  // The process's end frees the rest with the context; memory is what others wait for.
  for (CuPointer each : memory)
    (void)api.memFree(each);
}

Expected<std::byte *> CudaDriver::allocate(int64_t device, int64_t bytes) {
  ++counted.allocations;
  CuPointer pointer = 0;
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void *given = allocateElsewhere ? allocateElsewhere(size) : nullptr;
  if (given) {
    pointer = cu(given);
  } else if (api.memAlloc(&pointer, size) != 0) {
    size_t free = 0, total = 0;
    (void)api.memGetInfo(&free, &total);
    return Status::error("a device needs " + std::to_string(bytes) + " bytes, " + name + " has " +
                         std::to_string(free) + " of " + std::to_string(total) + " free");
  } else {
    memory.push_back(pointer);
  }
  claims.emplace_back(device, nullptr, bytes);
  writes = true;
  TESSERA_RETURN_IF_ERROR(api.check(api.memsetD8(pointer, 0, size), "memory is zeroed"));
  return reinterpret_cast<std::byte *>(pointer);
}

Expected<Stream> CudaDriver::createStream(int64_t device, std::string) {
  ++counted.streams;
  CuStream stream = nullptr;
  TESSERA_RETURN_IF_ERROR(api.check(api.streamCreate(&stream, kCuStreamNonBlocking), "a stream"));
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
  TESSERA_RETURN_IF_ERROR(api.check(api.eventCreate(&event, kCuEventDisableTiming), "an event"));
  return reinterpret_cast<Event>(event);
}

Status CudaDriver::record(Event event, Stream stream) {
  ++counted.records;
  return api.check(api.eventRecord(cu(event), cu(stream)), "an event is recorded");
}

Status CudaDriver::wait(Stream stream, Event event) {
  ++counted.waits;
  return api.check(api.streamWaitEvent(cu(stream), cu(event), 0), "a stream waits for an event");
}

Expected<bool> CudaDriver::isDone(Event event) {
  CuResult state = api.eventQuery(cu(event));
  if (state != kCuNotReady)
    TESSERA_RETURN_IF_ERROR(api.check(state, "the GPU"));
  return state != kCuNotReady;
}

Status CudaDriver::copy(Issue issue, std::byte *to, const std::byte *from, int64_t bytes) {
  ++counted.launches;
  if (to == from || bytes == 0)
    return {};
  return timed(issue, [&] {
    return api.check(
        api.memcpyDtoDAsync(cu(to), cu(from), static_cast<size_t>(bytes), cu(issue.stream)),
        "a copy");
  });
}

Status CudaDriver::setIndex(Issue issue, std::byte *to, int64_t value) {
  ++counted.launches;
  auto bits = static_cast<uint64_t>(value);
  TESSERA_RETURN_IF_ERROR(api.check(
      api.memsetD32Async(cu(to), static_cast<unsigned>(bits), 1, cu(issue.stream)), "an index"));
  return api.check(
      api.memsetD32Async(cu(to) + 4, static_cast<unsigned>(bits >> 32), 1, cu(issue.stream)),
      "an index");
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
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const GpuLaunch &each = kernel.launches[i];
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
                  "kernel " + each.symbol));
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
                     "a matrix product");
  });
}

Status CudaDriver::beginCapture(Stream origin) {
  return api.check(api.streamBeginCapture(cu(origin), kCuCaptureThreadLocal), "a capture begins");
}

Expected<Graph> CudaDriver::endCapture(Stream origin) {
  ++counted.graphs;
  CuGraph graph = nullptr;
  CuGraphExec ready = nullptr;
  TESSERA_RETURN_IF_ERROR(api.check(api.streamEndCapture(cu(origin), &graph), "a capture ends"));
  Status made = api.check(api.graphInstantiate(&ready, graph, 0), "a graph is made");
  (void)api.graphDestroy(graph);
  if (!made.ok())
    return made;
  return reinterpret_cast<Graph>(ready);
}

Status CudaDriver::launchGraph(Graph graph, Stream stream) {
  ++counted.graphLaunches;
  return api.check(api.graphLaunch(reinterpret_cast<CuGraphExec>(graph), cu(stream)), "a graph");
}

Expected<bool> CudaDriver::synchronize(Stream stream, bool forStep) {
  ++(forStep ? counted.synchronisations : counted.reads);
  // A collective whose peer has gone never ends: look at the others while it runs.
  for (int64_t asked = 0; whileWaiting; ++asked) {
    CuResult state = api.streamQuery(cu(stream));
    if (state != kCuNotReady) {
      TESSERA_RETURN_IF_ERROR(api.check(state, "the GPU"));
      return true;
    }
    if (asked % 1000 == 999)
      TESSERA_RETURN_IF_ERROR(whileWaiting());
    if (asked > 100)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  TESSERA_RETURN_IF_ERROR(api.check(api.streamSynchronize(cu(stream)), "the GPU"));
  return true;
}

/// A copy from pageable memory returns when it is staged, and a memset at once; both are on the
/// default stream, for which streams of ours do not wait (CUDA driver API, "API synchronization
/// behavior").
Status CudaDriver::finishWrites() {
  if (!writes)
    return {};
  TESSERA_RETURN_IF_ERROR(api.check(api.streamSynchronize(nullptr), "copies to the GPU"));
  writes = false;
  return {};
}

Status CudaDriver::write(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  writes = true;
  return api.check(api.memcpyHtoD(cu(to), from, static_cast<size_t>(bytes)), "a copy to the GPU");
}
Status CudaDriver::read(int64_t, std::byte *to, const std::byte *from, int64_t bytes) {
  return api.check(api.memcpyDtoH(to, cu(from), static_cast<size_t>(bytes)), "a copy from the GPU");
}

} // namespace tessera::runtime::gpu
