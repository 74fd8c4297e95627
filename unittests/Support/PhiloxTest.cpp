//===- PhiloxTest.cpp - Random numbers by counter -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Philox.h"

#include <gtest/gtest.h>

using namespace tessera;

TEST(Philox, KnownAnswers) {
  // kat_vectors of Random123 (Salmon et al., SC 2011), philox 4x32 10.
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(randomWord(0, 0, 0), 0x6627e8d5u);
}

TEST(Philox, WordsAsNumbers) {
  EXPECT_EQ(randomReal(0), -1);
  EXPECT_EQ(randomReal(0x80000000), 0);
  EXPECT_LT(randomReal(0xffffffff), 1);
  EXPECT_EQ(randomInteger(9, -3, 4), -1);
  // The whole range but its last number: the width does not fit an int64_t.
  EXPECT_EQ(randomInteger(7, INT64_MIN, INT64_MAX), INT64_MIN + 7);
}
