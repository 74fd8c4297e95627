//===- BytesTest.cpp - Tests of human-readable numbers of bytes -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Bytes.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

TEST(Bytes, ThreeSignificantDigitsInASuitableUnit) {
  EXPECT_EQ(bytesText(0), "0 bytes");
  EXPECT_EQ(bytesText(1), "1 byte");
  EXPECT_EQ(bytesText(1023), "1023 bytes");
  EXPECT_EQ(bytesText(1024), "1 KiB");
  EXPECT_EQ(bytesText(14576410), "13.9 MiB");
  EXPECT_EQ(bytesText(80e9), "74.5 GiB");
  EXPECT_EQ(bytesText(1.6e12), "1490 GiB");
  EXPECT_EQ(exactBytesText(107), "107 bytes");
  EXPECT_EQ(exactBytesText(14576410), "13.9 MiB (14576410 bytes)");
}

TEST(Bytes, ParsesGibibytesOrAUnit) {
  EXPECT_EQ(parseGibibytes("0.5"), 0.5);
  EXPECT_EQ(parseGibibytes("2G"), 2);
  EXPECT_EQ(parseGibibytes("512M"), 0.5);
  EXPECT_EQ(parseGibibytes("512MiB"), 0.5);
  EXPECT_EQ(parseGibibytes("512mb"), 0.5);
  EXPECT_EQ(parseGibibytes("524288k"), 0.5);
  EXPECT_EQ(parseGibibytes("1T"), 1024);
  EXPECT_EQ(parseGibibytes("1073741824B"), 1);
  EXPECT_EQ(parseGibibytes(""), std::nullopt);
  EXPECT_EQ(parseGibibytes("M"), std::nullopt);
  EXPECT_EQ(parseGibibytes("512Q"), std::nullopt);
  EXPECT_EQ(parseGibibytes("512Mi"), std::nullopt);
}

} // namespace
