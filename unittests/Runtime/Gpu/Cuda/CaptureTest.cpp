//===- CaptureTest.cpp - Wrong captures are refused -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake driver (Inputs/FakeCuda.cpp) has the rules of CUDA for captures, so that the
// tests that run programs on it find graphs that a GPU would refuse.
//
//===----------------------------------------------------------------------===//

#include "../StubPrograms.h"

#include "Gpu/Cuda/CudaDriver.h"

#include <dlfcn.h>

using namespace tessera::runtime;
using namespace tessera::runtime::gpu;

namespace {

// The driver's errors.
constexpr CuResult kUnsupported = 900, kInvalidated = 901, kMerge = 902, kUnmatched = 903,
                   kUnjoined = 904, kIsolation = 905, kCapturedEvent = 907;

/// Loads the fake, which the runtime then finds by its name.
bool loadFake() {
  static void *loaded = ::dlopen(FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
  return loaded != nullptr;
}

class Capture : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(loadFake()) << ::dlerror();
    Status status = api.open();
    ASSERT_TRUE(status.ok()) << status.message();
    for (CuStream *each : {&origin, &other})
      ASSERT_EQ(api.streamCreate(each, kCuStreamNonBlocking), 0);
    for (CuEvent *each : {&fork, &join})
      ASSERT_EQ(api.eventCreate(each, kCuEventDisableTiming), 0);
    ASSERT_EQ(api.memAlloc(&memory, 64), 0);
  }
  void TearDown() override {
    CuGraph graph = nullptr;
    (void)api.streamEndCapture(origin, &graph); // of a test that left it open
    EXPECT_EQ(api.memFree(memory), 0);
  }
  CuResult begin() { return api.streamBeginCapture(origin, kCuCaptureThreadLocal); }
  CuResult end() { return api.streamEndCapture(origin, &made); }
  CuResult work(CuStream stream, unsigned value = 1) {
    return api.memsetD32Async(memory, value, 1, stream);
  }
  unsigned read() {
    unsigned value = 0;
    EXPECT_EQ(api.memcpyDtoH(&value, memory, 4), 0);
    return value;
  }

  CudaApi api;
  CuStream origin = nullptr, other = nullptr;
  CuEvent fork = nullptr, join = nullptr;
  CuPointer memory = 0;
  CuGraph made = nullptr;
};

} // namespace

TEST_F(Capture, ForkedAndJoinedWorkRunsWhenTheGraphIsLaunched) {
  ASSERT_EQ(work(origin, 1), 0);
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.eventRecord(fork, origin), 0);
  EXPECT_EQ(api.streamWaitEvent(other, fork, 0), 0);
  EXPECT_EQ(work(other, 2), 0);
  EXPECT_EQ(api.eventRecord(join, other), 0);
  EXPECT_EQ(api.streamWaitEvent(origin, join, 0), 0);
  ASSERT_EQ(end(), 0);
  EXPECT_EQ(read(), 1u);
  CuGraphExec ready = nullptr;
  ASSERT_EQ(api.graphInstantiate(&ready, made, 0), 0);
  EXPECT_EQ(api.graphLaunch(ready, origin), 0);
  EXPECT_EQ(read(), 2u);
  EXPECT_EQ(api.graphExecDestroy(ready), 0);
  EXPECT_EQ(api.graphDestroy(made), 0);
  EXPECT_EQ(work(other, 3), 0) << "the stream is no longer a part of the capture";
  EXPECT_EQ(read(), 3u);
}

TEST_F(Capture, WorkThatIsNotJoined) {
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.eventRecord(fork, origin), 0);
  EXPECT_EQ(api.streamWaitEvent(other, fork, 0), 0);
  EXPECT_EQ(api.eventRecord(join, other), 0);
  EXPECT_EQ(work(other), 0); // after the event by which it is joined
  EXPECT_EQ(api.streamWaitEvent(origin, join, 0), 0);
  EXPECT_EQ(end(), kUnjoined);
}

TEST_F(Capture, WaitsAcrossItsBoundary) {
  ASSERT_EQ(api.eventRecord(fork, other), 0);
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.streamWaitEvent(origin, fork, 0), kIsolation) << "recorded outside";
  EXPECT_EQ(end(), kInvalidated);
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.streamWaitEvent(origin, join, 0), kIsolation) << "never recorded";
  EXPECT_EQ(end(), kInvalidated);
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.eventRecord(join, origin), 0);
  EXPECT_EQ(api.eventQuery(join), kCapturedEvent);
  ASSERT_EQ(end(), 0);
  EXPECT_EQ(api.streamWaitEvent(other, join, 0), kCapturedEvent) << "after the capture";
  EXPECT_EQ(api.eventRecord(join, origin), 0);
  EXPECT_EQ(api.streamWaitEvent(other, join, 0), 0) << "recorded anew";
}

TEST_F(Capture, TwoCaptures) {
  ASSERT_EQ(begin(), 0);
  ASSERT_EQ(api.streamBeginCapture(other, kCuCaptureThreadLocal), 0);
  EXPECT_EQ(api.eventRecord(fork, origin), 0);
  EXPECT_EQ(api.streamWaitEvent(other, fork, 0), kMerge);
  CuGraph graph = nullptr;
  EXPECT_EQ(api.streamEndCapture(other, &graph), kInvalidated);
  ASSERT_EQ(end(), 0);
}

TEST_F(Capture, AnEndOnAnotherStream) {
  ASSERT_EQ(begin(), 0);
  EXPECT_EQ(api.eventRecord(fork, origin), 0);
  EXPECT_EQ(api.streamWaitEvent(other, fork, 0), 0);
  CuGraph graph = nullptr;
  EXPECT_EQ(api.streamEndCapture(other, &graph), kUnmatched);
  EXPECT_EQ(end(), 0);
}

TEST_F(Capture, CallsThatWaitOrAllocate) {
  const std::pair<const char *, std::function<CuResult()>> calls[] = {
      {"allocation", [&] { return api.memAlloc(&memory, 64); }},
      {"free", [&] { return api.memFree(memory); }},
      {"pinned memory",
       [&] {
         void *pinned = nullptr;
         return api.memHostAlloc(&pinned, 64, 0);
       }},
      {"loading code",
       [&] {
         CuModule module = nullptr;
         return api.moduleLoadData(&module, ".version 7.0");
       }},
      {"the captured stream", [&] { return api.streamSynchronize(origin); }},
      {"its state", [&] { return api.streamQuery(origin); }},
      {"another stream", [&] { return api.streamSynchronize(other); }},
      {"the context", [&] { return api.ctxSynchronize(); }},
      {"a copy to the GPU", [&] { return api.memcpyHtoD(memory, "text", 4); }},
      {"a copy from the GPU",
       [&] {
         char text[4];
         return api.memcpyDtoH(text, memory, 4);
       }},
      {"a memory set", [&] { return api.memsetD8(memory, 0, 4); }},
  };
  for (const auto &[what, call] : calls) {
    ASSERT_EQ(begin(), 0);
    EXPECT_EQ(call(), kUnsupported) << what;
    EXPECT_EQ(work(origin), kInvalidated) << what;
    EXPECT_EQ(end(), kInvalidated) << what;
    EXPECT_EQ(made, nullptr) << what;
  }
}

/// Of the waits of a program, those by which streams join a capture and its end.
TEST_F(Capture, DroppedForksAndJoinsOfAProgramAreFound) {
  ProgramBuilder b;
  Mesh mesh = makeMesh({2});
  int64_t m = b.mesh(mesh), p = b.part(m);
  AxisRef axis = whole(mesh, 0);
  Shape shape{16, 2};
  Layout rows = layoutOf(shape, {{axis}, {}}), full = replicated(shape);
  int64_t part = b.slot(p, DType::f32, rows), gathered = b.slot(p, DType::f32, full),
          copied = b.slot(p, DType::f32, full);
  CollectiveStep gather =
      b.collective(CollectiveKind::all_gather, m, part, gathered, DType::f32, rows, full);
  gather.axes = {axis};
  b.program.parts[p].steps.push_back(b.step(gather));
  b.program.parts[p].steps.push_back(b.step(CopyStep{gathered, copied, 128}));
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  auto runWithout = [&](int64_t wait, int64_t &waits) {
    auto driver = std::make_unique<CudaDriver>();
    TESSERA_RETURN_IF_ERROR(driver->open(0));
    ExecutorOptions options;
    options.driver = std::move(driver);
    options.faults.dropWait = wait;
    GpuExecutor executor(artifact, std::move(options));
    TESSERA_RETURN_IF_ERROR(executor.open());
    Status status = executor.run(); // the second half of the first step is the capture
    if (status.ok())
      status = executor.run();
    waits = executor.waitsIssued;
    return status;
  };
  int64_t waits = 0;
  Status sound = runWithout(-1, waits);
  ASSERT_TRUE(sound.ok()) << sound.message();
  ASSERT_GE(waits, 4);
  int64_t found = 0;
  for (int64_t wait = 0, unused = 0; wait < waits; ++wait) {
    Status status = runWithout(wait, unused);
    found += !status.ok();
    if (!status.ok())
      EXPECT_TRUE(says(status, {"CUDA error 90"})) << status.message();
  }
  EXPECT_GE(found, 2) << "of " << waits;
}
