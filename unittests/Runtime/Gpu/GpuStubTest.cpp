//===- GpuStubTest.cpp - Streams, hazards and planted faults --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubPrograms.h"

#include "Gpu/Stub/StubCollectives.h"

using namespace tessera::runtime;
using namespace tessera::runtime::gpu;

namespace {

/// On a 2 x 2 mesh: computes, reduces over one axis, gathers over the other (twice, from different
/// buffers), copies and exchanges, in a loop of three trips.
struct BusyProgram {
  ProgramBuilder b;
  int64_t m, p, x, y, z, w, v;
  int64_t elements = 32;

  BusyProgram() : m(b.mesh(makeMesh({2, 2}))), p(b.part(m)) {
    const Mesh mesh = b.program.meshes[m];
    AxisRef first = whole(mesh, 0), second = whole(mesh, 1);
    Layout partial = layoutOf({16, 2}, {{second}, {}}, {{first, ReduceKind::sum}});
    Layout rows = layoutOf({16, 2}, {{second}, {}}), full = replicated({16, 2});
    Layout columns = layoutOf({16, 2}, {{}, {second}});
    x = b.slot(p, DType::f32, partial), y = b.slot(p, DType::f32, partial);
    z = b.slot(p, DType::f32, full), w = b.slot(p, DType::f32, columns);
    v = b.slot(p, DType::f32, full);
    int64_t iv = b.slot(p, DType::index, Shape{});
    b.program.kernels = {"add_one"};
    Step loop = b.step(LoopStep{iv, {0, {}}, {3, {}}, {1, {}}, {}});
    StepList &body = std::get<LoopStep>(loop.action).body;
    body.push_back(b.step(LaunchStep{0, {x, y}, 1}));
    body.push_back(
        b.step(b.collective(CollectiveKind::all_reduce, m, y, y, DType::f32, partial, rows)));
    body.push_back(
        b.step(b.collective(CollectiveKind::all_gather, m, y, z, DType::f32, rows, full)));
    body.push_back(b.step(LaunchStep{0, {y, x}, 1}));
    body.push_back(
        b.step(b.collective(CollectiveKind::all_to_all, m, y, w, DType::f32, rows, columns)));
    body.push_back(
        b.step(b.collective(CollectiveKind::all_gather, m, w, v, DType::f32, columns, full)));
    body.push_back(b.step(CopyStep{z, v, 64}));
    std::get<CollectiveStep>(body[1].action).axes = {first};
    for (int i : {2, 4, 5})
      std::get<CollectiveStep>(body[i].action).axes = {second};
    b.program.parts[p].steps.push_back(loop);
  }

  std::unique_ptr<GpuExecutor> open(uint64_t seed, bool inProcess, PlantedFaults faults = {}) {
    auto executor = openOnStub(b.program, seed, inProcess, faults);
    for (int64_t d = 0; executor && d < 4; ++d)
      for (int64_t i = 0; i < 16; ++i)
        writeElement(DType::f32, static_cast<double>(i + 10 * d),
                     executor->slotData(p, d, x) + i * 4);
    return executor;
  }

  /// The bytes of all devices' results.
  Bytes results(Executor &executor) const {
    Bytes all;
    for (int64_t d = 0; d < 4; ++d)
      for (int64_t slot : {x, y, z, w, v}) {
        const std::byte *data = executor.slotData(p, d, slot);
        all.insert(all.end(), data, data + b.program.parts[p].slots[slot].bytes);
      }
    return all;
  }
};

} // namespace

TEST(GpuStub, EveryLegalOrderIsBitwiseEqual) {
  BusyProgram busy;
  Bytes expected;
  for (bool inProcess : {false, true})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      auto executor = busy.open(seed, inProcess);
      ASSERT_TRUE(executor);
      for (int step = 0; step < 2; ++step) {
        Status status = executor->run();
        ASSERT_TRUE(status.ok()) << status.message();
      }
      Bytes found = busy.results(*executor);
      if (expected.empty())
        expected = found;
      ASSERT_EQ(found, expected) << "seed " << seed;
    }
}

TEST(GpuStub, SteadyStateNeitherAllocatesNorWaits) {
  BusyProgram busy;
  for (bool inProcess : {false, true}) {
    auto executor = busy.open(0, inProcess);
    ASSERT_TRUE(executor && executor->run().ok());
    DriverCounts before = executor->driver().counts();
    for (int step = 0; step < 5; ++step)
      ASSERT_TRUE(executor->run().ok());
    DriverCounts after = executor->driver().counts();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.streams, before.streams);
    EXPECT_EQ(after.events, before.events);
    EXPECT_EQ(after.graphs, before.graphs);
    EXPECT_EQ(after.synchronisations, before.synchronisations);
    EXPECT_EQ(after.launches, before.launches) << "operations are in graphs";
    EXPECT_EQ(after.graphLaunches - before.graphLaunches, inProcess ? 5 : 5 * 4);
  }
}

TEST(GpuStub, EveryDroppedWaitIsFound) {
  BusyProgram busy;
  for (bool inProcess : {false, true}) {
    auto sound = busy.open(0, inProcess);
    ASSERT_TRUE(sound && sound->run().ok());
    int64_t waits = sound->waitsIssued;
    ASSERT_GT(waits, 20);
    for (int64_t drop = 0; drop < waits; ++drop) {
      PlantedFaults faults;
      faults.dropWait = drop;
      auto executor = busy.open(0, inProcess, faults);
      ASSERT_TRUE(executor);
      Status status = executor->run();
      ASSERT_FALSE(status.ok()) << "wait " << drop << " of " << waits;
      EXPECT_TRUE(says(status, {"hazard:", "capture"})) << status.message();
    }
  }
}

TEST(GpuStub, HazardsNameBothSteps) {
  BusyProgram busy;
  bool named = false;
  for (int64_t drop = 0; drop < 12 && !named; ++drop) {
    PlantedFaults faults;
    faults.dropWait = drop;
    Status status = busy.open(0, false, faults)->run();
    const std::string &text = status.message();
    size_t first = text.find("test.mlir:"), second = text.find("test.mlir:", first + 1);
    named = text.find("hazard:") == 0 && second != std::string::npos &&
            text.find("the two are not ordered") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST(GpuStub, SwappedCollectivesAndWrongCountsAreFound) {
  BusyProgram busy;
  auto open = [&](auto... how) { return busy.open(how...); };
  expectFound(&PlantedFaults::swapCollectives, 4, 10,
              {"different collectives", "deadlock", "meets a receive"}, open);
  // An in-place gather with another count is at the wrong address, which is detected first.
  expectFound(&PlantedFaults::wrongCount, 4, 10, {"different collectives", "in place requires"},
              open);
}

TEST(GpuStub, MismatchesNameBothCalls) {
  Mesh mesh = makeMesh({3});
  AxisRef a = whole(mesh, 0);
  Layout partial = layoutOf({16}, {{}}, {{a, ReduceKind::sum}}), full = replicated({16});
  Layout rows = layoutOf({16, 3}, {{a}, {}}), columns = layoutOf({16, 3}, {{}, {a}});
  for (bool exchanges : {false, true}) {
    ProgramBuilder b;
    int64_t m = b.mesh(mesh), p = b.part(m);
    const Layout &source = exchanges ? rows : partial;
    const Layout &target = exchanges ? columns : full;
    int64_t x = b.slot(p, DType::f32, source), y = b.slot(p, DType::f32, target);
    b.add(p, b.collective(exchanges ? CollectiveKind::exchange : CollectiveKind::all_reduce, m, x,
                          y, DType::f32, source, target));
    auto artifact = std::make_shared<Artifact>();
    artifact->program = b.program;
    PlantedFaults faults;
    faults.wrongCount = 1;
    auto executor = makeStub(artifact, {}, false, faults);
    ASSERT_TRUE(executor) << executor.message();
    std::string text = (*executor)->run().message();
    for (const char *expected : {"test.mlir:", "device 1"})
      EXPECT_NE(text.find(expected), std::string::npos) << text;
    if (exchanges)
      continue;
    for (const char *expected :
         {"different collectives", "all_reduce of 15 f32 by sum", "all_reduce of 16 f32 by sum"})
      EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
}

TEST(GpuStub, DataDependentLoopsSynchroniseOncePerIteration) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({1})), p = b.part(m);
  int64_t limit = b.slot(p, DType::index, Shape{}), value = b.slot(p, DType::index, Shape{});
  int64_t flag = b.slot(p, DType::i1, Shape{});
  b.program.kernels = {"", "", "count_up"};
  Step loop = b.step(WhileStep{{}, flag, {}});
  std::get<WhileStep>(loop.action).before.push_back(b.step(LaunchStep{2, {limit, value, flag}, 1}));
  b.program.parts[p].steps.push_back(loop);
  b.program.kernels[0] = b.program.kernels[1] = "add_one";
  auto executor = openOnStub(b.program, 0, false);
  ASSERT_TRUE(executor);
  int64_t trips = 7;
  ASSERT_TRUE(
      executor->writeSlot(p, 0, limit, reinterpret_cast<const std::byte *>(&trips), 8).ok());
  int64_t before = executor->driver().counts().synchronisations;
  ASSERT_TRUE(executor->run().ok());
  EXPECT_EQ(executor->driver().counts().synchronisations - before, trips + 1);
}

TEST(GpuStub, CollectivesInDataDependentLoops) {
  Mesh mesh = makeMesh({3});
  AxisRef a = whole(mesh, 0);
  Layout partial = layoutOf({9}, {{}}, {{a, ReduceKind::sum}}), full = replicated({9});
  Layout rows = layoutOf({9}, {{a}});
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  int64_t limit = b.slot(p, DType::index, Shape{}), value = b.slot(p, DType::index, Shape{});
  int64_t flag = b.slot(p, DType::i1, Shape{});
  int64_t x = b.slot(p, DType::f32, partial), y = b.slot(p, DType::f32, rows);
  b.program.kernels = {"add_one", "add_index", "count_up"};
  Step loop = b.step(WhileStep{{}, flag, {}});
  auto &action = std::get<WhileStep>(loop.action);
  action.before.push_back(b.step(LaunchStep{2, {limit, value, flag}, 1}));
  action.body.push_back(
      b.step(b.collective(CollectiveKind::reduce_scatter, m, x, y, DType::f32, partial, rows)));
  action.body.push_back(
      b.step(b.collective(CollectiveKind::all_gather, m, y, x, DType::f32, rows, full)));
  b.program.parts[p].steps.push_back(loop);
  for (bool inProcess : {false, true}) {
    auto executor = openOnStub(b.program, 0, inProcess);
    ASSERT_TRUE(executor);
    for (int64_t d = 0; d < 3; ++d) {
      writeElement(DType::index, 4, executor->slotData(p, d, limit));
      for (int64_t i = 0; i < 9; ++i)
        writeElement(DType::f32, static_cast<double>(i), executor->slotData(p, d, x) + i * 4);
    }
    Status status = executor->run();
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t d = 0; d < 3; ++d)
      for (int64_t i = 0; i < 9; ++i)
        EXPECT_EQ(readElement(DType::f32, executor->slotData(p, d, x) + i * 4),
                  static_cast<double>(81 * i));
    EXPECT_EQ(executor->stats()[0].executions, 4);
  }
}

/// Two grid launches over a workspace: y = 4 x.
TEST(GpuStub, KernelsOfAGpuAreEmulated) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
  int64_t x = b.slot(p, DType::f32, Shape{64}), y = b.slot(p, DType::f32, Shape{64});
  b.program.kernels = {"four_times"};
  b.add(p, LaunchStep{0, {x, y}, 1});
  b.add(p, LaunchStep{0, {y, x}, 1});
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  GpuLaunch first{"twice", {4, 1, 1}, {16, 1, 1}, 0, {{0, 0, 256, false}, {-1, 64, 256, true}}};
  GpuLaunch second{"twice", {2, 1, 1}, {32, 1, 1}, 0, {{-1, 64, 256, false}, {1, 0, 256, true}}};
  artifact->gpu.kernels = {{{first, second}, 320, {}}};
  artifact->gpu.images = {{"stub", {"twice"}, *readFile(TEST_STUB_KERNELS)}};
  Status sound = verify(artifact->gpu, artifact->program);
  ASSERT_TRUE(sound.ok()) << sound.message();
  auto executor = makeStub(artifact, {}, false);
  ASSERT_TRUE(executor) << executor.message();
  for (int64_t d = 0; d < 2; ++d)
    for (int64_t i = 0; i < 64; ++i)
      writeElement(DType::f32, static_cast<double>(i + d), (*executor)->slotData(p, d, x) + i * 4);
  Status status = (*executor)->run();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ((*executor)->driver().counts().launches, 2 * (2 * 2 * 2))
      << "each grid is an operation";
  for (int64_t d = 0; d < 2; ++d)
    for (int64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(readElement(DType::f32, (*executor)->slotData(p, d, y) + i * 4), 4.0 * (i + d));
      EXPECT_EQ(readElement(DType::f32, (*executor)->slotData(p, d, x) + i * 4), 16.0 * (i + d));
    }
}

TEST(GpuHazards, ComparesVectorClocks) {
  Hazards hazards;
  std::byte memory[64];
  Accessor a{0, 1, nullptr, "a", 0}, b{1, 1, nullptr, "b", 0};
  ASSERT_TRUE(hazards.access({memory, 16, true}, a, {1, 0}).ok());
  EXPECT_TRUE(hazards.access({memory + 16, 16, true}, b, {0, 1}).ok()) << "elsewhere";
  EXPECT_FALSE(hazards.access({memory + 8, 4, false}, b, {0, 1}).ok()) << "read of a's write";
  EXPECT_TRUE(hazards.access({memory + 8, 4, false}, b, {1, 1}).ok()) << "b waited for a";
  Accessor again{0, 2, nullptr, "a", 0};
  EXPECT_FALSE(hazards.access({memory + 10, 1, true}, again, {2, 0}).ok()) << "b reads it";
  EXPECT_TRUE(hazards.access({memory + 2, 1, true}, again, {2, 0}).ok()) << "b does not read this";
  EXPECT_TRUE(hazards.access({memory + 10, 1, true}, again, {2, 1}).ok());
}

namespace {
Operation operationOn(int64_t stream, std::vector<Access> accesses) {
  Operation operation;
  operation.kind = Operation::Kind::copy;
  operation.stream = stream;
  operation.accesses = std::make_shared<const std::vector<Access>>(std::move(accesses));
  return operation;
}
int64_t numWaits(const Segment &segment) {
  int64_t count = 0;
  for (const Operation &each : segment.operations)
    count += static_cast<int64_t>(each.waits.size());
  return count;
}
} // namespace

TEST(GpuStub, CopiesWithinOverlappingBytes) {
  // Shifted by one element to the right and back, between kernels that read and write it.
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
  int64_t all = b.slot(p, DType::f32, Shape{9});
  Slot left = b.program.parts[p].slots[all];
  left.shape = {8};
  left.bytes = 32;
  Slot right = left;
  right.offset += 4;
  auto &slots = b.program.parts[p].slots;
  slots.insert(slots.end(), {left, right});
  int64_t from = all + 1, to = all + 2;
  b.add(p, CopyStep{from, to, 32});
  b.add(p, CopyStep{to, from, 32});
  b.add(p, CopyStep{from, to, 32});
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    BackendOptions options;
    options.scheduleSeed = seed;
    auto executor = makeStub(artifact, options, /*inProcess=*/false);
    ASSERT_TRUE(executor) << executor.message();
    for (int64_t i = 0; i < 9; ++i)
      writeElement(DType::f32, static_cast<double>(i), (*executor)->slotData(p, 1, all) + i * 4);
    Status status = (*executor)->run();
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t i = 0; i < 9; ++i)
      EXPECT_EQ(readElement(DType::f32, (*executor)->slotData(p, 1, all) + i * 4),
                i == 0 ? 0 : i - 1);
    EXPECT_EQ((*executor)->driver().counts().launches, 2 * (2 * 3 * 2))
        << "through staging, each; once to run, once to be captured";
  }
}

TEST(GpuPlan, OneStreamNeedsNoEvents) {
  Segment segment;
  for (int i = 0; i < 5; ++i)
    segment.operations.push_back(operationOn(0, {{0, 64, true}}));
  EXPECT_EQ(orderSegment(segment, 3), 0);
  EXPECT_EQ(segment.operations.size(), 5u);
  EXPECT_EQ(numWaits(segment), 0);
}

TEST(GpuPlan, WaitsOnlyForConflictingIntervals) {
  // Stream 1 reads a result of stream 0; stream 0 continues elsewhere, then overwrites it.
  Segment apart, together;
  for (Segment *segment : {&apart, &together}) {
    int64_t where = segment == &apart ? 64 : 0;
    segment->operations = {operationOn(0, {{0, 64, true}}), operationOn(1, {{where, 64, false}}),
                           operationOn(0, {{128, 64, true}}), operationOn(0, {{32, 8, true}})};
    orderSegment(*segment, 2);
  }
  // Stream 1 starts after stream 0 and ends before it: two waits in each case. Operation 0 is the
  // start.
  EXPECT_EQ(numWaits(apart), 2);
  EXPECT_TRUE(apart.operations[4].waits.empty());
  EXPECT_EQ(apart.operations[5].waits.size(), 1u) << "the end";
  // If they conflict, the overwriting one waits, and the end is ordered by it.
  EXPECT_EQ(numWaits(together), 2);
  EXPECT_EQ(together.operations[4].waits.size(), 1u);
  EXPECT_TRUE(together.operations[5].waits.empty());
}

TEST(GpuPlan, SkipsImpliedWaits) {
  Segment segment;
  segment.operations = {operationOn(0, {{0, 64, true}}), operationOn(1, {{0, 64, false}}),
                        operationOn(1, {{0, 64, false}}),
                        // Is ordered after stream 0 through stream 1.
                        operationOn(2, {{0, 64, true}}), operationOn(2, {{0, 64, true}})};
  int64_t events = orderSegment(segment, 3);
  // Starts of 1 and 2, 2 after 1, the end after 2 (which is ordered after 1).
  EXPECT_EQ(numWaits(segment), 3);
  EXPECT_LE(events, 2) << "events are used again";
}

TEST(GpuCalls, InPlaceRules) {
  std::byte buffer[256];
  RankCall gather{CollectiveKind::all_gather, DType::f32, ReduceKind::sum, 1, 4, 0};
  EXPECT_TRUE(checkInPlace(gather, 2, 4, buffer + 32, buffer).ok());
  EXPECT_FALSE(checkInPlace(gather, 2, 4, buffer + 16, buffer).ok());
  RankCall scatter{CollectiveKind::reduce_scatter, DType::f32, ReduceKind::sum, 1, 4, 0};
  EXPECT_TRUE(checkInPlace(scatter, 3, 4, buffer, buffer + 48).ok());
  EXPECT_FALSE(checkInPlace(scatter, 3, 4, buffer, buffer + 44).ok());
  RankCall reduce{CollectiveKind::all_reduce, DType::f32, ReduceKind::sum, 1, 4, 0};
  EXPECT_TRUE(checkInPlace(reduce, 0, 2, buffer, buffer).ok());
  EXPECT_FALSE(checkInPlace(reduce, 0, 2, buffer, buffer + 4).ok());
  EXPECT_TRUE(checkInPlace(reduce, 0, 2, buffer, buffer + 16).ok());
}
