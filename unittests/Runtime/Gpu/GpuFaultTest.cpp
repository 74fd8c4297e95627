//===- GpuFaultTest.cpp - Planted faults in generated programs ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each fault is planted at every possible place of programs generated from a seed, and
// must be detected.
//
//===----------------------------------------------------------------------===//

#include "StubPrograms.h"

#include "Gpu/Stub/StubCollectives.h"

#include <random>

using namespace tessera::runtime;
using namespace tessera::runtime::gpu;

namespace {

constexpr uint64_t kPrograms = 16;

/// Kernels, copies and collectives in random order over a few buffers, on a random mesh.
struct RandomProgram {
  ProgramBuilder b;
  int64_t m = 0, p = 0, devices = 1;
  std::vector<int64_t> parts, wholes, columns; ///< slots of 16, all, and 16 elements

  explicit RandomProgram(uint64_t seed) {
    std::mt19937_64 random(seed);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const Shape shapes[] = {{2}, {4}, {2, 2}, {2, 4}, {4, 2}};
    Mesh mesh = makeMesh(shapes[below(std::size(shapes))]);
    m = b.mesh(mesh);
    p = b.part(m);
    devices = static_cast<int64_t>(mesh.processIds.size());
    size_t cut = below(mesh.shape.size());
    AxisRef axis = whole(mesh, static_cast<int64_t>(cut));
    Shape global{16, mesh.shape[cut]};
    Layout rows = layoutOf(global, {{axis}, {}}), across = layoutOf(global, {{}, {axis}});
    Layout full = replicated(global);
    for (int i = 0; i < 3; ++i) {
      parts.push_back(b.slot(p, DType::f32, rows));
      wholes.push_back(b.slot(p, DType::f32, full));
      columns.push_back(b.slot(p, DType::f32, across));
    }
    b.program.kernels = {"add_one"};
    auto pick = [&](const std::vector<int64_t> &slots, int64_t other = -1) {
      int64_t slot = slots[below(slots.size())];
      while (slot == other)
        slot = slots[below(slots.size())];
      return slot;
    };
    auto move = [&](CollectiveKind kind, const Layout &from, const Layout &to, int64_t source,
                    int64_t target, const AxisRef &along) {
      CollectiveStep step = b.collective(kind, m, source, target, DType::f32, from, to);
      step.axes = {along};
      return b.step(step);
    };
    auto collective = [&](size_t which) {
      size_t other = 1 - cut;
      if (which == 0 && mesh.shape.size() == 2) {
        AxisRef summed = whole(mesh, static_cast<int64_t>(other));
        Layout partial = layoutOf(global, {{axis}, {}}, {{summed, ReduceKind::sum}});
        int64_t slot = pick(parts);
        return move(CollectiveKind::all_reduce, partial, rows, slot, slot, summed);
      }
      if (which == 1)
        return move(CollectiveKind::all_to_all, rows, across, pick(parts), pick(columns), axis);
      if (which == 2)
        return move(CollectiveKind::all_gather, across, full, pick(columns), pick(wholes), axis);
      return move(CollectiveKind::all_gather, rows, full, pick(parts), pick(wholes), axis);
    };
    StepList &steps = b.program.parts[p].steps;
    auto compute = [&] {
      const auto &slots = below(2) ? parts : columns;
      int64_t from = pick(slots);
      steps.push_back(b.step(LaunchStep{0, {from, pick(slots, from)}, 1}));
    };
    // A fault in a collective without predecessors or successors would have no effect.
    for (size_t i = 0, count = 6 + below(6); i < count; ++i) {
      compute();
      steps.push_back(collective(below(4)));
      if (below(2)) {
        int64_t from = pick(wholes);
        steps.push_back(b.step(CopyStep{from, pick(wholes, from), 64}));
      }
    }
  }

  /// The bytes of all slots of all devices.
  Bytes results(Executor &executor) const {
    Bytes all;
    for (int64_t d = 0; d < devices; ++d)
      for (size_t slot = 0; slot < b.program.parts[p].slots.size(); ++slot) {
        const std::byte *data = executor.slotData(p, d, static_cast<int64_t>(slot));
        all.insert(all.end(), data, data + b.program.parts[p].slots[slot].bytes);
      }
    return all;
  }

  std::unique_ptr<GpuExecutor> open(uint64_t seed, bool inProcess, PlantedFaults faults = {}) {
    auto executor = openOnStub(b.program, seed, inProcess, faults);
    for (int64_t d = 0; executor && d < devices; ++d)
      for (int64_t slot : parts)
        for (int64_t i = 0; i < 16; ++i)
          writeElement(DType::f32, static_cast<double>(slot + i + 10 * d),
                       executor->slotData(p, d, slot) + i * 4);
    return executor;
  }
};

class GpuFaults : public testing::TestWithParam<uint64_t> {};

} // namespace

TEST_P(GpuFaults, NoErrorWithoutAFault) {
  RandomProgram program(GetParam());
  for (bool inProcess : {false, true})
    for (uint64_t seed = 0; seed < 5; ++seed) {
      auto executor = program.open(seed, inProcess);
      ASSERT_TRUE(executor);
      for (int step = 0; step < 2; ++step) {
        Status status = executor->run();
        ASSERT_TRUE(status.ok()) << status.message();
      }
    }
}

TEST_P(GpuFaults, EveryDroppedWaitIsFound) {
  RandomProgram program(GetParam());
  auto sound = program.open(0, false);
  ASSERT_TRUE(sound && sound->run().ok());
  int64_t waits = sound->waitsIssued;
  ASSERT_GT(waits, program.devices);
  for (int64_t drop = 0; drop < waits; ++drop) {
    PlantedFaults faults;
    faults.dropWait = drop;
    Status status = program.open(0, false, faults)->run();
    ASSERT_FALSE(status.ok()) << "wait " << drop << " of " << waits;
    EXPECT_TRUE(says(status, {"hazard:", "capture", "deadlock:"})) << status.message();
  }
}

/// Devices of one process issue a collective together, which also orders them relative to each
/// other: a wait that this makes redundant may be missing. All other missing waits are detected.
TEST_P(GpuFaults, DroppedWaitsInOneProcessAreFoundOrChangeNothing) {
  RandomProgram program(GetParam());
  auto sound = program.open(0, true);
  ASSERT_TRUE(sound && sound->run().ok());
  Bytes expected = program.results(*sound);
  int64_t found = 0;
  for (int64_t drop = 0; drop < sound->waitsIssued; ++drop)
    for (uint64_t seed = 0; seed < 4; ++seed) {
      PlantedFaults faults;
      faults.dropWait = drop;
      auto executor = program.open(seed, true, faults);
      Status status = executor->run();
      if (status.ok()) {
        ASSERT_EQ(program.results(*executor), expected) << "wait " << drop << ", seed " << seed;
        continue;
      }
      EXPECT_TRUE(says(status, {"hazard:", "capture"})) << status.message();
      ++found;
    }
  EXPECT_GT(found, sound->waitsIssued);
}

TEST_P(GpuFaults, SwappedCollectivesAreFound) {
  RandomProgram program(GetParam());
  expectFound(&PlantedFaults::swapCollectives, program.devices, 3,
              {"different collectives", "deadlock", "meets a receive", "hazard:"},
              [&](auto... how) { return program.open(how...); });
}

TEST_P(GpuFaults, WrongCountsAreFound) {
  RandomProgram program(GetParam());
  expectFound(&PlantedFaults::wrongCount, program.devices, 3,
              {"different collectives", "in place requires", "meets a receive"},
              [&](auto... how) { return program.open(how...); });
}

INSTANTIATE_TEST_SUITE_P(Generated, GpuFaults, testing::Range(uint64_t(0), kPrograms));
