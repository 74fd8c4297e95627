//===- GroupTest.cpp - Groups of ranks ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Groups/Group.h"
#include "Groups/Transports.h"
#include "Ranks/CollectiveCase.h"
#include "Ranks/ThreadTransport.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace tessera::runtime;
using namespace tessera::runtime::test;

namespace {

using Groups = std::vector<std::unique_ptr<Group>>;

/// The world of each rank; works run in threads, so one thread may call for all ranks.
Groups makeWorlds(int64_t ranks, double timeout = 20, const std::string &backend = "threads") {
  static int jobs = 0;
  std::string place = "job " + std::to_string(++jobs);
  if (backend == "tcp")
    place = "file:" + testing::TempDir() + "tessera-group-" + std::to_string(::getpid()) + place;
  Groups worlds(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto transport =
          openTransport(backend, {{rank, ranks, rank}, {place, "", "init_method"}, 20});
      ASSERT_TRUE(transport) << transport.message();
      auto world = Group::ofJob(std::make_shared<Job>(std::move(*transport)), timeout);
      ASSERT_TRUE(world) << world.message();
      worlds[rank] = std::move(*world);
    });
  for (std::thread &each : threads)
    each.join();
  return worlds;
}

/// Loads the backend `toy` once per process.
const Status &loadedToy() {
  static const Status status = loadTransport(TOY_TRANSPORT);
  return status;
}

/// Tests for every backend.
class Backend : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { ASSERT_TRUE(loadedToy().ok()) << loadedToy().message(); }
  static Groups makeWorlds(int64_t ranks) { return ::makeWorlds(ranks, 20, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Groups, Backend, testing::Values("threads", "tcp", "toy"),
                         [](const auto &info) { return std::string(info.param); });

GroupCall reduceOf(std::vector<float> &values, GroupReduction reduction = GroupReduction::sum) {
  GroupCall call;
  call.reduction = reduction;
  call.counts = {static_cast<int64_t>(values.size())};
  call.input = reinterpret_cast<const std::byte *>(values.data());
  call.output = reinterpret_cast<std::byte *>(values.data());
  return call;
}

/// The message of each rank.
std::vector<std::string> messagesOf(const std::vector<WorkPtr> &works) {
  std::vector<std::string> said;
  for (const WorkPtr &work : works)
    said.push_back(work->wait().message());
  return said;
}

void expectAll(const std::vector<WorkPtr> &works, const std::string &message) {
  EXPECT_EQ(messagesOf(works), std::vector<std::string>(works.size(), message));
}

} // namespace

TEST_P(Backend, CollectivesOfEveryKind) {
  for (int64_t ranks : {1, 3, 4}) {
    Groups worlds = makeWorlds(ranks);
    for (CollectiveKind kind : kKinds)
      for (bool uneven : {false, true}) {
        CollectiveCase c{kind};
        c.ranks = ranks, c.count = 33, c.uneven = uneven && !c.isWhole(), c.root = ranks - 1;
        std::vector<Bytes> inputs, outputs, expected = c.results();
        std::vector<WorkPtr> works;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          inputs.push_back(c.inputOf(rank));
          outputs.emplace_back(static_cast<size_t>(c.outputCount(rank) * 4));
        }
        for (int64_t rank = 0; rank < ranks; ++rank) {
          PlanRequest request = c.request(rank);
          works.push_back(worlds[rank]->call({kind,
                                              {},
                                              GroupReduction::sum,
                                              c.root,
                                              request.counts,
                                              request.receives,
                                              inputs[rank].data(),
                                              outputs[rank].data(),
                                              std::nullopt}));
        }
        expectAll(works, "");
        for (int64_t rank = 0; rank < ranks; ++rank)
          if (c.gets(rank))
            EXPECT_EQ(outputs[rank], expected[rank]) << c.text() << ", rank " << rank;
      }
  }
}

TEST_P(Backend, ManyWorksAreInFlight) {
  Groups worlds = makeWorlds(3);
  std::vector<std::vector<float>> values;
  std::vector<WorkPtr> works;
  for (int i = 0; i < 60; ++i)
    values.push_back({static_cast<float>(i), 1});
  for (int i = 0; i < 60; ++i) // 20 calls per rank
    works.push_back(worlds[i % 3]->call(reduceOf(values[i])));
  expectAll(works, "");
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(values[i], (std::vector<float>{static_cast<float>(i / 3 * 9 + 3), 3}));
}

TEST_P(Backend, DifferentCallsAreErrorsOnAllRanks) {
  Groups worlds = makeWorlds(3);
  std::vector<float> a(4, 1), b(4, 1), c(5, 1);
  GroupCall broadcast = reduceOf(b);
  broadcast.kind = CollectiveKind::broadcast;
  broadcast.root = 2;
  expectAll(
      {worlds[0]->call(reduceOf(a)), worlds[1]->call(broadcast), worlds[2]->call(reduceOf(a))},
      "the ranks of the group make different calls: ranks 0, 2: all_reduce of 4 f32 by sum; "
      "rank 1: broadcast of 4 f32, from rank 2");
  GroupCall whole = reduceOf(b, GroupReduction::max);
  whole.type = {DType::i32, true};
  expectAll({worlds[0]->call(reduceOf(a)), worlds[1]->call(whole), worlds[2]->call(reduceOf(c))},
            "the ranks of the group make different calls: rank 0: all_reduce of 4 f32 by sum; "
            "rank 1: all_reduce of 4 u32 by max; rank 2: all_reduce of 5 f32 by sum");
  EXPECT_EQ(a, std::vector<float>(4, 1)) << "no data has moved";
  c.resize(4);
  expectAll(
      {worlds[0]->call(reduceOf(a)), worlds[1]->call(reduceOf(b)), worlds[2]->call(reduceOf(c))},
      "");
  EXPECT_EQ(a, std::vector<float>(4, 3));
}

TEST(Group, UnsupportedCallFailsOnAllRanks) {
  Groups worlds = makeWorlds(2);
  std::vector<float> a(4), b(4);
  GroupCall wrong = reduceOf(b);
  wrong.kind = CollectiveKind::broadcast;
  wrong.root = 5;
  expectAll({worlds[0]->call(reduceOf(a)), worlds[1]->call(wrong)},
            "rank 1: broadcast: the root is rank 5, which is not in the group [0, 1]");
  GroupCall average = reduceOf(a, GroupReduction::avg);
  average.type.dtype = DType::i32;
  expectAll({worlds[0]->call(average), worlds[1]->call(average)},
            "rank 0: all_reduce: avg of i32; averages need floats");
  GroupCall forced = reduceOf(b);
  forced.kind = CollectiveKind::broadcast;
  forced.algorithm = Algorithm::one_shot;
  expectAll({worlds[0]->call(forced), worlds[1]->call(forced)},
            "rank 0: broadcast: algorithm 'one_shot' does not apply to broadcast of these ranks; "
            "direct, ring, tree do");
}

TEST_P(Backend, MismatchedAllToAllIsAnError) {
  Groups worlds = makeWorlds(2);
  std::vector<float> data[2] = {std::vector<float>(8), std::vector<float>(8)},
                     out[2] = {data[0], data[1]};
  std::vector<WorkPtr> works;
  for (int64_t rank : {0, 1}) {
    GroupCall call = reduceOf(data[rank]);
    call.kind = CollectiveKind::all_to_all;
    call.counts = {2, 3};
    call.receives = rank == 0 ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{4, 3};
    call.output = reinterpret_cast<std::byte *>(out[rank].data());
    works.push_back(worlds[rank]->call(call));
  }
  expectAll(works, "rank 0 sends 3 elements to rank 1, which expects 4");
}

TEST(Group, MissingCallerIsNamed) {
  Groups worlds = makeWorlds(4, 0.3);
  std::vector<float> a(4), b(4);
  std::string said = "all_reduce of 4 f32 by sum: it took too long; ranks 2, 3 have not called it";
  expectAll({worlds[0]->call(reduceOf(a)), worlds[1]->call(reduceOf(b))}, said);
  // The job has ended.
  EXPECT_EQ(worlds[0]->barrier()->wait().message(), "barrier: " + said);
}

TEST(Group, ARankThatEndsFailsTheOthersImmediately) {
  Groups worlds = makeWorlds(3, 60);
  std::vector<float> a(4), b(4);
  std::vector<WorkPtr> works{worlds[0]->call(reduceOf(a)), worlds[1]->call(reduceOf(b))};
  worlds[2].reset();
  // Also on ranks that hear of it from another rank, which failed for the same reason.
  expectAll(works, "all_reduce of 4 f32 by sum: rank 2 (localhost) has ended");
}

TEST_P(Backend, SubgroupsAreIndependent) {
  Groups worlds = makeWorlds(4);
  Groups even(4), odd(4);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      even[rank] = std::move(*worlds[rank]->make({0, 2}, 20));
      odd[rank] = std::move(*worlds[rank]->make({1, 3}, 20));
    });
  for (std::thread &each : threads)
    each.join();
  EXPECT_TRUE(even[0] && even[2] && odd[1] && odd[3]);
  EXPECT_FALSE(even[1] || even[3] || odd[0] || odd[2]);
  std::vector<float> values[4] = {{1}, {10}, {2}, {20}};
  std::vector<WorkPtr> works;
  for (int64_t rank = 0; rank < 4; ++rank)
    works.push_back((rank % 2 ? odd : even)[rank]->call(reduceOf(values[rank])));
  expectAll(works, "");
  EXPECT_EQ(values[0][0], 3);
  EXPECT_EQ(values[3][0], 30);
}

TEST(Group, NewGroupsWithDifferentRanksAreErrors) {
  Groups worlds = makeWorlds(2);
  std::string said[2];
  std::thread other([&] { said[1] = worlds[1]->make({1}, 20).message(); });
  said[0] = worlds[0]->make({0, 1}, 20).message();
  other.join();
  EXPECT_EQ(said[0], "the ranks of the group make different calls: rank 0: new_group of [0, 1]; "
                     "rank 1: new_group of [1]");
  EXPECT_EQ(said[1], said[0]);
}

TEST_P(Backend, MessagesMatchReceives) {
  Groups worlds = makeWorlds(3);
  int64_t first = 11, second = 22, third = 33, got[3] = {};
  auto data = [](int64_t &value) { return reinterpret_cast<std::byte *>(&value); };
  std::vector<WorkPtr> works{worlds[0]->send(2, 5, data(first), 8, "1 i64"),
                             worlds[0]->send(2, 6, data(second), 8, "1 i64")};
  works.push_back(worlds[2]->receive(0, 6, data(got[1]), 8, "1 i64")); // the later message first
  works.push_back(worlds[2]->receive(0, 5, data(got[0]), 8, "1 i64"));
  expectAll(works, "");
  auto any = worlds[2]->receive(-1, 0, data(got[2]), 8, "1 i64");
  expectAll({worlds[1]->send(2, 0, data(third), 8, "1 i64"), any}, "");
  EXPECT_EQ(any->source, 1);
  EXPECT_EQ(got[0] * 10000 + got[1] * 100 + got[2], 112233);
}

TEST_P(Backend, MessagesOfWrongSizeAreErrors) {
  Groups worlds = makeWorlds(2);
  int64_t sent[2] = {1, 2}, got[2] = {};
  auto *from = reinterpret_cast<std::byte *>(sent), *to = reinterpret_cast<std::byte *>(got);
  auto refused = worlds[1]->receive(0, 0, to, 8, "1 i64");
  expectAll({worlds[0]->send(1, 0, from, 16, "2 i64")}, "");
  EXPECT_EQ(refused->wait().message(), "rank 0 sends 2 i64, and this rank receives 1 i64");
  EXPECT_EQ(worlds[0]->send(7, 0, from, 8, "1 i64")->wait().message(),
            "send: rank 7 is not in the group");
  // The next message is a new one.
  auto next = worlds[1]->receive(0, 0, to, 8, "1 i64");
  expectAll({worlds[0]->send(1, 0, from + 8, 8, "1 i64"), next}, "");
  EXPECT_EQ(got[0], 2);
}

TEST(GroupElements, UnsignedAndBitwise) {
  Groups worlds = makeWorlds(2);
  auto reduce = [&](GroupReduction reduction, uint8_t a, uint8_t b) {
    std::vector<WorkPtr> works;
    for (int64_t rank : {0, 1}) {
      GroupCall call;
      call.type = {DType::i8, true};
      call.reduction = reduction;
      call.counts = {1};
      call.output = reinterpret_cast<std::byte *>(rank ? &b : &a);
      call.input = call.output;
      works.push_back(worlds[rank]->call(call));
    }
    expectAll(works, "");
    EXPECT_EQ(a, b);
    return a;
  };
  EXPECT_EQ(reduce(GroupReduction::max, 200, 3), 200);
  EXPECT_EQ(reduce(GroupReduction::min, 200, 3), 3);
  EXPECT_EQ(reduce(GroupReduction::band, 6, 3), 2);
  EXPECT_EQ(reduce(GroupReduction::bor, 6, 3), 7);
  EXPECT_EQ(reduce(GroupReduction::bxor, 6, 3), 5);
  EXPECT_EQ(elementsOf({DType::f32}, GroupReduction::bxor, 2).message(),
            "bxor of f32; bitwise reductions need integers");
  EXPECT_EQ(ElementType::parse("u16")->text(), "u16");
  EXPECT_FALSE(ElementType::parse("u1"));
  EXPECT_FALSE(ElementType::parse("f8"));
}

TEST(GroupTransports, NamesAreRegisteredOnce) {
  auto alone = [](const JobOptions &) -> Expected<std::unique_ptr<Transport>> {
    return std::move(makeThreadTransports(1)[0]);
  };
  EXPECT_TRUE(registerTransport("Alone", alone).ok());
  EXPECT_EQ(registerTransport("alone", alone).message(), "backend 'alone' is already registered");
  EXPECT_TRUE(openTransport("ALONE", {}));
  std::string known = openTransport("gloo", {}).message();
  EXPECT_EQ(known.find("no backend 'gloo'; there are tcp, threads"), 0u) << known;
  EXPECT_EQ(openTransport("tcp", {{3, 2, 0}, {}, 1}).message(),
            "rank 3 of 2; ranks are counted from 0");
}

TEST(GroupTransports, ThreadsRendezvousUnderAName) {
  std::string said[2];
  auto open = [&](int64_t rank) {
    return openTransport("threads", {{rank, 2, 0}, {"meeting", "", ""}, 20});
  };
  std::thread other([&] { said[1] = open(1).message(); });
  said[0] = open(0).message();
  other.join();
  EXPECT_EQ(said[0] + said[1], "");
  EXPECT_EQ(openTransport("threads", {{1, 3, 0}, {"meeting", "", ""}, 0.1}).message(),
            "waited 0 s for ranks 0, 2 of 3");
}

TEST(GroupTransports, InvalidSharedObjects) {
  EXPECT_TRUE(loadedToy().ok());
  EXPECT_EQ(loadTransport(TOY_TRANSPORT).message(), "backend 'toy' is already registered");
  EXPECT_FALSE(loadTransport("/nowhere/toy.so").ok());
  EXPECT_EQ(openTransport("toy", {{0, 101, 0}, {"many", "", ""}, 1}).message(),
            "backend 'toy': 101 ranks are too many");
}
