//===- HostEngineTest.cpp - Calls of ranks over messages ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/HostEngine.h"
#include "CollectiveCase.h"
#include "Ranks/HostCalls.h"
#include "Ranks/ThreadTransport.h"

#include <gtest/gtest.h>
#include <queue>

using namespace tessera::runtime;
using namespace tessera::runtime::test;

namespace {

/// One stream, whose operations run sequentially.
class OneStream final : public HostStreams {
public:
  Status issue(Issue, Start start) override {
    waiting.push(std::move(start));
    return {};
  }
  /// False at the end.
  bool advance() {
    if (!now && !waiting.empty()) {
      auto started = waiting.front()();
      EXPECT_TRUE(started) << started.message();
      now = std::move(*started);
      waiting.pop();
    }
    if (now) {
      auto isDone = now->advance();
      EXPECT_TRUE(isDone) << isDone.message();
      if (!isDone || *isDone)
        now.reset();
    }
    return now || !waiting.empty();
  }

private:
  std::queue<Start> waiting;
  std::unique_ptr<HostWork> now;
};

struct Rank {
  std::unique_ptr<Transport> transport;
  OneStream stream;
  std::unique_ptr<HostEngine> engine;
  std::vector<int64_t> communicators;
};

std::vector<std::unique_ptr<Rank>> makeRanks(int64_t size, HostEngineOptions options = {}) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (auto &transport : makeThreadTransports(size)) {
    auto rank = std::make_unique<Rank>();
    rank->transport = std::move(transport);
    rank->engine = std::make_unique<HostEngine>(*rank->transport, rank->stream, options);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

void makeCommunicators(std::vector<std::unique_ptr<Rank>> &ranks,
                       const std::vector<std::vector<int64_t>> &groups) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    auto made = ranks[rank]->engine->makeCommunicators(groups, {static_cast<int64_t>(rank)},
                                                       RankEngine::Calls::ordered);
    ASSERT_TRUE(made) << made.message();
    ranks[rank]->communicators.insert(ranks[rank]->communicators.end(), made->begin(), made->end());
  }
}

void runAll(std::vector<std::unique_ptr<Rank>> &ranks) {
  bool isBusy = true;
  for (int turn = 0; isBusy; ++turn) {
    ASSERT_LT(turn, 100000);
    isBusy = false;
    for (auto &rank : ranks)
      isBusy = rank->stream.advance() || isBusy;
  }
}

const Issue kIssue{nullptr, nullptr, "call", {}};

} // namespace

TEST(HostEngine, CallsAreBitwiseEqualToPerformCall) {
  for (std::optional<Algorithm> algorithm : {std::optional<Algorithm>(), {Algorithm::direct}})
    for (int64_t size : {2, 5}) {
      auto ranks = makeRanks(size, {algorithm, 64});
      std::vector<int64_t> all(static_cast<size_t>(size));
      std::iota(all.begin(), all.end(), 0);
      makeCommunicators(ranks, {all});
      for (DType dtype : {DType::f32, DType::bf16, DType::i8})
        for (CollectiveKind kind :
             {CollectiveKind::all_reduce, CollectiveKind::all_gather,
              CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce}) {
          CollectiveCase c{kind, dtype};
          c.ranks = size, c.count = 70, c.root = 1;
          std::vector<Bytes> inputs, outputs, expected = c.results();
          for (int64_t rank = 0; rank < size; ++rank) {
            inputs.push_back(c.inputOf(rank));
            outputs.emplace_back(expected[c.root].size());
          }
          for (int64_t rank = 0; rank < size; ++rank)
            ASSERT_TRUE(ranks[rank]
                            ->engine
                            ->call(kIssue, 0, rank, {kind, dtype, ReduceKind::sum, 1, 70, 1},
                                   inputs[rank].data(), outputs[rank].data())
                            .ok());
          runAll(ranks);
          for (int64_t rank = 0; rank < size; ++rank)
            if (c.gets(rank))
              EXPECT_EQ(outputs[rank], expected[rank]) << c.text() << ", rank " << rank;
        }
    }
}

TEST(HostEngine, ExchangesMatchInOrderWithinGroups) {
  auto ranks = makeRanks(4);
  makeCommunicators(ranks, {{0, 2}, {1, 3}});
  // Each rank sends twice before it receives once; the group has ranks 0 and 1.
  int64_t sent[4][2] = {{10, 11}, {20, 21}, {30, 31}, {40, 41}}, received[4][2] = {};
  for (int64_t rank = 0; rank < 4; ++rank) {
    auto message = [&](bool send, int64_t &value) {
      return RankMessage{1 - rank / 2, send, reinterpret_cast<std::byte *>(&value), 8};
    };
    RankEngine &engine = *ranks[rank]->engine;
    std::vector<RankMessage> both{message(true, sent[rank][0]), message(true, sent[rank][1]),
                                  message(false, received[rank][0])};
    ASSERT_TRUE(engine.exchange(kIssue, rank % 2, rank / 2, both).ok());
    ASSERT_TRUE(
        engine.exchange(kIssue, rank % 2, rank / 2, {message(false, received[rank][1])}).ok());
  }
  // The second receive waits in the stream. The first exchange ends without it only if messages
  // need no receiver, so this tests that streams make progress.
  for (int turn = 0; turn < 10; ++turn)
    for (auto &rank : ranks)
      rank->stream.advance();
  EXPECT_EQ(received[0][0], 30);
  EXPECT_EQ(received[3][0], 20);
}

TEST(HostEngine, RejectsOverlappingBuffers) {
  auto ranks = makeRanks(2);
  makeCommunicators(ranks, {{0, 1}});
  std::byte buffer[64];
  Status refused = ranks[0]->engine->call(
      kIssue, 0, 0, {CollectiveKind::all_reduce, DType::f32, ReduceKind::sum, 1, 8, 0}, buffer,
      buffer + 4);
  EXPECT_EQ(refused.message(), "call, rank 0: all_reduce of rank 0 receives 4 bytes after its "
                               "send buffer; in place requires receive = send");
}
