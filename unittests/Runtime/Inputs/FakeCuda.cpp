//===- FakeCuda.cpp - The CUDA driver's functions over host memory --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes everything immediately, in the order of issue; captured work is stored and
// runs when its graph is launched. A stream on which a library waits for others
// (fake_cuda_wait) continues in its own thread until it has caught up. As on a GPU,
// copies from the host and memory sets without a stream take effect late: when the
// default stream is synchronized, or read from. It has the runtime's own kernels; with
// FAKE_CUDA_KERNELS other kernels exist, too, whose launches print their names and do
// nothing. FAKE_CUDA_DEVICES is the number of GPUs (1), FAKE_CUDA_CAPABILITY their
// architecture (90), FAKE_CUDA_MIB the free memory, FAKE_CUDA_VERSION the driver's
// version, FAKE_CUDA_LOADS the error of loading code, FAKE_CUDA_CUBINS that of loading
// cubins. PTX later than the driver's version is refused. FAKE_CUDA_REPORT prints the
// objects that were created and not freed to standard error when the process ends.
//
// A capture has the rules of the driver (CUDA driver API, "Stream Management"): a stream
// joins it by a wait for an event recorded in it, and must be joined to the stream that
// began it before it ends. No wait crosses its boundary. The thread that captures may
// not allocate, free, load code, synchronize, or copy without a stream: such a call
// fails and invalidates the capture.
//
//===----------------------------------------------------------------------===//

#include "Gpu/Cuda/GemmKernel.cu"
#include "Gpu/Cuda/MoveKernels.cu"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
struct Operation {
  std::function<void()> work;
  bool mayWait = false; ///< for other processes
};
using Work = std::vector<Operation>;

// Errors of captures, with the driver's numbers.
enum {
  kIllegalState = 401,
  kUnsupported = 900,
  kInvalidated = 901,
  kMerge = 902,
  kUnmatched = 903,
  kUnjoined = 904,
  kIsolation = 905,
  kCapturedEvent = 907
};

class Stream;
/// How much of the work of each stream of a capture precedes a place.
using Clock = std::map<const Stream *, int64_t>;
void meet(Clock &clock, const Clock &other) {
  for (auto [stream, count] : other)
    clock[stream] = std::max(clock[stream], count);
}

/// Work captured from several streams, in the order of issue.
struct Capture {
  Stream *origin;
  Work work;
  std::map<Stream *, Clock> streams = {}; ///< what precedes the next work of each
  bool valid = true;
};
thread_local Capture *capturing = nullptr; ///< by this thread

/// For calls that this thread may not make while it captures.
int notWhileCapturing() {
  if (!capturing)
    return 0;
  capturing->valid = false;
  return kUnsupported;
}
int anything = 0;                                          ///< target of all handles
int moveFunction = 0, gemmFunction = 0, otherFunction = 0; ///< targets of kernel handles

/// Work runs in the issuing thread, except behind work that may wait, which has its own thread.
class Stream {
public:
  void issue(Operation operation) {
    std::unique_lock lock(mutex);
    if (!operation.mayWait && queue.empty()) {
      lock.unlock();
      return operation.work();
    }
    queue.push_back(std::move(operation));
    if (!thread)
      thread = new std::thread([this] { run(); }); // forever, like the stream
    changed.notify_all();
  }
  bool isIdle() {
    std::lock_guard lock(mutex);
    return queue.empty();
  }
  void synchronize() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.empty(); });
  }
  std::shared_ptr<Capture> capture; ///< that it is a part of

private:
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return !queue.empty(); });
      Operation &next = queue.front();
      lock.unlock();
      next.work();
      lock.lock();
      queue.pop_front();
      changed.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Operation> queue; ///< the first one is running
  std::thread *thread = nullptr;
};
/// A null handle is the legacy default stream.
Stream &streamOf(void *stream) {
  static auto *legacy = new Stream;
  bool isLegacy = reinterpret_cast<uintptr_t>(stream) <= 2; // 2: that of the thread
  return isLegacy ? *legacy : *static_cast<Stream *>(stream);
}

/// How often it was recorded, and how many of these records were reached.
struct Event {
  std::atomic<int64_t> recorded{0}, reached{0};
  float time = 0;
  std::atomic<bool> ofDefault{false}; ///< recorded on the default stream
  std::shared_ptr<Capture> capture;   ///< in which it was recorded last, even if that has ended
  Clock clock;                        ///< what precedes it there
};

/// Work that the default stream has not executed yet.
std::vector<std::function<void()>> late;
std::mutex lateMutex;

int arriveLater(std::function<void()> work) {
  std::lock_guard lock(lateMutex);
  late.push_back(std::move(work));
  return 0;
}
int arrive() {
  std::lock_guard lock(lateMutex);
  for (auto &work : late)
    work();
  late.clear();
  return 0;
}

/// Objects that were created and not freed.
struct Living {
  std::atomic<int> memory{0}, pinned{0}, streams{0}, events{0}, graphs{0}, modules{0};
  ~Living() {
    if (std::getenv("FAKE_CUDA_REPORT"))
      std::fprintf(stderr,
                   "fake cuda: left memory %d, pinned %d, streams %d, events %d, graphs %d, "
                   "modules %d\n",
                   memory.load(), pinned.load(), streams.load(), events.load(), graphs.load(),
                   modules.load());
  }
} living;

int setting(const char *name, int other) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : other;
}
int issue(void *stream, std::function<void()> work, bool mayWait = false) {
  Stream &on = streamOf(stream);
  if (!on.capture) {
    on.issue({std::move(work), mayWait});
    return 0;
  }
  if (!on.capture->valid)
    return kInvalidated;
  on.capture->work.push_back({std::move(work), mayWait});
  ++on.capture->streams[&on][&on];
  return 0;
}
} // namespace

/// Whether a capture is active: fake libraries reject the calls that real ones reject then.
EXPORT int fake_cuda_captures() {
  return capturing != nullptr;
}

/// The number of live objects of all kinds.
EXPORT int fake_cuda_living() {
  return living.memory + living.pinned + living.streams + living.events + living.graphs +
         living.modules;
}
/// For the other fake libraries: captures their work like the driver's.
EXPORT void fake_cuda_issue(void *stream, void (*work)(void *), void *argument) {
  issue(stream, [=] { work(argument); });
}
/// The same for work that waits for other processes.
EXPORT void fake_cuda_wait(void *stream, void (*work)(void *), void *argument) {
  issue(
      stream, [=] { work(argument); }, true);
}

using Pointer = unsigned long long;

EXPORT int cuInit(unsigned) {
  return setting("FAKE_CUDA_DEVICES", 1) > 0 ? 0 : 100; // no device
}
EXPORT int cuDriverGetVersion(int *version) {
  *version = setting("FAKE_CUDA_VERSION", 13000);
  return 0;
}
EXPORT int cuDeviceGetCount(int *count) {
  *count = setting("FAKE_CUDA_DEVICES", 1);
  return 0;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char *name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return 0;
}
EXPORT int cuDeviceGetUuid(char *uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = setting("FAKE_CUDA_CAPABILITY", 90);
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 132;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &anything;
  return 0;
}
EXPORT int cuCtxSetCurrent(void *) {
  return 0;
}
static size_t availableMemory() {
  return static_cast<size_t>(setting("FAKE_CUDA_MIB", 1 << 14)) << 20;
}
EXPORT int cuMemAlloc_v2(Pointer *pointer, size_t size) {
  if (int error = notWhileCapturing())
    return error;
  if (size > availableMemory())
    return 2; // out of memory
  ++living.memory;
  *pointer = reinterpret_cast<Pointer>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  std::memset(reinterpret_cast<void *>(*pointer), 0xcd, size); // stale contents
  return 0;
}
EXPORT int cuMemFree_v2(Pointer pointer) {
  if (int error = notWhileCapturing())
    return error;
  arrive();
  --living.memory;
  std::free(reinterpret_cast<void *>(pointer));
  return 0;
}
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = availableMemory();
  return 0;
}
EXPORT int cuMemsetD8_v2(Pointer to, unsigned char value, size_t count) {
  if (int error = notWhileCapturing())
    return error;
  return arriveLater([=] { std::memset(reinterpret_cast<void *>(to), value, count); });
}
EXPORT int cuMemsetD32Async(Pointer to, unsigned value, size_t count, void *stream) {
  return issue(stream, [=] {
    for (size_t i = 0; i < count; ++i)
      reinterpret_cast<unsigned *>(to)[i] = value;
  });
}
EXPORT int cuMemcpyHtoD_v2(Pointer to, const void *from, size_t size) {
  if (int error = notWhileCapturing())
    return error;
  const char *bytes = static_cast<const char *>(from);
  return arriveLater([to, staged = std::vector<char>(bytes, bytes + size)] {
    std::memcpy(reinterpret_cast<void *>(to), staged.data(), staged.size());
  });
}
EXPORT int cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t size, void *stream) {
  return issue(stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, size); });
}
EXPORT int cuMemHostAlloc(void **made, size_t size, unsigned) {
  if (int error = notWhileCapturing())
    return error;
  ++living.pinned;
  *made = std::malloc(size);
  return 0;
}
EXPORT int cuMemFreeHost(void *memory) {
  if (int error = notWhileCapturing())
    return error;
  --living.pinned;
  std::free(memory);
  return 0;
}
EXPORT int cuMemcpyDtoH_v2(void *to, Pointer from, size_t size) {
  if (int error = notWhileCapturing())
    return error;
  arrive();
  std::memcpy(to, reinterpret_cast<void *>(from), size);
  return 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t size, void *stream) {
  return issue(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size);
  });
}
EXPORT int cuStreamCreate(void **stream, unsigned) {
  ++living.streams;
  *stream = new Stream;
  return 0;
}
EXPORT int cuStreamDestroy_v2(void *) { // its thread may still run
  --living.streams;
  return 0;
}
/// For a stream that is a part of a capture, by any thread.
static int notOfCapture(void *stream) {
  std::shared_ptr<Capture> &capture = streamOf(stream).capture;
  if (!capture)
    return notWhileCapturing();
  capture->valid = false;
  return kUnsupported;
}
EXPORT int cuStreamSynchronize(void *stream) {
  if (int error = notOfCapture(stream))
    return error;
  streamOf(stream).synchronize();
  return stream ? 0 : arrive();
}
EXPORT int cuStreamQuery(void *stream) {
  if (int error = notOfCapture(stream))
    return error;
  return streamOf(stream).isIdle() ? 0 : 600; // not ready
}
/// The wait of a stream, where it or the event is a part of a capture.
static int waitInCapture(Stream &stream, const Event &event) {
  auto refuse = [&](int error) {
    if (stream.capture)
      stream.capture->valid = false;
    return error;
  };
  bool ended = event.capture && event.capture->streams.empty();
  if (stream.capture && !stream.capture->valid)
    return kInvalidated;
  if (!event.capture)
    return refuse(kIsolation);
  if (ended)
    return refuse(kCapturedEvent);
  if (stream.capture && stream.capture != event.capture)
    return refuse(kMerge);
  stream.capture = event.capture;
  meet(stream.capture->streams[&stream], event.clock);
  return 0;
}
EXPORT int cuStreamWaitEvent(void *stream, void *handle, unsigned) {
  auto *event = static_cast<Event *>(handle);
  if (streamOf(stream).capture || event->capture)
    return waitInCapture(streamOf(stream), *event);
  if (event->ofDefault)
    arrive();
  int64_t awaited = event->recorded;
  if (event->reached >= awaited)
    return 0;
  return issue(
      stream,
      [=] {
        while (event->reached < awaited)
          std::this_thread::sleep_for(std::chrono::microseconds(20));
      },
      true);
}
EXPORT int cuStreamBeginCapture_v2(void *handle, int) {
  Stream &stream = streamOf(handle);
  if (!handle || stream.capture)
    return kIllegalState;
  stream.capture = std::make_shared<Capture>(Capture{&stream, {}});
  stream.capture->streams[&stream];
  capturing = stream.capture.get();
  return 0;
}
EXPORT int cuStreamEndCapture(void *handle, void **graph) {
  Stream &stream = streamOf(handle);
  std::shared_ptr<Capture> capture = stream.capture;
  *graph = nullptr;
  if (!capture)
    return kIllegalState;
  if (capture->origin != &stream)
    return kUnmatched;
  Clock &known = capture->streams[&stream];
  bool joined = true;
  for (auto &[each, clock] : capture->streams) {
    joined &= known[each] >= clock[each];
    each->capture = nullptr;
  }
  capture->streams.clear();
  capturing = nullptr;
  if (!capture->valid || !joined)
    return capture->valid ? kUnjoined : kInvalidated;
  *graph = new Work(std::move(capture->work));
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(void **ready, void *graph, unsigned long long) {
  ++living.graphs;
  *ready = new Work(*static_cast<Work *>(graph));
  return 0;
}
EXPORT int cuGraphExecDestroy(void *ready) {
  --living.graphs;
  delete static_cast<Work *>(ready);
  return 0;
}
EXPORT int cuGraphLaunch(void *graph, void *stream) {
  if (int error = notOfCapture(stream))
    return error;
  for (const Operation &each : *static_cast<Work *>(graph))
    streamOf(stream).issue(each);
  return 0;
}
EXPORT int cuGraphDestroy(void *graph) {
  delete static_cast<Work *>(graph);
  return 0;
}
// An event's time is the number of events recorded before it, in microseconds.
EXPORT int cuEventCreate(void **event, unsigned) {
  ++living.events;
  *event = new Event;
  return 0;
}
EXPORT int cuEventDestroy_v2(void *event) {
  --living.events;
  delete static_cast<Event *>(event);
  return 0;
}
EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  *milliseconds = (static_cast<Event *>(to)->time - static_cast<Event *>(from)->time) / 1000;
  return 0;
}
EXPORT int cuCtxSynchronize() {
  if (int error = notWhileCapturing())
    return error;
  return arrive();
}
EXPORT int cuEventQuery(void *handle) {
  auto *event = static_cast<Event *>(handle);
  if (event->capture)
    return kCapturedEvent;
  return event->reached >= event->recorded ? 0 : 600; // not ready
}
EXPORT int cuEventRecord(void *handle, void *stream) {
  static float count = 0;
  auto *event = static_cast<Event *>(handle);
  event->time = ++count;
  event->ofDefault = !stream;
  event->capture = streamOf(stream).capture;
  if (event->capture) {
    event->clock = event->capture->streams[&streamOf(stream)];
    return event->capture->valid ? 0 : kInvalidated;
  }
  int64_t number = ++event->recorded;
  return issue(stream, [=] { event->reached = number; });
}
/// Whether PTX states a later version than the driver's, which supports 8.2 for CUDA 12.2; minor
/// versions of both differ by one from CUDA 12.6 on.
static bool isTooNew(const char *ptx) {
  int major = 0, minor = 0;
  const char *stated = std::strstr(ptx, ".version ");
  if (!stated || std::sscanf(stated, ".version %d.%d", &major, &minor) != 2)
    return false;
  int cuda = setting("FAKE_CUDA_VERSION", 13000);
  int most = cuda % 1000 / 10 - (cuda >= 12060 && cuda < 13000);
  return major > cuda / 1000 - 4 || (major == cuda / 1000 - 4 && minor > most);
}
EXPORT int cuModuleLoadData(void **module, const void *image) {
  if (int error = notWhileCapturing())
    return error;
  if (int error = setting("FAKE_CUDA_LOADS", 0))
    return error;
  const char *text = static_cast<const char *>(image);
  if (std::memcmp(text,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    if (int error = setting("FAKE_CUDA_CUBINS", 0))
      return error;
  } else if (isTooNew(text)) {
    return 222; // an unsupported version of PTX
  }
  ++living.modules;
  *module = &anything;
  return 0;
}
EXPORT int cuModuleUnload(void *) {
  if (int error = notWhileCapturing())
    return error;
  --living.modules;
  return 0;
}
EXPORT int cuModuleGetFunction(void **function, void *, const char *name) {
  *function = std::strcmp(name, "tessera_move") == 0   ? &moveFunction
              : std::strcmp(name, "tessera_gemm") == 0 ? &gemmFunction
              : std::getenv("FAKE_CUDA_KERNELS")       ? &otherFunction
                                                       : nullptr;
  return *function ? 0 : 500; // not found
}
EXPORT int cuFuncSetAttribute(void *, int, int) {
  return 0;
}
EXPORT int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads,
                          unsigned, unsigned, unsigned, void *stream, void **parameters, void **) {
  if (function == &otherFunction) {
    std::fprintf(stderr, "cuda: a kernel of the program\n");
    return issue(stream, [] {});
  }
  // Parameters are copied when a kernel is launched.
  long long step = static_cast<long long>(blocks) * threads;
  if (function == &gemmFunction) {
    auto arguments = *static_cast<const GemmArguments *>(parameters[0]);
    return issue(stream, [=] {
      for (long long thread = 0; thread < step; ++thread)
        multiplyAll(arguments, thread, step);
    });
  }
  auto arguments = *static_cast<const MoveArguments *>(parameters[0]);
  return issue(stream, [=] {
    for (long long thread = 0; thread < step; ++thread)
      moveBox(arguments, thread, step);
  });
}
EXPORT int cuGetErrorString(int, const char **text) {
  *text = "fake error";
  return 0;
}
