//===- SegmentTest.cpp - Operands read by segment, against a simple model -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Sharding/Collective.h"
#include "tessera/Sharding/ReshardPlanner.h"
#include "tessera/Sharding/ShardingRule.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace tessera::sharding;

namespace {

/// Iterations of one factor of `size` read an operand of `extent` elements by a segment.
ShardingRule ruleOf(const Segment &segment, int64_t extent, int64_t size, bool isNarrow = false) {
  ShardingRule rule;
  rule.factors = {{size, FactorKind::parallel, ReduceKind::sum}};
  DimRule dim{{0}};
  dim.segment = segment;
  dim.operandSize = extent;
  dim.isNarrow = isNarrow;
  rule.operands = {{dim}};
  rule.results = {{{{0}}}};
  rule.accumulatorOf = {-1};
  return rule;
}

TensorSharding needOf(const Segment &segment, int64_t extent, int64_t size, const AxisList &axes,
                      bool isNarrow = false) {
  return operandSharding(ruleOf(segment, extent, size, isNarrow), 0, OpSharding{{axes}, {}});
}

/// Each device receives exactly the elements of the segment that its part of the result takes over,
/// from devices that hold them; elements that it holds are not sent.
void check(const Mesh &mesh, const AxisList &had, const AxisList &cut, int64_t extent, int64_t size,
           const Segment &segment) {
  Layout source = layoutOf({extent}, {had}), result = layoutOf({size}, {cut});
  Layout wanted = makeLayout(needOf(segment, extent, size, cut), {extent});
  Redistribution move = redistribute(mesh, source, mesh, wanted);
  std::vector<std::multiset<int64_t>> got(mesh.numDevices());
  for (const Piece &piece : move.pieces)
    for (int64_t i = 0; i < piece.box.size[0]; ++i) {
      int64_t element = segment.from + (piece.box.offset[0] + i) * segment.fromStep;
      ASSERT_EQ(piece.sources.size(), 1u);
      Box held = source.valid(mesh, mesh.coordinate(piece.sources[0]));
      EXPECT_TRUE(held.contains(Box{{element}, {1}}));
      for (int64_t target : piece.targets)
        got[target].insert(piece.box.offset[0] + i);
    }
  ExchangeTraffic traffic = exchangeTraffic(mesh, mesh, move);
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    Shape coordinate = mesh.coordinate(device);
    Box own = result.valid(mesh, coordinate), held = source.valid(mesh, coordinate);
    std::multiset<int64_t> needed;
    int64_t lacking = 0;
    for (int64_t i = 0; i < segment.count; ++i)
      if (own.contains(Box{{segment.to + i * segment.toStep}, {1}})) {
        needed.insert(i);
        lacking += !held.contains(Box{{segment.from + i * segment.fromStep}, {1}});
      }
    EXPECT_EQ(got[device], needed) << "device " << device;
    EXPECT_EQ(traffic.received[device], lacking) << "device " << device;
    EXPECT_LE(wanted.span(mesh, coordinate).size[0], wanted.localShape()[0]);
  }
}

} // namespace

TEST(Segment, DevicesReceiveTheSegmentsOfTheirParts) {
  std::mt19937 random(7);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (const Shape &shape : {Shape{4}, Shape{2, 3}, Shape{1}, Shape{8}}) {
    Mesh mesh = makeMesh(shape);
    std::vector<AxisList> cuts{{}, {whole(mesh, 0)}};
    if (mesh.numAxes() > 1)
      cuts.insert(cuts.end(), {{whole(mesh, 1)}, {whole(mesh, 1), whole(mesh, 0)}});
    for (int round = 0; round < 200; ++round) {
      Segment segment;
      segment.count = draw(1, 12);
      segment.fromStep = draw(1, 3);
      segment.toStep = draw(1, 3) * (draw(0, 1) ? 1 : -1);
      segment.from = draw(0, 4);
      int64_t run = std::abs(segment.toStep) * (segment.count - 1);
      segment.to = draw(0, 4) + (segment.toStep < 0 ? run : 0);
      int64_t extent = segment.from + segment.fromStep * (segment.count - 1) + 1 + draw(0, 9);
      int64_t size = std::max(segment.to, segment.to - (segment.toStep < 0 ? 0 : -run)) + 1;
      const AxisList &had = cuts[draw(0, static_cast<int64_t>(cuts.size()) - 1)];
      const AxisList &cut = cuts[draw(1, static_cast<int64_t>(cuts.size()) - 1)];
      SCOPED_TRACE(testing::Message()
                   << shape.size() << " axes, " << segment.from << " + " << segment.fromStep
                   << "t of " << extent << " to " << segment.to << " + " << segment.toStep
                   << "t of " << size << ", " << segment.count);
      check(mesh, had, cut, extent, size + draw(0, 9), segment);
    }
  }
}

TEST(Segment, WindowsOfWellKnownMoves) {
  Mesh line = makeMesh({4});
  AxisList a{whole(line, 0)};
  struct {
    const char *what;
    Segment segment;
    int64_t extent, size;
    std::vector<Window> windows;
  } table[] = {
      {"the tensor itself", {0, 1, 0, 1, 8}, 8, 8, {}},
      {"reversed", {0, 1, 7, -1, 8}, 8, 8, {{0, -2, 6, 2}}},
      {"behind a row", {0, 1, 1, 1, 7}, 7, 8, {{0, 2, -1, 2}}},
      {"without its first row", {1, 1, 0, 1, 7}, 8, 7, {{0, 2, 0, 2, 1, 1, 1, 7}}},
      {"every second row", {0, 2, 0, 1, 4}, 8, 4, {{0, 1, 0, 1, 1, 0, 2, 4}}},
      {"in every second row", {0, 1, 0, 2, 8}, 8, 16, {}},
      {"in every second row of an uneven cut", {0, 1, 0, 2, 5}, 5, 10, {{0, 3, 0, 3, 2}}},
  };
  for (auto &row : table)
    EXPECT_EQ(needOf(row.segment, row.extent, row.size, a).windows, row.windows) << row.what;
  EXPECT_TRUE(needOf({7, 1, 0, 1, 1}, 8, 1, {}).windows.empty()) << "whole unless it is narrow";
  EXPECT_EQ(needOf({7, 1, 0, 1, 1}, 8, 1, {}, true).windows,
            (std::vector<Window>{{0, 0, 0, 1, 1, 7, 1, 1}}));
}

TEST(Segment, ASelectionNeededByAllIsGathered) {
  Mesh line = makeMesh({8});
  TensorSharding shard{{{whole(line, 0)}}, {}, {}, {}};
  ReshardPlan plan = planReshard(
      {line, {1024}, 4, shard, needOf({1023, 1, 0, 1, 1}, 1024, 1, {}, true)}, Objective::bytes);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].kind, CollectiveKind::all_gather);
  EXPECT_EQ(plan.traffic.wireBytes, 4);
  EXPECT_TRUE(leadsToTarget(plan.moves[0]));
}

TEST(Segment, AnExchangeOfSeveralTensorsCostsTheBusiestDevice) {
  Mesh line = makeMesh({8});
  AxisList a{whole(line, 0)};
  Layout source = layoutOf({1024}, {a});
  // A roll by one: the last element goes to device 0, the last elements of the others to their
  // neighbors.
  Layout last = makeLayout(needOf({1023, 1, 0, 1, 1}, 1024, 1024, a), {1024});
  Layout rest = makeLayout(needOf({0, 1, 1, 1, 1023}, 1024, 1024, a), {1024});
  std::vector<MovedTensor> tensors{{4, source, last}, {4, source, rest}};
  Traffic traffic = trafficOf(CollectiveKind::exchange, 8, line, line, tensors);
  EXPECT_EQ(traffic.wireBytes, 4);
  EXPECT_EQ(traffic.count, 1);
}
