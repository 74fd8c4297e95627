//===- TcpTransportTest.cpp - Messages over sockets -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/TcpTransport.h"
#include "CollectiveJob.h"
#include "Ranks/Hmac.h"

#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tessera::runtime;
using namespace tessera::runtime::test;

namespace {

std::string meetingFile(const char *name) {
  std::string path = testing::TempDir() + "tessera-tcp-" + name + std::to_string(::getpid());
  ::unlink(path.c_str());
  return "file:" + path;
}

/// By rank, the transport or its error. `tokens` has one per rank.
std::vector<Expected<std::unique_ptr<Transport>>>
openAll(const char *name, std::vector<std::string> tokens, double seconds = 20) {
  auto ranks = static_cast<int64_t>(tokens.size());
  std::vector<std::optional<Expected<std::unique_ptr<Transport>>>> opened(tokens.size());
  std::vector<std::thread> threads;
  std::string file = meetingFile(name);
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      opened[rank].emplace(
          openTcpTransport({rank, ranks, rank}, seconds, {file, tokens[rank], "init_method"}));
    });
  for (std::thread &each : threads)
    each.join();
  std::vector<Expected<std::unique_ptr<Transport>>> result;
  for (auto &each : opened)
    result.push_back(std::move(*each));
  return result;
}

std::vector<std::unique_ptr<Transport>> openRanks(const char *name, int64_t ranks,
                                                  const std::string &token = "") {
  std::vector<std::unique_ptr<Transport>> transports;
  for (auto &each : openAll(name, std::vector<std::string>(static_cast<size_t>(ranks), token))) {
    EXPECT_TRUE(each) << each.message();
    transports.push_back(std::move(*each));
  }
  return transports;
}

} // namespace

TEST(TcpTransport, EveryKindOverEveryAlgorithm) {
  for (int64_t ranks : {1, 2, 5, 9}) {
    Job job(openRanks("suite", ranks));
    for (CollectiveKind kind : kKinds)
      for (bool uneven : {false, true}) {
        CollectiveCase c = caseOf(kind, ranks, 20, uneven);
        if (uneven && c.isWhole())
          continue;
        c.exact = true;
        for (Algorithm algorithm : algorithmsFor(c.request(0)))
          job.check(c, algorithm, Job::Place::apart, 64);
      }
  }
}

TEST(TcpTransport, LargeMessagesDoNotBlockEachOther) {
  Job job(openRanks("large", 3));
  CollectiveCase c = caseOf(CollectiveKind::all_to_all, 3, 1 << 20, false);
  c.exact = true;
  job.check(c, Algorithm::direct, Job::Place::apart, 1 << 30);
}

TEST(TcpTransport, WithATokenListensOnAllAddresses) {
  Job job(openRanks("token", 3, "a secret of the whole job"));
  job.check(caseOf(CollectiveKind::all_reduce, 3, 100, false), Algorithm::direct);
}

TEST(TcpTransport, RejectsAnotherToken) {
  auto opened = openAll("tokens", {"a secret of the whole job", "another secret, 16 bytes"}, 1);
  EXPECT_EQ(opened[0].message(),
            "waited 1 s for ranks 1 of 2; processes with another job token were rejected; give all "
            "ranks the same TESSERA_JOB_TOKEN");
  EXPECT_EQ(opened[1].message(), "rank 0 refuses rank 1: it has another job token; give all ranks "
                                 "the same TESSERA_JOB_TOKEN");
}

TEST(TcpTransport, ChannelsAreIndependent) {
  auto ranks = openRanks("channels", 2);
  int64_t first = 0, second = 0;
  for (auto &rank : ranks)
    first = *rank->openChannel({0, 1}), second = *rank->openChannel({0, 1});
  EXPECT_NE(first, second);
  // The first message blocks nobody: the second is received before it.
  int64_t sent[2] = {11, 22}, received[2] = {};
  auto data = [](int64_t &value) { return reinterpret_cast<std::byte *>(&value); };
  auto a = ranks[0]->send(first, 1, data(sent[0]), 8);
  auto b = ranks[0]->send(second, 1, data(sent[1]), 8);
  auto receive = [&](int64_t channel, int64_t &value) {
    auto request = ranks[1]->receive(channel, 0, data(value), 8);
    while (!*ranks[1]->test(*request))
      ranks[1]->rest(1000);
  };
  receive(second, received[1]);
  receive(first, received[0]);
  EXPECT_EQ(received[0], 11);
  EXPECT_EQ(received[1], 22);
  while (!*ranks[0]->test(*a) || !*ranks[0]->test(*b))
    ranks[0]->rest(1000);
}

TEST(TcpTransport, UnexpectedMessagesAreBounded) {
  auto ranks = openRanks("early", 2);
  int64_t bulk = 0, other = 0;
  for (auto &rank : ranks)
    bulk = *rank->openChannel({0, 1}), other = *rank->openChannel({0, 1});
  constexpr size_t kMessages = 5, kBytes = size_t(24) << 20;
  std::vector<std::vector<std::byte>> sent, received;
  std::vector<Transport::Request> requests;
  for (size_t i = 0; i < kMessages; ++i) {
    sent.emplace_back(kBytes, std::byte(i + 1));
    requests.push_back(*ranks[0]->send(bulk, 1, sent[i].data(), kBytes));
  }
  int64_t word = 7, got = 0;
  auto last = ranks[0]->send(other, 1, reinterpret_cast<std::byte *>(&word), 8);
  auto first = ranks[1]->receive(other, 0, reinterpret_cast<std::byte *>(&got), 8);
  auto goOn = [&](Transport &rank, Transport::Request request) {
    while (!*rank.test(request))
      for (auto &each : ranks)
        each->rest(100);
  };
  goOn(*ranks[1], *first);
  goOn(*ranks[0], *last);
  EXPECT_EQ(got, 7) << "it passes by those that wait";
  goOn(*ranks[0], requests[0]);
  goOn(*ranks[0], requests[1]);
  EXPECT_FALSE(*ranks[0]->test(requests[3])) << "more than 64 MiB have not come";
  EXPECT_FALSE(*ranks[0]->test(requests[4]));
  for (size_t i = 0; i < kMessages; ++i) {
    received.emplace_back(kBytes);
    auto request = ranks[1]->receive(bulk, 0, received[i].data(), kBytes);
    goOn(*ranks[1], *request);
    EXPECT_TRUE(received[i] == sent[i]);
  }
  for (size_t i = 2; i < kMessages; ++i)
    goOn(*ranks[0], requests[i]);
}

TEST(TcpTransport, AnnouncedMessageOfAnotherSizeIsAnError) {
  auto ranks = openRanks("announced", 2);
  int64_t channel = 0;
  for (auto &rank : ranks)
    channel = *rank->openChannel({0, 1});
  std::vector<std::byte> large(size_t(80) << 20), small(8);
  auto sent = ranks[0]->send(channel, 1, large.data(), static_cast<int64_t>(large.size()));
  auto received = ranks[1]->receive(channel, 0, small.data(), 8);
  while (!*ranks[0]->test(*sent))
    ranks[1]->rest(100);
  EXPECT_EQ(ranks[1]->test(*received).message(), "rank 0 sends 83886080 bytes, rank 1 receives 8");
}

TEST(TcpTransport, EndedRankIsNamedWithItsHost) {
  auto ranks = openRanks("ended", 2);
  int64_t channel = *ranks[0]->openChannel({0, 1});
  std::byte got[8];
  auto received = ranks[0]->receive(channel, 1, got, 8);
  ranks[1].reset();
  ranks[0]->rest(1000000);
  EXPECT_EQ(ranks[0]->test(*received).message(), "rank 1 (" + hostName() + ") has ended");
  EXPECT_FALSE(ranks[0]->send(channel, 1, got, 8));
}

TEST(TcpTransport, ForeignConnectionsDoNotBlock) {
  // Another process connects to the port first, and sends garbage.
  Expected<Socket> probe = listenAt(0, Reach::loopback);
  int64_t port = probe->port();
  *probe = Socket();
  MeetingPlace place{"127.0.0.1 " + std::to_string(port), "", "init_method"};
  std::thread root([&] { EXPECT_TRUE(openTcpTransport({0, 2, 0}, 20, place)); });
  Connecting stranger;
  while (!stranger.socket.isOpen())
    stranger = connectOnce("127.0.0.1", port, Reach::loopback);
  std::string nonsense(200, 'x');
  EXPECT_TRUE(stranger.socket.sendAll(nonsense.data(), nonsense.size(), after(5)));
  auto opened = openTcpTransport({1, 2, 1}, 20, place);
  EXPECT_TRUE(opened) << opened.message();
  root.join();
}

TEST(TcpTransport, PortInUseIsNamed) {
  Expected<Socket> taken = listenAt(0, Reach::loopback);
  std::string port = std::to_string(taken->port());
  auto opened = openTcpTransport({0, 2, 0}, 5, {"127.0.0.1 " + port, "", "init_method"});
  EXPECT_EQ(opened.message(),
            "rank 0 cannot listen for the others: port " + port + ": Address already in use");
}

TEST(TcpTransport, OtherHostsNeedAToken) {
  // An address reserved for documentation (RFC 5737), which no host has.
  auto opened = openTcpTransport({1, 2, 1}, 5, {"192.0.2.1 29500", "", "init_method"});
  EXPECT_EQ(opened.message().find("rank 0 is at '192.0.2.1', which is another host than"), 0u)
      << opened.message();
}

TEST(Hmac, StandardTestVectors) {
  auto hex = [](const Digest &digest) {
    std::string text;
    char two[3];
    for (uint8_t byte : digest) {
      std::snprintf(two, sizeof(two), "%02x", byte);
      text += two;
    }
    return text;
  };
  // FIPS 180-2, appendix B; RFC 4231, cases 2 and 6.
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hex(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
