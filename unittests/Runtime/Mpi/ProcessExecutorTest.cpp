//===- ProcessExecutorTest.cpp - What processes say of each other ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What they compute is the suite's (test/Mpi/suite.test).
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "Mpi/ThreadedProcesses.h"

using namespace tessera::runtime;

namespace {

Expected<std::unique_ptr<Executor>> openProcesses(Program program, double seconds) {
  auto artifact = std::make_shared<Artifact>();
  artifact->program = std::move(program);
  BackendOptions options;
  options.timeoutSeconds = seconds;
  return openThreadedProcesses(std::move(artifact), options, nullptr);
}

} // namespace

TEST(ProcessExecutor, WhoDoesNotComeIsNamed) {
  Mesh mesh = makeMesh({3});
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m), flag = b.slot(p, DType::i1, Shape{});
  Layout partial = layoutOf({4}, {{}}, {{whole(mesh, 0), ReduceKind::sum}}), full = replicated({4});
  int64_t x = b.slot(p, DType::f32, partial);
  Step branch = b.step(IfStep{flag, {}, {}});
  std::get<IfStep>(branch.action)
      .thenSteps.push_back(b.step(
          b.collective(CollectiveKind::all_reduce, m, x, x, DType::f32, partial, full)));
  b.program.parts[p].steps.push_back(branch);
  auto executor = openProcesses(b.program, 0.5);
  ASSERT_TRUE(executor) << executor.message();
  for (int64_t device : {0, 1})
    *(*executor)->slotData(p, device, flag) = std::byte(1);
  std::string said = (*executor)->run().message();
  // Two have exchanged what they could, and miss the third.
  EXPECT_EQ(said.rfind("rank 0 (", 0), 0u) << said;
  EXPECT_NE(said.find(") waits in collective 0 (all_reduce) at test.mlir:"), std::string::npos)
      << said;
  EXPECT_NE(said.find(", execution 1, for "), std::string::npos) << said;
  EXPECT_NE(said.find("rank 2 ("), std::string::npos) << said;
  EXPECT_NE((*executor)->run().message().find("an earlier step failed"), std::string::npos);
}

TEST(ProcessExecutor, WhatOneCannotLoadAllSay) {
  Mesh mesh = makeMesh({2});
  ProgramBuilder b;
  int64_t p = b.part(b.mesh(mesh));
  b.slot(p, DType::f32, Shape{4});
  b.program.parts[p].arenaBytes = int64_t(1) << 60;
  auto executor = openProcesses(b.program, 20);
  ASSERT_FALSE(executor);
  EXPECT_NE(executor.message().find("the devices need"), std::string::npos) << executor.message();
}
