//===- TransferTest.cpp - Send and recv between parts ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferedProgram.h"
#include "Reference.h"

using namespace tessera::runtime;

namespace {

/// Two parts: x on the first mesh is sent to y on the second, in loops of `sends` and `recvs` trips
/// with equal total numbers of transfers.
struct TransferProgram {
  ProgramBuilder b;
  int64_t p, q, x, y;

  TransferProgram(const Mesh &first, const Mesh &second, const Layout &source, const Layout &target,
                  DType dtype) {
    int64_t m = b.mesh(first), n = b.mesh(second);
    p = b.part(m), q = b.part(n);
    x = b.slot(p, dtype, source), y = b.slot(q, dtype, target);
    Operand operand{x, -1, dtype, source.globalShape, source, target, {}};
    b.add(p, TransferStep{true, m, n, {operand}, 0, 0});
    operand.src = -1, operand.dst = y;
    b.add(q, TransferStep{false, m, n, {operand}, 0, 0});
  }
};

} // namespace

TEST(Transfer, BetweenSeparateAndOverlappingMeshes) {
  Mesh first = makeMesh({2, 2}, 0, "first");
  for (const Mesh &second : {makeMesh({3}, 4, "second"), makeMesh({3}, 2, "second"),
                             makeMesh({4}, 0, "second"), makeMesh({1}, 1, "second")})
    for (DType dtype : {DType::f32, DType::i8, DType::bf16})
      for (int64_t n : {6, 5, 1, 0}) {
        Shape global{n, 3};
        AxisRef a = whole(first, 0), b = whole(first, 1), c = whole(second, 0);
        for (const Layout &source :
             {replicated(global), layoutOf(global, {{a}, {b}}), layoutOf(global, {{b, a}, {}})})
          for (const Layout &target :
               {replicated(global), layoutOf(global, {{c}, {}}), layoutOf(global, {{}, {c}})}) {
            TransferProgram t(first, second, source, target, dtype);
            auto executor = openProgram(t.b.program);
            ASSERT_TRUE(executor);
            for (int64_t d = 0; d < first.numDevices(); ++d)
              fillSource(dtype, first, source, d, executor->slotData(t.p, d, t.x));
            for (int round = 0; round < 2; ++round) {
              for (int64_t d = 0; d < second.numDevices(); ++d)
                std::memset(executor->slotData(t.q, d, t.y), 0xab,
                            static_cast<size_t>(t.b.program.parts[t.q].slots[t.y].bytes));
              Status status = executor->run();
              ASSERT_TRUE(status.ok()) << status.message();
              for (int64_t d = 0; d < second.numDevices(); ++d) {
                checkTarget(dtype, second, replicated(global), target, d,
                            executor->slotData(t.q, d, t.y), {}, "transfer");
                if (HasFatalFailure())
                  return;
              }
            }
          }
      }
}

TEST(Transfer, PartialSourcesAreReducedOnArrival) {
  Mesh first = makeMesh({3}, 0, "first"), second = makeMesh({2}, 2, "second");
  Layout partial = layoutOf({5}, {{}}, {{whole(first, 0), ReduceKind::sum}});
  Layout rows = layoutOf({5}, {{whole(second, 0)}});
  TransferProgram t(first, second, partial, rows, DType::f32);
  auto executor = openProgram(t.b.program);
  for (int64_t d = 0; d < 3; ++d)
    fillSource(DType::f32, first, partial, d, executor->slotData(t.p, d, t.x));
  ASSERT_TRUE(executor->run().ok());
  for (int64_t d = 0; d < 2; ++d)
    for (int64_t i = d * 3; i < std::min<int64_t>(5, d * 3 + 3); ++i) {
      float expected = 0;
      for (int64_t place = 0; place < 3; ++place) {
        auto term = static_cast<float>(contribution(DType::f32, {i}, place));
        expected = place == 0 ? term : expected + term;
      }
      EXPECT_EQ(readElement(DType::f32, executor->slotData(t.q, d, t.y) + (i - d * 3) * 4),
                expected);
    }
}

static void checkRhythm(bool guarded, int64_t cores) {
  BufferedProgram t(guarded);
  auto executor = openProgram(t.b.program, cores);
  *executor->slotData(t.p, 0, t.flag) = *executor->slotData(t.p, 1, t.flag) = std::byte(1);
  for (int64_t d = 0; d < 2; ++d)
    fillSource(DType::f32, t.first, t.full, d, executor->slotData(t.p, d, t.x));
  for (int step = 1; step <= 3; ++step) {
    Status status = executor->run();
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t d = 0; d < 2; ++d)
      for (int64_t y : t.targets)
        checkTarget(DType::f32, t.second, t.full, t.full, d, executor->slotData(t.q, d, y), {},
                    "buffers");
    EXPECT_EQ(executor->stats()[0].executions, 3 * step);
  }
}

TEST(Transfer, LoopsOfDifferentNesting) {
  for (int64_t cores : {1, 4})
    checkRhythm(false, cores);
}

TEST(Transfer, DataDependentLoopsOfDifferentNesting) {
  for (int64_t cores : {1, 4})
    checkRhythm(true, cores);
}

TEST(Transfer, MissingMessagesAreADeadlock) {
  Mesh first = makeMesh({2}, 0, "first"), second = makeMesh({1}, 2, "second");
  ProgramBuilder b;
  int64_t m = b.mesh(first), n = b.mesh(second), p = b.part(m), q = b.part(n);
  Layout halves = layoutOf({2}, {{whole(first, 0)}}), full = replicated({2});
  int64_t flag = b.slot(p, DType::i1, Shape{});
  int64_t x = b.slot(p, DType::f32, halves), y = b.slot(q, DType::f32, full);
  Step branch = b.step(IfStep{flag, {}, {}});
  std::get<IfStep>(branch.action)
      .thenSteps.push_back(
          b.step(TransferStep{true, m, n, {{x, -1, DType::f32, {2}, halves, full, {}}}, 0, 9}));
  b.program.parts[p].steps.push_back(branch);
  b.add(q, TransferStep{false, m, n, {{-1, y, DType::f32, {2}, halves, full, {}}}, 0, 9});
  auto executor = openProgram(b.program);
  *executor->slotData(p, 0, flag) = std::byte(1);
  Status status = executor->run();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("device 2 waits in recv 9"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("for device 1"), std::string::npos) << status.message();
}
