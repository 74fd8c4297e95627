//===- CollectiveJob.h - Collectives of ranks in one thread -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVEJOB_H
#define TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVEJOB_H

#include "CollectiveCase.h"
#include "Ranks/PlanRun.h"

#include <gtest/gtest.h>

namespace tessera::runtime::test {

/// Ranks in one thread: each advances in turn.
class Job {
public:
  explicit Job(std::vector<std::unique_ptr<Transport>> ofRanks) : transports(std::move(ofRanks)) {
    for (auto &transport : transports)
      members.push_back(transport->rank());
    for (auto &transport : transports)
      channel = *transport->openChannel(members);
  }

  enum class Place { apart, inPlace };
  void check(const CollectiveCase &c, Algorithm algorithm, Place place = Place::apart,
             int64_t segmentBytes = 24) {
    SCOPED_TRACE(c.text() + ", " + std::string(toString(algorithm)) +
                 (place == Place::inPlace ? ", in place" : ""));
    std::vector<Bytes> expected = c.results(), inputs, outputs;
    std::vector<std::unique_ptr<PlanRun>> runs;
    PlanElements elements{sizeOf(c.dtype), reduceFunction(c.dtype, c.reduction), c.scale()};
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      inputs.push_back(c.inputOf(rank));
      auto bytes = static_cast<size_t>(c.outputCount(rank) * elements.bytes);
      outputs.emplace_back(bytes, std::byte(0xee));
    }
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      auto plan = makePlan(c.request(rank), algorithm);
      ASSERT_TRUE(plan) << plan.message();
      auto [from, to] = place == Place::apart ? std::pair(inputs[rank].data(), outputs[rank].data())
                                              : inPlace(c, rank, inputs[rank], outputs[rank]);
      runs.push_back(std::make_unique<PlanRun>(*transports[rank], channel, members,
                                               std::make_shared<const MessagePlan>(*plan), elements,
                                               from, to, segmentBytes));
    }
    std::vector<bool> done(runs.size());
    for (size_t left = runs.size(), turns = 0; left > 0; ++turns) {
      ASSERT_LT(turns, 10000000u) << "the ranks wait for each other";
      for (size_t rank = 0; rank < runs.size(); ++rank) {
        if (done[rank])
          continue;
        auto isDone = runs[rank]->advance();
        ASSERT_TRUE(isDone) << isDone.message();
        done[rank] = *isDone;
        left -= *isDone;
      }
    }
    for (int64_t rank = 0; rank < c.ranks; ++rank)
      if (c.gets(rank)) {
        const std::byte *at = results.empty() ? outputs[rank].data() : results[rank];
        EXPECT_EQ(Bytes(at, at + expected[rank].size()), expected[rank]) << "rank " << rank;
      }
    results.clear();
    if (place == Place::apart) // inputs must not change
      for (int64_t rank = 0; rank < c.ranks; ++rank)
        EXPECT_EQ(inputs[rank], c.inputOf(rank)) << "rank " << rank;
  }

private:
  /// Input and output of a rank that share memory, if the kind allows it.
  std::pair<std::byte *, std::byte *> inPlace(const CollectiveCase &c, int64_t rank, Bytes &input,
                                              Bytes &output) {
    results.resize(static_cast<size_t>(c.ranks));
    if (c.isWhole())
      return {input.data(), results[rank] = input.data()};
    std::vector<int64_t> counts = c.request(rank).counts;
    int64_t before = c.sum({counts.begin(), counts.begin() + rank}) * sizeOf(c.dtype);
    bool grows = c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::gather;
    if (!grows)
      return {input.data(), results[rank] = input.data() + before};
    std::copy(input.begin(), input.end(), output.begin() + before);
    results[rank] = output.data();
    return {output.data() + before, output.data()};
  }

  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<int64_t> members;
  std::vector<std::byte *> results; ///< by rank, in place
  int64_t channel = 0;
};

/// Ranks on hosts of different sizes, not in rank order.
inline std::vector<int64_t> severalHosts(int64_t ranks) {
  std::vector<int64_t> hosts;
  for (int64_t rank = 0; rank < ranks; ++rank)
    hosts.push_back(rank < 2 ? 0 : rank == 4 ? 0 : 1 + rank / 7);
  return hosts;
}

inline CollectiveCase caseOf(CollectiveKind kind, int64_t ranks, int64_t count, bool uneven) {
  CollectiveCase c{kind};
  c.ranks = ranks, c.count = count, c.uneven = uneven, c.root = (ranks * 2) / 3;
  if (ranks > 2)
    c.hosts = severalHosts(ranks);
  return c;
}

} // namespace tessera::runtime::test

#endif // TESSERA_UNITTESTS_RUNTIME_RANKS_COLLECTIVEJOB_H
