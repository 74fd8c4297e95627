//===- RoutesTest.cpp - Bytes sent between pairs of ranks -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/Routes.h"
#include "CollectiveJob.h"
#include "CountedTransport.h"
#include "Ranks/ThreadTransport.h"

using namespace tessera::runtime;
using namespace tessera::runtime::test;

TEST(Routes, PlansPredictTheMessagesOfEachPeer) {
  constexpr int64_t kRanks = 5;
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::broadcast,
        CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    CollectiveCase c{kind, DType::f32};
    c.ranks = kRanks, c.count = 70, c.root = 1;
    for (Algorithm algorithm : algorithmsFor(c.request(0))) {
      std::vector<std::unique_ptr<Transport>> transports;
      std::vector<CountedTransport *> counted;
      for (auto &each : makeThreadTransports(kRanks)) {
        auto made = std::make_unique<CountedTransport>(std::move(each));
        counted.push_back(made.get());
        transports.push_back(std::move(made));
      }
      Job job(std::move(transports));
      job.check(c, algorithm);
      for (int64_t rank = 0; rank < kRanks; ++rank) {
        auto plan = makePlan(c.request(rank), algorithm);
        ASSERT_TRUE(plan);
        EXPECT_EQ(counted[rank]->sent, bytesSentTo(*plan, kRanks, sizeOf(c.dtype)))
            << c.text() << ", " << toString(algorithm) << ", rank " << rank;
      }
    }
  }
}

TEST(Routes, ARingSendsToOneNeighbour) {
  PlanRequest request{CollectiveKind::all_reduce, 2, 4, 0, {100}, {}, {}};
  EXPECT_EQ(bytesSentTo(*makePlan(request, Algorithm::ring), 4, 4),
            (std::vector<int64_t>{0, 0, 0, 600}));
}
