//===- ThreadTransportTest.cpp - Messages between threads -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/ThreadTransport.h"

#include <gtest/gtest.h>

using namespace tessera::runtime;

static const std::byte *bytesOf(const std::string &text) {
  return reinterpret_cast<const std::byte *>(text.data());
}

TEST(ThreadTransport, ChannelsAreIndependentAndInOrder) {
  auto ranks = makeThreadTransports(3);
  int64_t first = 0, second = 0;
  for (int64_t rank : {0, 2}) {
    first = *ranks[rank]->openChannel({0, 2});
    second = *ranks[rank]->openChannel({0, 2});
  }
  EXPECT_NE(first, second);
  std::string a = "one", b = "two", c = "other", got(3, ' '), next(3, ' '), third(5, ' ');
  auto sentA = ranks[0]->send(first, 2, bytesOf(a), 3),
       sentB = ranks[0]->send(first, 2, bytesOf(b), 3);
  auto gotC = ranks[2]->receive(second, 0, reinterpret_cast<std::byte *>(third.data()), 5);
  EXPECT_FALSE(*ranks[2]->test(*gotC));
  auto gotA = ranks[2]->receive(first, 0, reinterpret_cast<std::byte *>(got.data()), 3);
  auto gotB = ranks[2]->receive(first, 0, reinterpret_cast<std::byte *>(next.data()), 3);
  auto sentC = ranks[0]->send(second, 2, bytesOf(c), 5);
  for (auto *request : {&gotA, &gotB, &gotC})
    EXPECT_TRUE(*ranks[2]->test(**request));
  for (auto *request : {&sentA, &sentB, &sentC})
    EXPECT_TRUE(*ranks[0]->test(**request));
  EXPECT_EQ(got + next + third, "onetwoother");
}

TEST(ThreadTransport, ARankSendsToItself) {
  auto ranks = makeThreadTransports(1);
  int64_t channel = *ranks[0]->openChannel({0});
  std::string a = "self", got(4, ' ');
  auto received = ranks[0]->receive(channel, 0, reinterpret_cast<std::byte *>(got.data()), 4);
  auto sent = ranks[0]->send(channel, 0, bytesOf(a), 4);
  EXPECT_TRUE(*ranks[0]->test(*received));
  EXPECT_TRUE(*ranks[0]->test(*sent));
  EXPECT_EQ(got, "self");
}

TEST(ThreadTransport, DifferentSizesAreErrorsAtBothEnds) {
  auto ranks = makeThreadTransports(2);
  int64_t channel = *ranks[0]->openChannel({0, 1});
  (void)ranks[1]->openChannel({0, 1});
  std::string a = "1234";
  std::byte got[8];
  auto sent = ranks[0]->send(channel, 1, bytesOf(a), 4);
  auto received = ranks[1]->receive(channel, 0, got, 8);
  for (auto said : {ranks[0]->test(*sent), ranks[1]->test(*received)})
    EXPECT_EQ(said.message(), "rank 0 sends 4 bytes, rank 1 receives 8");
}

TEST(ThreadTransport, DeadRankIsNamedWithItsHost) {
  auto ranks = makeThreadTransports(2, {"here", "there"});
  int64_t channel = *ranks[0]->openChannel({0, 1});
  std::byte got[8];
  auto received = ranks[0]->receive(channel, 1, got, 8);
  ranks[1].reset();
  EXPECT_EQ(ranks[0]->test(*received).message(), "rank 1 (there) has ended");
  EXPECT_EQ(ranks[0]->receive(channel, 1, got, 8).message(), "rank 1 (there) has ended");
}
