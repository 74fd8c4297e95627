//===- CandidatesTest.cpp - Labels of candidate strategies ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Must precede the headers of dialects, which depend on it.
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "tessera/Planning/Candidates.h"

#include "gtest/gtest.h"

#include <functional>
#include <map>

using namespace tessera::dist;
using namespace tessera::sharding;

namespace {

TEST(Candidates, LabelsDistinguishAllListsOfDimensions) {
  // Up to three parts of one axis of 8, each on a dimension of a tensor of rank 3 or pending in
  // partial sums: every set of lists has a unique label.
  constexpr int64_t kRank = 3;
  std::map<int64_t, std::vector<int64_t>> seen;
  std::function<void(std::vector<int64_t>)> check = [&](std::vector<int64_t> places) {
    TensorSharding sharding = TensorSharding::replicated(kRank);
    int64_t pre = 1;
    for (int64_t place : places) {
      AxisRef part{0, pre, 2};
      if (place == kRank)
        sharding.partial.push_back({part});
      else
        sharding.dims[place].push_back(part);
      pre *= 2;
    }
    AxisLabels labels = labelsOf(sharding, 2);
    EXPECT_EQ(labels[0] == kWhole, places.empty());
    EXPECT_EQ(labels[1], kWhole);
    auto [it, isNew] = seen.try_emplace(labels[0], places);
    EXPECT_TRUE(isNew) << "label " << labels[0];
    // Dimensions are read in order, so only ascending lists are distinct.
    for (int64_t next = places.empty() ? 0 : places.back(); next <= kRank && places.size() < 3;
         ++next) {
      std::vector<int64_t> longer = places;
      longer.push_back(next);
      check(std::move(longer));
    }
  };
  check({});
  EXPECT_EQ(seen.size(), 1u + 4 + 10 + 20);
}

} // namespace
