//===- SearchModesTest.cpp - Names of the modes of the search -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Search.h"

#include <gtest/gtest.h>

using namespace tessera;

TEST(SearchModes, AreNamed) {
  auto mode = dist::parseMode("quick");
  ASSERT_TRUE(std::holds_alternative<solver::Error>(mode));
  EXPECT_EQ(
      std::get<solver::Error>(mode).message,
      "'quick' is not a valid mode; expected one of sharding_propagation, dynamic_programming, "
      "recursive_programming, exact");
  EXPECT_EQ(std::get<solver::Mode>(dist::parseMode("exact")), solver::Mode::exact);
  EXPECT_EQ(dist::nameOf(solver::Mode::completion), "sharding_propagation");
}
