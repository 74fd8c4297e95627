//===- ComparisonTest.cpp - Comparison of two tensors of numbers ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Comparison.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace tessera;

static Numbers numbersOf(const std::vector<double> &values) {
  return {static_cast<int64_t>(values.size()), [&](int64_t i) { return values[i]; },
          [&](int64_t i) { return static_cast<int64_t>(values[i]); }};
}

static NumberComparison compared(const std::vector<double> &actual,
                                 const std::vector<double> &expected, Rounding rounding,
                                 int64_t steps = 1) {
  return compareNumbers(numbersOf(actual), numbersOf(expected), rounding, steps);
}

TEST(Comparison, ToleranceGrowsWithTheSquareRootOfTheSteps) {
  EXPECT_EQ(toleranceOf(Rounding::exact, 100), 0);
  EXPECT_EQ(toleranceOf(Rounding::f64, 1), 1e-10);
  EXPECT_EQ(toleranceOf(Rounding::f32, 4), 2e-4);
  EXPECT_EQ(toleranceOf(Rounding::half, 0), 2e-2) << "no step counts as one";
}

TEST(Comparison, SmallValuesUseTheRootMeanSquare) {
  // The rms is 1: an error of 5e-5 is allowed even if the value is 0.
  auto close = compared({1, -1, 5e-5, std::sqrt(2)}, {1, -1, 0, std::sqrt(2)}, Rounding::f32);
  EXPECT_TRUE(close.equal);
  EXPECT_DOUBLE_EQ(close.maxRelative, 5e-5);
  EXPECT_EQ(close.worst, 2);
  auto far = compared({1, -1, 5e-4, std::sqrt(2)}, {1, -1, 0, std::sqrt(2)}, Rounding::f32);
  EXPECT_FALSE(far.equal);
  EXPECT_EQ(far.differing, 1);
  EXPECT_FALSE(compared({1e-30}, {0}, Rounding::f32).equal) << "beside zeros alone all is large";
}

TEST(Comparison, NonFiniteValues) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(compared({nan, inf, -inf, 1}, {nan, inf, -inf, 1}, Rounding::half).equal);
  auto signs = compared({3, inf}, {4, -inf}, Rounding::half);
  EXPECT_TRUE(signs.kindDiffers);
  EXPECT_EQ(signs.worst, 1) << "whatever the others' errors";
  EXPECT_EQ(signs.differing, 2);
  EXPECT_FALSE(compared({nan}, {1}, Rounding::f64).equal);
}

TEST(Comparison, IntegersAreExact) {
  EXPECT_TRUE(compared({3, -4}, {3, -4}, Rounding::exact).equal);
  auto different = compared({3, 5}, {3, 4}, Rounding::exact, 10000);
  EXPECT_FALSE(different.equal);
  EXPECT_EQ(different.maxError, 1);
  EXPECT_EQ(different.worst, 1);
}

TEST(Comparison, WeakExpectedValues) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(compared({nan, nan}, {nan, nan}, Rounding::f32).allNaN);
  EXPECT_TRUE(compared({2, 3}, {2, 2}, Rounding::f32).allSame);
  EXPECT_FALSE(compared({}, {}, Rounding::f32).allSame);
}
