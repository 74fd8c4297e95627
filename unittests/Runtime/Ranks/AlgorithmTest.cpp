//===- AlgorithmTest.cpp - Collectives as plans of messages ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveJob.h"
#include "Ranks/AlgorithmChoice.h"
#include "Ranks/ThreadTransport.h"

#include <gtest/gtest.h>

using namespace tessera::runtime;
using namespace tessera::runtime::test;

TEST(Algorithm, EveryKindOverEveryAlgorithm) {
  for (int64_t ranks = 1; ranks <= 9; ++ranks) {
    Job job(makeThreadTransports(ranks));
    for (CollectiveKind kind : kKinds)
      for (int64_t count : {0, 1, 5, 40})
        for (bool uneven : {false, true}) {
          CollectiveCase c = caseOf(kind, ranks, count, uneven);
          if (uneven && c.isWhole())
            continue;
          c.exact = true;
          for (Algorithm algorithm : algorithmsFor(c.request(0)))
            for (auto place : {Job::Place::apart, Job::Place::inPlace})
              if (place == Job::Place::apart || kind != CollectiveKind::all_to_all)
                job.check(c, algorithm, place);
        }
  }
}

TEST(Algorithm, RankOrderIsBitwiseEqualToOneReduction) {
  for (int64_t ranks : {2, 3, 5, 8}) {
    Job job(makeThreadTransports(ranks));
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                        DType::i16, DType::i8, DType::i1, DType::index})
      for (ReduceKind reduction :
           {ReduceKind::sum, ReduceKind::avg, ReduceKind::max, ReduceKind::min, ReduceKind::prod})
        for (CollectiveKind kind : kKinds) {
          if (!reduces(kind) || (reduction == ReduceKind::avg && !isFloat(dtype)))
            continue;
          CollectiveCase c = caseOf(kind, ranks, 300, kind == CollectiveKind::reduce_scatter);
          c.dtype = dtype, c.reduction = reduction;
          for (Algorithm algorithm : algorithmsFor(c.request(0)))
            if (keepsOrder(algorithm, kind))
              job.check(c, algorithm, Job::Place::apart, 1 << 10);
        }
  }
}

TEST(Algorithm, ExactReductionsAreIndependentOfTheOrder) {
  for (int64_t ranks : {3, 6}) {
    Job job(makeThreadTransports(ranks));
    for (DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i64, DType::i16, DType::i8})
      for (ReduceKind reduction :
           {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::prod})
        for (CollectiveKind kind :
             {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::reduce}) {
          CollectiveCase c = caseOf(kind, ranks, 100, false);
          c.dtype = dtype, c.reduction = reduction, c.exact = true;
          for (Algorithm algorithm : algorithmsFor(c.request(0)))
            job.check(c, algorithm);
        }
  }
}

/// By rank, the messages and elements that it sends.
static std::vector<std::pair<int64_t, int64_t>> sentBy(const CollectiveCase &c, Algorithm a) {
  std::vector<std::pair<int64_t, int64_t>> sent;
  for (int64_t rank = 0; rank < c.ranks; ++rank) {
    auto plan = makePlan(c.request(rank), a);
    EXPECT_TRUE(plan) << plan.message();
    sent.emplace_back(plan->messagesSent(), plan->elementsSent());
  }
  return sent;
}

TEST(AlgorithmCount, AllReduceSendsTheBytesOfTheFormulas) {
  for (int64_t n = 2; n <= 9; ++n) {
    int64_t count = 2520 * 4; // divisible by all of them, and by powers of two
    CollectiveCase c{CollectiveKind::all_reduce};
    c.ranks = n, c.count = count;
    for (auto [messages, elements] : sentBy(c, Algorithm::ring)) {
      EXPECT_EQ(messages, 2 * (n - 1));
      EXPECT_EQ(elements, 2 * (n - 1) * count / n);
    }
    for (auto [messages, elements] : sentBy(c, Algorithm::direct)) {
      EXPECT_EQ(messages, 2 * (n - 1));
      EXPECT_EQ(elements, 2 * (n - 1) * count / n);
    }
    for (auto [messages, elements] : sentBy(c, Algorithm::one_shot)) {
      EXPECT_EQ(messages, n - 1);
      EXPECT_EQ(elements, (n - 1) * count);
    }
    int64_t core = 1, logarithm = 0;
    for (; 2 * core <= n; core *= 2)
      ++logarithm;
    auto halving = sentBy(c, Algorithm::halving_doubling);
    for (int64_t rank = 0; rank < n; ++rank) {
      bool paired = rank < 2 * (n - core), outside = paired && rank % 2 == 1;
      EXPECT_EQ(halving[rank].first, outside ? 1 : 2 * logarithm + paired) << n;
      int64_t ofCore = 2 * (core - 1) * count / core;
      EXPECT_EQ(halving[rank].second, outside ? count : ofCore + (paired ? count : 0)) << n;
    }
    int64_t treeMessages = 0;
    for (auto [messages, elements] : sentBy(c, Algorithm::tree)) {
      treeMessages += messages;
      EXPECT_EQ(elements, messages * count);
    }
    EXPECT_EQ(treeMessages, 2 * (n - 1));
  }
}

TEST(AlgorithmCount, OthersSendTheBytesOfTheFormulas) {
  int64_t n = 8, each = 24;
  CollectiveCase c{CollectiveKind::all_gather};
  c.ranks = n, c.count = each;
  for (Algorithm algorithm : {Algorithm::direct, Algorithm::ring, Algorithm::halving_doubling})
    for (CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      c.kind = kind;
      for (auto [messages, elements] : sentBy(c, algorithm)) {
        EXPECT_EQ(messages, algorithm == Algorithm::halving_doubling ? 3 : n - 1);
        EXPECT_EQ(elements, (n - 1) * each);
      }
    }
  c.kind = CollectiveKind::all_to_all;
  for (auto [messages, elements] : sentBy(c, Algorithm::direct)) {
    EXPECT_EQ(messages, n - 1);
    EXPECT_EQ(elements, (n - 1) * each);
  }
  c.kind = CollectiveKind::broadcast;
  EXPECT_EQ(sentBy(c, Algorithm::tree)[0], std::pair(int64_t(3), 3 * each));
  EXPECT_EQ(sentBy(c, Algorithm::direct)[0], std::pair(n - 1, (n - 1) * each));
  EXPECT_EQ(sentBy(c, Algorithm::ring)[0].second, 2 * (n - 1) * each / n);
}

TEST(AlgorithmCount, RingOfFourEqualsThePublishedTable) {
  CollectiveCase c{CollectiveKind::all_reduce};
  c.ranks = 4, c.count = 4;
  auto plan = makePlan(c.request(1), Algorithm::ring);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->text(), "0: send input[1:2] to 2, receive scratch[0:1] from 0, "
                          "scratch[0:1] = scratch[0:1] + input[0:1]\n"
                          "1: send scratch[0:1] to 2, receive scratch[1:2] from 0, "
                          "scratch[1:2] = scratch[1:2] + input[3:4]\n"
                          "2: send scratch[1:2] to 2, receive scratch[0:1] from 0, "
                          "output[2:3] = scratch[0:1] + input[2:3]\n"
                          "3: send output[2:3] to 2, receive output[1:2] from 0\n"
                          "4: send output[1:2] to 2, receive output[0:1] from 0\n"
                          "5: send output[0:1] to 2, receive output[3:4] from 0\n");
}

TEST(AlgorithmCount, HierarchicalCrossesBetweenHostsOnce) {
  CollectiveCase c{CollectiveKind::all_reduce};
  c.ranks = 8, c.count = 64, c.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  auto across = [&](Algorithm algorithm) {
    int64_t elements = 0;
    for (int64_t rank = 0; rank < 4; ++rank) {
      auto plan = makePlan(c.request(rank), algorithm);
      for (const MessagePlan::Round &round : plan->rounds)
        for (const MessagePlan::Message &message : round.messages)
          elements += message.send && message.peer >= 4 ? message.slice.count : 0;
    }
    return elements;
  };
  EXPECT_EQ(across(Algorithm::hierarchical), 64); // 2B(h-1)/h
  EXPECT_EQ(across(Algorithm::direct), 256);
}

TEST(AlgorithmChoice, FollowsGroupSizeAndTopology) {
  CollectiveCase c{CollectiveKind::all_reduce};
  auto choose = [&](int64_t ranks, int64_t count, bool mayReorder) {
    c.ranks = ranks, c.count = count;
    return *chooseAlgorithm(c.request(0), 4, {std::nullopt, mayReorder});
  };
  EXPECT_EQ(choose(4, 8, false), Algorithm::one_shot);
  EXPECT_EQ(choose(4, 1 << 20, false), Algorithm::direct);
  EXPECT_EQ(choose(32, 16, true), Algorithm::halving_doubling);
  c.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(choose(8, 1 << 20, true), Algorithm::hierarchical);
  double least = modelledSeconds(c.request(0), Algorithm::hierarchical, 4);
  for (Algorithm algorithm : algorithmsFor(c.request(0)))
    EXPECT_GE(modelledSeconds(c.request(0), algorithm, 4), least) << toString(algorithm);
  // It adds in a different order, so it is used only on request.
  EXPECT_EQ(choose(8, 1 << 20, false), Algorithm::direct);
}

TEST(AlgorithmChoice, RejectsForcedAlgorithmsThatDoNotApply) {
  CollectiveCase c{CollectiveKind::all_gather};
  c.ranks = 4, c.count = 4;
  EXPECT_EQ(chooseAlgorithm(c.request(0), 4, {Algorithm::one_shot, true}).message(),
            "algorithm 'one_shot' does not apply to all_gather of these ranks; "
            "direct, ring, halving_doubling do");
  EXPECT_EQ(*chooseAlgorithm(c.request(0), 4, {Algorithm::ring, false}), Algorithm::ring);
  EXPECT_EQ(parseAlgorithm("halving_doubling"), Algorithm::halving_doubling);
  EXPECT_FALSE(parseAlgorithm("star"));
}
