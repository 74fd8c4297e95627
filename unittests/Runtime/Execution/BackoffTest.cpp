//===- BackoffTest.cpp - Pauses between questions -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Execution/Backoff.h"

#include <gtest/gtest.h>

using tessera::runtime::Backoff;

TEST(Backoff, AsksOftenAndThenLessAndLess) {
  Backoff backoff;
  for (int64_t i = 0; i < Backoff::kSpins; ++i)
    ASSERT_EQ(backoff.next().count(), 0) << "question " << i;
  Backoff::Pause before(0);
  for (int i = 0; i < 8; ++i) {
    Backoff::Pause now = backoff.next();
    EXPECT_GT(now, before) << i;
    before = now;
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(backoff.next(), Backoff::kLongest);
}
