//===- ProcessExecutorTest.cpp - Errors between processes -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The suite tests their results (test/Mpi/suite.test).
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "Mpi/ProcessExecutor.h"
#include "Mpi/ThreadedProcesses.h"
#include "Ranks/CountedTransport.h"
#include "Ranks/Routes.h"
#include "Ranks/ThreadTransport.h"

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

TEST(ProcessExecutor, MissingRankIsNamed) {
  Mesh mesh = makeMesh({3});
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m), flag = b.slot(p, DType::i1, Shape{});
  Layout partial = layoutOf({4}, {{}}, {{whole(mesh, 0), ReduceKind::sum}}), full = replicated({4});
  int64_t x = b.slot(p, DType::f32, partial);
  Step branch = b.step(IfStep{flag, {}, {}});
  std::get<IfStep>(branch.action)
      .thenSteps.push_back(
          b.step(b.collective(CollectiveKind::all_reduce, m, x, x, DType::f32, partial, full)));
  b.program.parts[p].steps.push_back(branch);
  auto executor = openProcesses(b.program, 0.5);
  ASSERT_TRUE(executor) << executor.message();
  for (int64_t device : {0, 1})
    *(*executor)->slotData(p, device, flag) = std::byte(1);
  std::string said = (*executor)->run().message();
  // Two ranks have exchanged their data and wait for the third.
  EXPECT_EQ(said.rfind("rank 0 (", 0), 0u) << said;
  EXPECT_NE(said.find(") waits in collective 0 (all_reduce) at test.mlir:"), std::string::npos)
      << said;
  EXPECT_NE(said.find(", execution 1, for "), std::string::npos) << said;
  EXPECT_NE(said.find("rank 2 ("), std::string::npos) << said;
  EXPECT_NE((*executor)->run().message().find("an earlier step failed"), std::string::npos);
}

TEST(ProcessExecutor, LoadErrorOfOneRankIsReportedOnAll) {
  Mesh mesh = makeMesh({2});
  ProgramBuilder b;
  int64_t p = b.part(b.mesh(mesh));
  b.slot(p, DType::f32, Shape{4});
  b.program.parts[p].arenaBytes = int64_t(1) << 60;
  auto executor = openProcesses(b.program, 20);
  ASSERT_FALSE(executor);
  EXPECT_NE(executor.message().find("the devices need"), std::string::npos) << executor.message();
}

TEST(ProcessExecutor, SendsThePredictedBytesToEachPeer) {
  constexpr int64_t kRanks = 4;
  Mesh mesh = makeMesh({2, 2});
  ProgramBuilder b;
  int64_t m = b.mesh(mesh), p = b.part(m);
  // Uneven rows over both axes, sums over one, and a sum of all.
  Layout rows = layoutOf({7, 3}, {{whole(mesh, 0), whole(mesh, 1)}, {}}), full = replicated({7, 3});
  Layout terms = layoutOf({64}, {{}}, {{whole(mesh, 1), ReduceKind::sum}}), sums = replicated({64});
  Layout all =
      layoutOf({512}, {{}}, {{whole(mesh, 0), ReduceKind::sum}, {whole(mesh, 1), ReduceKind::sum}});
  auto add = [&](CollectiveKind kind, const Layout &source, const Layout &target) {
    int64_t from = b.slot(p, DType::f32, source), to = b.slot(p, DType::f32, target);
    b.add(p, b.collective(kind, m, from, to, DType::f32, source, target));
  };
  add(CollectiveKind::all_gather, rows, full);
  add(CollectiveKind::all_reduce, terms, sums);
  add(CollectiveKind::all_reduce, all, replicated({512}));
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  auto routes = routesOf(b.program);
  ASSERT_TRUE(routes) << routes.message();
  ASSERT_EQ(routes->size(), 3u);
  for (const CollectiveRoutes &each : *routes)
    EXPECT_FALSE(each.algorithms.empty()) << each.kind;
  std::vector<std::unique_ptr<ProcessExecutor>> ranks;
  std::vector<test::CountedTransport *> counted;
  for (auto &transport : makeThreadTransports(kRanks)) {
    auto made = std::make_unique<test::CountedTransport>(std::move(transport));
    counted.push_back(made.get());
    ranks.push_back(std::make_unique<ProcessExecutor>(artifact, std::move(made), 60,
                                                      HeldPlacement(), BackendOptions()));
  }
  auto onAll = [&](auto body) {
    std::vector<std::thread> threads;
    for (auto &rank : ranks)
      threads.emplace_back([&] { EXPECT_TRUE(body(*rank).ok()); });
    for (std::thread &each : threads)
      each.join();
  };
  onAll([](ProcessExecutor &rank) { return rank.open(); });
  for (test::CountedTransport *each : counted)
    each->sent.assign(kRanks, 0);
  onAll([](ProcessExecutor &rank) { return rank.run(); });
  std::vector<std::vector<int64_t>> expected(kRanks, std::vector<int64_t>(kRanks));
  for (const CollectiveRoutes &each : *routes)
    for (const auto &[ends, bytes] : each.bytes)
      expected[ends.first][ends.second] += bytes;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(counted[rank]->sent, expected[rank]) << "rank " << rank;
}
