//===- RendezvousTest.cpp - Rendezvous of the processes of a job ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/Rendezvous.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace tessera::runtime;

namespace {
/// A file that no other test uses.
std::string meetingPlace(const char *name) {
  std::string path = testing::TempDir() + "tessera-" + name + std::to_string(::getpid());
  ::unlink(path.c_str());
  return path;
}
} // namespace

TEST(Rendezvous, RanksExchangeBytes) {
  std::string path = meetingPlace("meet");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  constexpr int64_t kRanks = 5;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      auto met = Rendezvous::open({rank, kRanks, rank}, 20);
      if (!met)
        return;
      for (int round = 0; round < 3; ++round) {
        // Different sizes, one of them large, one empty.
        auto all = (*met)->allGather(std::string(static_cast<size_t>(rank) * 100000, 'a' + round));
        if (!all || static_cast<int64_t>(all->size()) != kRanks)
          return;
        for (int64_t other = 0; other < kRanks; ++other)
          right += (*all)[other] == std::string(static_cast<size_t>(other) * 100000, 'a' + round);
      }
    });
  for (std::thread &each : threads)
    each.join();
  EXPECT_EQ(right, kRanks * kRanks * 3);
  ::unlink(path.c_str());
}

TEST(Rendezvous, WaitsForSlowRanksButNotForDeadOnes) {
  std::string path = meetingPlace("slow");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  constexpr double kOpening = 2;
  bool wasSlowHeard = false;
  std::string said;
  std::thread root([&] {
    auto met = Rendezvous::open({0, 2, 0}, kOpening);
    if (!met)
      return;
    auto all = (*met)->allGather("fast", Rendezvous::Wait::whileRunning);
    wasSlowHeard = all && (*all)[1] == "slow";
    auto none = (*met)->allGather("fast", Rendezvous::Wait::whileRunning);
    said = none ? "" : none.message();
  });
  {
    auto met = Rendezvous::open({1, 2, 1}, kOpening);
    EXPECT_TRUE(met) << met.message();
    if (met) {
      std::this_thread::sleep_for(std::chrono::duration<double>(1.25 * kOpening));
      (void)(*met)->allGather("slow", Rendezvous::Wait::whileRunning);
    }
  } // ends without a message
  root.join();
  EXPECT_TRUE(wasSlowHeard);
  EXPECT_EQ(said, "rank 1 does not answer rank 0; it has ended");
  ::unlink(path.c_str());
}

TEST(Rendezvous, DeadRankIsNamed) {
  std::string path = meetingPlace("gone");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  std::string said, peers;
  std::thread root([&] {
    auto met = Rendezvous::open({0, 2, 0}, 20);
    if (!met)
      return;
    auto all = (*met)->allGather("x");
    said = all ? "" : all.message();
    peers = (*met)->checkPeers().message();
  });
  {
    auto met = Rendezvous::open({1, 2, 1}, 20);
    ASSERT_TRUE(met) << met.message();
  } // ends without a message
  root.join();
  EXPECT_NE(said.find("rank 1 does not answer rank 0"), std::string::npos) << said;
  EXPECT_EQ(peers, "rank 1 of 2 has ended");
  ::unlink(path.c_str());
}

TEST(Rendezvous, RankThatLeftIsNotMissing) {
  std::string path = meetingPlace("left");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  std::promise<void> gone;
  std::string peers = "not asked", said;
  std::thread root([&] {
    auto met = Rendezvous::open({0, 2, 0}, 20);
    if (!met)
      return;
    gone.get_future().wait();
    peers = (*met)->checkPeers().message();
    auto all = (*met)->allGather("x");
    said = all ? "" : all.message();
  });
  {
    auto met = Rendezvous::open({1, 2, 1}, 20);
    EXPECT_TRUE(met) << met.message();
    if (met)
      (*met)->leave();
  }
  gone.set_value();
  root.join();
  EXPECT_EQ(peers, "");
  EXPECT_NE(said.find("rank 1 does not answer rank 0"), std::string::npos) << said;
  ::unlink(path.c_str());
}

TEST(Rendezvous, InvalidAddresses) {
  ::unsetenv("TESSERA_RENDEZVOUS");
  ::setenv("MASTER_ADDR", "localhost", 1);
  for (const char *port : {"abc", "99999", "0", "12x", ""}) {
    ::setenv("MASTER_PORT", port, 1);
    for (int64_t rank : {0, 1})
      EXPECT_EQ(Rendezvous::open({rank, 2, rank}, 0.1).message(),
                std::string("MASTER_PORT is '") + port + "'; expected a port from 1 to 65535");
  }
  ::setenv("MASTER_PORT", "29555", 1);
  ::setenv("MASTER_ADDR", "no host", 1);
  EXPECT_EQ(Rendezvous::open({1, 2, 1}, 0.1).message(),
            "MASTER_ADDR is 'no host'; expected a host name, an IPv4 address, or an IPv6 address, "
            "optionally in brackets");
  ::setenv("MASTER_ADDR", "nowhere.invalid", 1);
  std::string said = Rendezvous::open({1, 2, 1}, 0.1).message();
  EXPECT_NE(said.find("host 'nowhere.invalid': "), std::string::npos) << said;
  ::unsetenv("MASTER_ADDR");
  ::unsetenv("MASTER_PORT");
}

TEST(Rendezvous, RemovesOnlyItsOwnFiles) {
  std::string path = meetingPlace("notes");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  auto write = [&](const std::string &text) { std::ofstream(path) << text; };
  auto read = [&] {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  write("my thesis");
  EXPECT_EQ(Rendezvous::open({0, 2, 0}, 0.1).message(),
            "TESSERA_RENDEZVOUS names '" + path +
                "', which exists and is not a rendezvous file; name a file that does not exist");
  EXPECT_EQ(read(), "my thesis");
  for (const char *left : {"", "tessera-rendezvous host 1"}) { // by mktemp, or by a dead job
    write(left);
    EXPECT_EQ(Rendezvous::open({0, 2, 0}, 0.1).message(), "waited 0 s for ranks 1 of 2");
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "nobody came, and the file is gone";
  }
}

TEST(Rendezvous, AFailureOfOneFailsAll) {
  std::string path = meetingPlace("agree");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  constexpr int64_t kRanks = 3;
  std::vector<std::string> messages(kRanks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      auto met = Rendezvous::open({rank, kRanks, rank}, 20);
      if (!met || !(*met)->agree({}, Rendezvous::Wait::whileOpening).ok())
        return;
      Status mine = rank == 1 ? Status::error("no disk") : Status();
      messages[rank] = (*met)->agree(mine, Rendezvous::Wait::whileRunning).message();
    });
  for (std::thread &each : threads)
    each.join();
  EXPECT_EQ(messages, (std::vector<std::string>{"rank 1: no disk", "no disk", "rank 1: no disk"}));
}

TEST(Rendezvous, BroadcastSendsTheBytesOfTheOwner) {
  std::string path = meetingPlace("broadcast");
  ::setenv("TESSERA_RENDEZVOUS", ("file:" + path).c_str(), 1);
  constexpr int64_t kRanks = 3;
  std::atomic<int> right{0}, refused{0};
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      auto met = Rendezvous::open({rank, kRanks, rank}, 20);
      if (!met)
        return;
      std::vector<std::byte> data(1000, std::byte(rank));
      Status given = (*met)->broadcast(2, data.data(), 1000, Rendezvous::Wait::whileOpening);
      right += given.ok() && data == std::vector<std::byte>(1000, std::byte(2));
      // A rank with a size other than the owner's gets an error.
      int64_t size = rank == 0 ? 8 : 16;
      refused += !(*met)->broadcast(1, data.data(), size, Rendezvous::Wait::whileOpening).ok();
    });
  for (std::thread &each : threads)
    each.join();
  EXPECT_EQ(right, kRanks);
  EXPECT_EQ(refused, 1);
}

TEST(Rendezvous, UnresolvableNameFailsLongBeforeTheTimeout) {
  MeetingPlace place{"no..host 29500", "0123456789abcdef", "MASTER_ADDR"};
  std::string said = Rendezvous::open({1, 2, 1}, 60, place).message();
  EXPECT_EQ(said.find("rank 1 (" + hostName() + ") does not find rank 0: host "), 0u) << said;
}

TEST(Rendezvous, AnotherTokenIsAnError) {
  std::string path = meetingPlace("token"), said[2];
  auto open = [&](int64_t rank, const char *token) {
    said[rank] =
        Rendezvous::open({rank, 2, rank}, 2, {"file:" + path, token, "init_method"}).message();
  };
  std::thread root([&] { open(0, "0123456789abcdef"); });
  open(1, "another token, as long");
  root.join();
  EXPECT_EQ(said[0], "waited 2 s for ranks 1 of 2; processes with another job token were rejected; "
                     "give all ranks the same TESSERA_JOB_TOKEN");
  EXPECT_EQ(said[1], "rank 0 refuses rank 1: it has another job token; give all ranks the same "
                     "TESSERA_JOB_TOKEN");
}
