//===- ControlFlowTest.cpp - Kernels, loops, branches, deadlock -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

using namespace tessera::runtime;

namespace {

/// Opens a program with the test kernels and constants.
std::unique_ptr<Executor> openWithKernels(Program program, Bytes constants = {}, int64_t cores = 2,
                                          int64_t tasks = 1) {
  auto artifact = std::make_shared<Artifact>();
  program.kernels = {"add_one", "add_index", "count_up", "scale_coordinate"};
  artifact->program = std::move(program);
  artifact->constants = std::move(constants);
  artifact->kernels = {kernelsForTests(artifact->program.kernels.size(), tasks)};
  Status status = verify(artifact->program, static_cast<int64_t>(artifact->constants.size()));
  EXPECT_TRUE(status.ok()) << status.message();
  auto executor = openUnderTest(artifact, {0, cores, true});
  EXPECT_TRUE(executor) << executor.message();
  return executor ? std::move(*executor) : nullptr;
}

float &floatAt(Executor &executor, int64_t part, int64_t position, int64_t slot) {
  return *reinterpret_cast<float *>(executor.slotData(part, position, slot));
}
int64_t &indexAt(Executor &executor, int64_t part, int64_t position, int64_t slot) {
  return *reinterpret_cast<int64_t *>(executor.slotData(part, position, slot));
}

/// A part on n devices with x (f32, one element) and an all-reduce of it in place.
struct SumProgram {
  ProgramBuilder b;
  int64_t m, p, x;
  Layout partial, full;
  explicit SumProgram(int64_t n)
      : m(b.mesh(makeMesh({n}))), p(b.part(m)),
        partial(layoutOf({1}, {{}}, {{whole(b.program.meshes[m], 0), ReduceKind::sum}})),
        full(replicated({1})) {
    x = b.slot(p, DType::f32, partial);
  }
  CollectiveStep sum() {
    return b.collective(CollectiveKind::all_reduce, m, x, x, DType::f32, partial, full);
  }
};

} // namespace

TEST(Kernels, LaunchesInOneOrManyTasks) {
  for (int64_t cores : {1, 4})
    for (int64_t tasks : {1, 7, 64}) {
      ProgramBuilder b;
      int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
      int64_t x = b.slot(p, DType::f32, Shape{tasks * 4}),
              y = b.slot(p, DType::f32, Shape{tasks * 4});
      b.program.kernels = {"add_one"};
      b.add(p, LaunchStep{0, {x, y}, 1});
      auto executor = openWithKernels(b.program, {}, cores, tasks);
      ASSERT_TRUE(executor);
      for (int64_t d = 0; d < 2; ++d)
        for (int64_t i = 0; i < tasks * 4; ++i)
          (&floatAt(*executor, p, d, x))[i] = static_cast<float>(i + d);
      ASSERT_TRUE(executor->run().ok());
      for (int64_t d = 0; d < 2; ++d)
        for (int64_t i = 0; i < tasks * 4; ++i)
          ASSERT_EQ((&floatAt(*executor, p, d, y))[i], static_cast<float>(i + d + 1));
    }
}

TEST(Kernels, LaunchesByBlocksOfAProduct) {
  // C = A · B of ones and numbers by row, then D = C + 1 in blocks of rows; blocks of one row or of
  // many, which pieces of the product complete together or not.
  constexpr int64_t rows = 1024, columns = 16, depth = 24;
  for (int64_t cores : {1, 4})
    for (int64_t blocks : {2, 16, 1024})
      for (bool contracts : {false, true})
        for (bool inPlace : {false, true}) {
          ProgramBuilder b;
          int64_t m = b.mesh(makeMesh({1})), p = b.part(m);
          int64_t x = b.slot(p, DType::f32, Shape{rows, depth}),
                  y = b.slot(p, DType::f32, Shape{depth, columns}),
                  c = b.slot(p, DType::f32, Shape{rows, columns});
          int64_t d = inPlace ? c : b.slot(p, DType::f32, Shape{rows, columns});
          if (contracts) {
            ContractStep contract;
            contract.a = x, contract.b = y, contract.c = c;
            contract.loops = {
                {rows, {depth, 0, columns}}, {columns, {0, 1, 1}}, {depth, {1, columns, 0}}};
            b.add(p, contract);
          } else {
            GemmStep gemm;
            gemm.a = x, gemm.b = y, gemm.c = c;
            gemm.m = rows, gemm.n = columns, gemm.k = depth;
            gemm.lda = depth, gemm.ldb = gemm.ldc = columns;
            b.add(p, gemm);
          }
          int64_t bytes = rows * columns * 4 / blocks;
          b.program.kernelBytes = {{bytes, bytes}, {}, {}, {}};
          LaunchStep launch{0, {c, d}, 1};
          launch.blocks = blocks;
          launch.cut = {true, true};
          launch.joins = true;
          b.add(p, launch);
          auto executor = openWithKernels(b.program, {}, cores, bytes / 16);
          ASSERT_TRUE(executor);
          for (int run = 0; run < 3; ++run) {
            for (int64_t i = 0; i < rows * depth; ++i)
              (&floatAt(*executor, p, 0, x))[i] = static_cast<float>(i / depth + run);
            std::fill_n(&floatAt(*executor, p, 0, y), depth * columns, 1.0f);
            ASSERT_TRUE(executor->run().ok());
            for (int64_t i = 0; i < rows * columns; ++i)
              ASSERT_EQ((&floatAt(*executor, p, 0, d))[i],
                        static_cast<float>(depth * (i / columns + run) + 1))
                  << i << " of " << blocks << " blocks, " << cores << " cores";
          }
        }
}

TEST(Kernels, CopiesInOneOrManyPieces) {
  for (int64_t cores : {1, 4})
    for (int64_t elements : {5, (3 << 20) / 4 + 1}) {
      ProgramBuilder b;
      int64_t m = b.mesh(makeMesh({1})), p = b.part(m);
      int64_t x = b.slot(p, DType::f32, Shape{elements}),
              y = b.slot(p, DType::f32, Shape{elements});
      b.add(p, CopyStep{x, y, elements * 4});
      auto executor = openWithKernels(b.program, {}, cores);
      ASSERT_TRUE(executor);
      for (int64_t i = 0; i < elements; ++i) {
        (&floatAt(*executor, p, 0, x))[i] = static_cast<float>(i);
        (&floatAt(*executor, p, 0, y))[i] = -1;
      }
      ASSERT_TRUE(executor->run().ok());
      for (int64_t i = 0; i < elements; ++i)
        ASSERT_EQ((&floatAt(*executor, p, 0, y))[i], static_cast<float>(i));
    }
}

TEST(Kernels, CoordinatesAndConstants) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2, 3})), p = b.part(m);
  int64_t c = b.slot(p, DType::index, Shape{}), out = b.slot(p, DType::f32, Shape{});
  b.program.parts[p].slots.push_back({"k", Slot::Space::constant, 8, 4, DType::f32, {}});
  b.program.parts[p].coordinates.push_back({c, {whole(b.program.meshes[m], 1)}});
  b.program.kernels = {"", "", "", "scale_coordinate"};
  b.add(p, LaunchStep{3, {2, c, out}, 2});
  Bytes constants(12);
  writeElement(DType::f32, 2.5, constants.data() + 8);
  auto executor = openWithKernels(b.program, constants);
  ASSERT_TRUE(executor);
  ASSERT_TRUE(executor->run().ok());
  for (int64_t d = 0; d < 6; ++d)
    EXPECT_EQ(floatAt(*executor, p, d, out), 2.5f * static_cast<float>(d % 3));
}

TEST(Kernels, MissingSymbolsAndBrokenObjects) {
  ProgramBuilder b;
  b.part(b.mesh(makeMesh({1})));
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  artifact->program.kernels = {"no_such_kernel"};
  artifact->kernels = {kernelsForTests(1)};
  auto missing = openUnderTest(artifact, {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.message().find("no_such_kernel"), std::string::npos);
  artifact->kernels[0].image = Bytes(64, std::byte(1));
  auto broken = openUnderTest(artifact, {});
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.message().find("cannot be loaded"), std::string::npos);
}

TEST(ControlFlow, CountedLoops) {
  struct {
    int64_t lower, upper, step;
    float sum; ///< of the values of iv
  } table[] = {{0, 5, 1, 10}, {2, 9, 3, 15},
               {5, 5, 1, 0},  {7, 3, 1, 0},
               {-4, 5, 4, 0}, {INT64_MAX - 1, INT64_MAX, 5, static_cast<float>(INT64_MAX - 1)}};
  for (auto &row : table)
    for (bool fromSlots : {false, true}) {
      ProgramBuilder b;
      int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
      int64_t iv = b.slot(p, DType::index, Shape{}), sum = b.slot(p, DType::f32, Shape{});
      int64_t lower = b.slot(p, DType::index, Shape{}), upper = b.slot(p, DType::i64, Shape{});
      b.program.kernels = {"", "add_index"};
      LoopStep loop{iv, {row.lower, {}}, {row.upper, {}}, {row.step, {}}, {}};
      if (fromSlots)
        loop.lower.slot = lower, loop.upper.slot = upper;
      Step step = b.step(loop);
      std::get<LoopStep>(step.action).body.push_back(b.step(LaunchStep{1, {iv, sum}, 1}));
      b.program.parts[p].steps.push_back(step);
      auto executor = openWithKernels(b.program);
      ASSERT_TRUE(executor);
      for (int64_t d = 0; d < 2; ++d) {
        indexAt(*executor, p, d, lower) = row.lower;
        indexAt(*executor, p, d, upper) = row.upper;
      }
      ASSERT_TRUE(executor->run().ok());
      EXPECT_EQ(floatAt(*executor, p, 1, sum), row.sum);
    }
}

TEST(ControlFlow, WhileAndIf) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({3})), p = b.part(m);
  int64_t limit = b.slot(p, DType::index, Shape{}), value = b.slot(p, DType::index, Shape{});
  int64_t flag = b.slot(p, DType::i1, Shape{}), choice = b.slot(p, DType::i1, Shape{});
  int64_t x = b.slot(p, DType::f32, Shape{4}), y = b.slot(p, DType::f32, Shape{4});
  b.program.kernels = {"add_one", "", "count_up"};
  Step loop = b.step(WhileStep{{}, flag, {}});
  auto &action = std::get<WhileStep>(loop.action);
  action.before.push_back(b.step(LaunchStep{2, {limit, value, flag}, 1}));
  Step branch = b.step(IfStep{choice, {}, {}});
  std::get<IfStep>(branch.action).thenSteps.push_back(b.step(LaunchStep{0, {x, x}, 1}));
  std::get<IfStep>(branch.action).elseSteps.push_back(b.step(LaunchStep{0, {y, y}, 1}));
  action.body.push_back(branch);
  b.program.parts[p].steps.push_back(loop);
  auto executor = openWithKernels(b.program);
  ASSERT_TRUE(executor);
  for (int64_t d = 0; d < 3; ++d) {
    indexAt(*executor, p, d, limit) = 3 * d;
    *executor->slotData(p, d, choice) = std::byte(d == 2);
  }
  ASSERT_TRUE(executor->run().ok());
  for (int64_t d = 0; d < 3; ++d) {
    EXPECT_EQ(indexAt(*executor, p, d, value), 3 * d + 1);
    EXPECT_EQ(floatAt(*executor, p, d, x), d == 2 ? 6.0f : 0.0f);
    EXPECT_EQ(floatAt(*executor, p, d, y), d == 1 ? 3.0f : 0.0f);
  }
}

TEST(ControlFlow, CollectivesInLoopsMatchByExecution) {
  for (int64_t cores : {1, 2, 4})
    for (int64_t n : {1, 2, 5, 8}) {
      SumProgram s(n);
      int64_t i = s.b.slot(s.p, DType::index, Shape{}), j = s.b.slot(s.p, DType::index, Shape{});
      Step outer = s.b.step(LoopStep{i, {0, {}}, {5, {}}, {1, {}}, {}});
      Step inner = s.b.step(LoopStep{j, {0, {}}, {3, {}}, {1, {}}, {}});
      std::get<LoopStep>(inner.action).body.push_back(s.b.step(s.sum()));
      std::get<LoopStep>(outer.action).body.push_back(inner);
      s.b.program.parts[s.p].steps.push_back(outer);
      auto executor = openProgram(s.b.program, cores);
      for (int64_t d = 0; d < n; ++d)
        floatAt(*executor, s.p, d, s.x) = 1;
      ASSERT_TRUE(executor->run().ok());
      for (int64_t d = 0; d < n; ++d)
        EXPECT_EQ(floatAt(*executor, s.p, d, s.x),
                  static_cast<float>(std::pow(static_cast<double>(n), 15)));
      EXPECT_EQ(executor->stats()[0].executions, 15);
    }
}

TEST(ControlFlow, AsynchronousCollectives) {
  for (int64_t cores : {1, 3})
    for (int64_t elements : {1, 300000}) {
      Mesh mesh = makeMesh({4});
      ProgramBuilder b;
      int64_t m = b.mesh(mesh), p = b.part(m);
      Layout partial = layoutOf({elements}, {{}}, {{whole(mesh, 0), ReduceKind::sum}});
      Layout full = replicated({elements});
      int64_t iv = b.slot(p, DType::index, Shape{});
      int64_t x = b.slot(p, DType::f32, partial), y = b.slot(p, DType::f32, full);
      int64_t z = b.slot(p, DType::f32, partial), w = b.slot(p, DType::f32, full);
      CollectiveStep first =
          b.collective(CollectiveKind::all_reduce, m, x, y, DType::f32, partial, full);
      CollectiveStep second =
          b.collective(CollectiveKind::all_reduce, m, z, w, DType::f32, partial, full);
      first.token = 1, second.token = 2;
      // Two in progress at once, over three trips; waited for in reverse order.
      Step loop = b.step(LoopStep{iv, {0, {}}, {3, {}}, {1, {}}, {}});
      StepList &body = std::get<LoopStep>(loop.action).body;
      body.push_back(b.step(first));
      body.push_back(b.step(second));
      body.push_back(b.step(WaitStep{2}));
      body.push_back(b.step(WaitStep{1}));
      body.push_back(b.step(CopyStep{y, x, elements * 4}));
      body.push_back(b.step(CopyStep{w, z, elements * 4}));
      b.program.parts[p].steps.push_back(loop);
      auto executor = openProgram(b.program, cores, true);
      for (int64_t d = 0; d < 4; ++d)
        for (int64_t i = 0; i < elements; ++i) {
          (&floatAt(*executor, p, d, x))[i] = 1;
          (&floatAt(*executor, p, d, z))[i] = static_cast<float>(i % 3);
        }
      ASSERT_TRUE(executor->run().ok());
      for (int64_t d = 0; d < 4; ++d)
        for (int64_t i = 0; i < elements; ++i) {
          ASSERT_EQ((&floatAt(*executor, p, d, x))[i], 64.0f);
          ASSERT_EQ((&floatAt(*executor, p, d, z))[i], 64.0f * static_cast<float>(i % 3));
        }
      EXPECT_NE(executor->traceJson().find("\"device 3\""), std::string::npos);
      EXPECT_NE(executor->traceJson().find("all_reduce"), std::string::npos);
      EXPECT_EQ(executor->recorded().size(), 6u);
    }
}

TEST(ControlFlow, DeadlockIsReported) {
  SumProgram s(4);
  int64_t flag = s.b.slot(s.p, DType::i1, Shape{});
  Step branch = s.b.step(IfStep{flag, {}, {}});
  CollectiveStep sum = s.sum();
  sum.id = 42;
  std::get<IfStep>(branch.action).thenSteps.push_back(s.b.step(sum));
  s.b.program.parts[s.p].steps.push_back(branch);
  for (int64_t cores : {1, 4}) {
    auto executor = openProgram(s.b.program, cores);
    for (int64_t d = 0; d < 4; ++d)
      *executor->slotData(s.p, d, flag) = std::byte(d != 2);
    Status status = executor->run();
    ASSERT_FALSE(status.ok());
    for (const char *expected :
         {"deadlock", "device 0", "collective 42", "all_reduce", "test.mlir:", "finished: 2"})
      EXPECT_NE(status.message().find(expected), std::string::npos)
          << expected << " in: " << status.message();
    EXPECT_NE(executor->run().message().find("earlier step failed"), std::string::npos);
  }
}

TEST(ControlFlow, InvalidLoopStepsAreReported) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
  int64_t iv = b.slot(p, DType::index, Shape{}), step = b.slot(p, DType::index, Shape{});
  b.add(p, LoopStep{iv, {0, {}}, {5, {}}, {0, step}, {}});
  auto executor = openProgram(b.program);
  EXPECT_NE(executor->run().message().find("must be positive"), std::string::npos);
}

TEST(ControlFlow, RecorderKeepsTheLast1024) {
  SumProgram s(2);
  int64_t i = s.b.slot(s.p, DType::index, Shape{});
  Step loop = s.b.step(LoopStep{i, {0, {}}, {1500, {}}, {1, {}}, {}});
  std::get<LoopStep>(loop.action).body.push_back(s.b.step(s.sum()));
  s.b.program.parts[s.p].steps.push_back(loop);
  auto executor = openProgram(s.b.program);
  ASSERT_TRUE(executor->run().ok());
  auto records = executor->recorded();
  ASSERT_EQ(records.size(), 1024u);
  EXPECT_EQ(records.front().sequence, 1500 - 1024);
  EXPECT_EQ(records.back().sequence, 1499);
  EXPECT_EQ(records.back().kind, "all_reduce");
}
