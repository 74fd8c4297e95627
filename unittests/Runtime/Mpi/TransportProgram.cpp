//===- TransportProgram.cpp - Guarantees of a transport under mpirun ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpi-transport CASE: all ranks run it; each prints its errors, and rank 0 "CASE: ok"
// at the end.
//
//===----------------------------------------------------------------------===//

#include "Mpi/MpiTransport.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace tessera::runtime;

namespace {

int failures = 0;
void check(bool good, const std::string &what) {
  if (good)
    return;
  ++failures;
  std::printf("wrong: %s\n", what.c_str());
}
template <typename T> T must(Expected<T> value) {
  if (value)
    return *value;
  std::printf("wrong: %s\n", value.message().c_str());
  std::exit(1);
}

using Requests = std::vector<Transport::Request>;
void finish(Transport &transport, Requests requests) {
  while (!requests.empty()) {
    if (must(transport.test(requests.back())))
      requests.pop_back();
    else
      std::this_thread::yield();
  }
}

std::vector<std::byte> pattern(int64_t size, int64_t seed) {
  std::vector<std::byte> data(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    data[i] = static_cast<std::byte>(i * 31 + seed * 7 + i / 251);
  return data;
}

/// Many messages from each rank to each, including itself: the n-th receive matches the n-th send.
void order(MpiTransport &transport) {
  const int64_t sizes[] = {5, 0, 100000, 1, 64};
  Requests requests;
  std::vector<std::vector<std::byte>> sent, received;
  std::vector<std::vector<std::byte>> expected;
  for (int64_t n = 0; n < 5; ++n)
    for (int64_t other = 0; other < transport.size(); ++other) {
      sent.push_back(pattern(sizes[n], transport.rank() * 100 + n));
      received.emplace_back(static_cast<size_t>(sizes[n]));
      expected.push_back(pattern(sizes[n], other * 100 + n));
    }
  for (size_t i = 0; i < sent.size(); ++i) {
    int64_t other = static_cast<int64_t>(i) % transport.size();
    auto size = static_cast<int64_t>(sent[i].size());
    requests.push_back(must(transport.send(0, other, sent[i].data(), size)));
    requests.push_back(must(transport.receive(0, other, received[i].data(), size)));
  }
  finish(transport, requests);
  for (size_t i = 0; i < sent.size(); ++i)
    check(received[i] == expected[i], "message " + std::to_string(i));
}

/// Two channels between the same ranks, received in a different order than sent.
void channels(MpiTransport &transport) {
  std::vector<int64_t> even, all;
  for (int64_t rank = 0; rank < transport.size(); ++rank) {
    all.push_back(rank);
    if (rank % 2 == 0)
      even.push_back(rank);
  }
  int64_t a = must(transport.openChannel(all)), b = -1;
  if (transport.rank() % 2 == 0)
    b = must(transport.openChannel(even));
  int64_t c = must(transport.openChannel(all));
  int64_t next = (transport.rank() + 1) % transport.size();
  int64_t last = (transport.rank() + transport.size() - 1) % transport.size();
  auto first = pattern(1000, 1), second = pattern(1000, 2);
  std::vector<std::byte> gotA(1000), gotC(1000);
  Requests requests{must(transport.send(a, next, first.data(), 1000)),
                    must(transport.send(c, next, second.data(), 1000))};
  finish(transport, {must(transport.receive(c, last, gotC.data(), 1000))});
  finish(transport, {must(transport.receive(a, last, gotA.data(), 1000))});
  finish(transport, requests);
  check(gotA == first && gotC == second, "channels are independent");
  if (b >= 0) {
    auto none = transport.send(b, 1, first.data(), 1);
    check(!none && none.message().find("is not on channel") != std::string::npos,
          "a rank that is not on a channel");
  }
}

/// A message in pieces, the last of them shorter.
void pieces(MpiTransport &transport) {
  transport.setPiece(1000);
  int64_t peer = transport.size() - 1 - transport.rank();
  auto mine = pattern(12345, transport.rank());
  std::vector<std::byte> got(12345);
  finish(transport, {must(transport.send(0, peer, mine.data(), 12345)),
                     must(transport.receive(0, peer, got.data(), 12345))});
  check(got == pattern(12345, peer), "a message in pieces");
}

/// A message that is shorter than its receive, and one that is longer.
void lengths(MpiTransport &transport, int64_t sends, int64_t receives) {
  std::vector<std::byte> data(100);
  if (transport.rank() == 1)
    finish(transport, {must(transport.send(0, 0, data.data(), sends))});
  if (transport.rank() != 0)
    return;
  auto request = must(transport.receive(0, 1, data.data(), receives));
  while (true) {
    auto done = transport.test(request);
    if (!done) {
      std::printf("said: %s\n", done.message().c_str());
      break;
    }
    check(!*done, "another length is noticed");
    if (*done)
      break;
  }
}

/// Rank 0 waits for a message that never arrives, gives up, and ends; so do the others.
void abandoned(MpiTransport &transport) {
  std::vector<std::byte> data(100);
  auto request = must(transport.receive(0, (transport.rank() + 1) % transport.size(), data.data(),
                                        100));
  auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100))
    check(!must(transport.test(request)), "nothing was sent");
  transport.abandon();
}

} // namespace

int main(int argc, char **argv) {
  std::string name = argc > 1 ? argv[1] : "order";
  auto opened = MpiTransport::open(30);
  if (!opened) {
    std::printf("wrong: %s\n", opened.message().c_str());
    return 1;
  }
  MpiTransport &transport = **opened;
  if (name == "order")
    order(transport);
  else if (name == "channels")
    channels(transport);
  else if (name == "pieces")
    pieces(transport);
  else if (name == "short")
    lengths(transport, 10, 20);
  else if (name == "long")
    lengths(transport, 20, 10);
  else if (name == "abandon")
    abandoned(transport);
  for (int64_t rank = 0; rank < transport.size(); ++rank)
    check(!transport.hostOf(rank).empty(), "hosts are known");
  if (transport.rank() == 0 && failures == 0)
    std::printf("%s: ok\n", name.c_str());
  std::fflush(stdout); // a launcher may end ranks that have given up
  return failures != 0;
}
