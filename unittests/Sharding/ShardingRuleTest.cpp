//===- ShardingRuleTest.cpp - Rules, projected and contradicted -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Sharding/ShardingRule.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

namespace {

const Mesh kMesh = makeMesh({2, 4});
const AxisList kA{whole(kMesh, 0)}, kB{whole(kMesh, 1)}, kAB{whole(kMesh, 0), whole(kMesh, 1)};

/// (m, k) x (k, n) + (m, n) -> (m, n), factors m, n, k.
ShardingRule matmul(int64_t m = 8, int64_t n = 8, int64_t k = 8) {
  ShardingRule rule;
  rule.factors = {{m, FactorKind::parallel, ReduceKind::sum},
                  {n, FactorKind::parallel, ReduceKind::sum},
                  {k, FactorKind::reduction, ReduceKind::sum}};
  rule.operands = {{{{0}}, {{2}}}, {{{2}}, {{1}}}, {{{0}}, {{1}}}};
  rule.results = {{{{0}}, {{1}}}};
  rule.accumulatorOf = {-1, -1, 0};
  return rule;
}

/// (a, b) -> (a b).
ShardingRule collapse(int64_t a, int64_t b) {
  ShardingRule rule;
  rule.factors = {{a, FactorKind::parallel, ReduceKind::sum},
                  {b, FactorKind::parallel, ReduceKind::sum}};
  rule.operands = {{{{0}}, {{1}}}};
  rule.results = {{{{0, 1}}}};
  rule.accumulatorOf = {-1};
  return rule;
}

} // namespace

TEST(ShardingRule, OperandsAndResultsFollowFromTheFactors) {
  ShardingRule rule = matmul();
  OpSharding op{{kA, {}, kB}, {}};
  EXPECT_EQ(operandSharding(rule, 0, op), (TensorSharding{{kA, kB}, {}, {}, {}}));
  EXPECT_EQ(operandSharding(rule, 1, op), (TensorSharding{{kB, {}}, {}, {}, {}}));
  TensorSharding partial{{kA, {}}, {{kB[0], ReduceKind::sum}}, {}, {}};
  EXPECT_EQ(operandSharding(rule, 2, op), partial); // the accumulator, like the result
  EXPECT_EQ(resultSharding(rule, 0, op), partial);
}

TEST(ShardingRule, ForwardsNameTheirOperands) {
  ShardingRule rule = matmul();
  PartialAxis b{kB[0], ReduceKind::sum};
  OpSharding op{{kA, {}, {}}, {{b, {0, 2}}}};
  EXPECT_EQ(operandSharding(rule, 0, op), (TensorSharding{{kA, {}}, {b}, {}, {}}));
  EXPECT_EQ(operandSharding(rule, 1, op), (TensorSharding{{{}, {}}, {}, {}, {}}));
  EXPECT_EQ(operandSharding(rule, 2, op), (TensorSharding{{kA, {}}, {b}, {}, {}}));
  EXPECT_EQ(resultSharding(rule, 0, op), (TensorSharding{{kA, {}}, {b}, {}, {}}));
}

TEST(ShardingRule, ProjectsADimensionOfSeveralFactors) {
  // (a=2, b=6) cut by 4 -> a: (1)2, b: (2)2
  ShardingRule rule = collapse(2, 6);
  FactorAxes axes(2);
  projectDim(rule, rule.results[0][0], kB, axes);
  EXPECT_EQ(axes, (FactorAxes{{{1, 1, 2}}, {{1, 2, 2}}}));
  // (a=3, b=8) cut by 4: parts would straddle the factors.
  rule = collapse(3, 8);
  axes.assign(2, {});
  projectDim(rule, rule.results[0][0], kB, axes);
  EXPECT_EQ(axes, (FactorAxes{{}, {}}));
}

TEST(ShardingRule, LegalizeDropsUnsupportedAxes) {
  ShardingRule rule = matmul();
  rule.factors[1].kind = FactorKind::replicate;
  EXPECT_EQ(legalize(rule, {kA, kB, {}}), (FactorAxes{kA, {}, {}}));
  rule = matmul();
  EXPECT_EQ(legalize(rule, {kA, kAB, {}}), (FactorAxes{kA, {}, {}}));  // the first keeps it
  EXPECT_EQ(legalize(collapse(6, 4), {{}, kA}), (FactorAxes{{}, {}})); // no boxes
  EXPECT_EQ(legalize(collapse(2, 4), {kA, kB}), (FactorAxes{kA, kB}));
}

TEST(ShardingRule, ContradictionsAreNamed) {
  ShardingRule rule = matmul();
  auto why = [&](OpSharding op) { return findContradiction(kMesh, rule, op); };
  PartialAxis b{kB[0], ReduceKind::sum};
  EXPECT_EQ(why({{kA, {}, kB}, {}}), "");
  EXPECT_EQ(why({{kA, {}, {}}, {{b, {0, 2}}}}), "");
  EXPECT_NE(why({{kA, {}}, {}}).find("has 2 factors"), std::string::npos);
  EXPECT_NE(why({{kA, kA, {}}, {}}).find("twice"), std::string::npos);
  EXPECT_NE(why({{kA, kB, {}}, {{b, {0}}}}).find("uses already"), std::string::npos);
  EXPECT_NE(why({{{}, {}, {}}, {{b, {2, 0}}}}).find("not ascending"), std::string::npos);
  EXPECT_NE(why({{{}, {}, {}}, {{b, {0, 3}}}}).find("operand 3"), std::string::npos);
  rule.factors[2].kind = FactorKind::replicate;
  EXPECT_NE(why({{{}, {}, kA}, {}}).find("keeps whole"), std::string::npos);
}

/// A pad by two before and behind of 8 elements.
static ShardingRule pad() {
  ShardingRule rule;
  rule.factors = {{12}};
  DimRule dim{{0}};
  dim.isWindow = true;
  dim.shift = -2;
  dim.operandSize = 8;
  rule.operands = {{dim}};
  rule.results = {{{{0}}}};
  rule.accumulatorOf = {-1};
  return rule;
}

TEST(ShardingRule, OperandsHaveTheWindowsOfFactors) {
  ShardingRule rule = pad();
  auto operandOf = [&](Window window) {
    OpSharding op{{kA}, {}, {window}};
    EXPECT_EQ(findContradiction(kMesh, rule, op), "");
    EXPECT_EQ(resultSharding(rule, 0, op).windows, std::vector<Window>{window});
    return operandSharding(rule, 0, op).windows;
  };
  EXPECT_EQ(operandSharding(rule, 0, OpSharding{{kA}, {}}).windows,
            (std::vector<Window>{{0, 6, -2, 6}}));
  EXPECT_EQ(operandOf({0, 6, -1, 8}), (std::vector<Window>{{0, 6, -3, 8}}));
  // Of elements 1 to 10 of the result, 0 to 7 are those of the operand.
  EXPECT_EQ(operandOf({0, 5, 0, 5, 1, 1, 1, 10}), (std::vector<Window>{{0, 5, -1, 5, 1, 0, 1, 8}}));
  EXPECT_EQ(factorLayout(rule, {{kA}, {}, {{0, 6, -1, 8}}}, 0), (DimLayout{kA, 6, -1, 8}));
  auto why = [&](Window window) { return findContradiction(kMesh, rule, {{kA}, {}, {window}}); };
  EXPECT_NE(why({0, 3, 0, 3, 1, 0, 2, 6}).find("no window of an operand"), std::string::npos);
  EXPECT_NE(why({0, 1, 0, 1, 1, 0, 1, 2}).find("no window of an operand"), std::string::npos);
  EXPECT_NE(why({1, 6, -1, 8}).find("numbered from 0 to 0"), std::string::npos);
}
