//===- CpuKernelsTest.cpp - Which variant of kernels a machine runs -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/CpuKernels.h"
#include "tessera/Support/CpuFeatures.h"

#include <gtest/gtest.h>

namespace tessera::runtime {

static CpuKernels variant(const std::string &cpu, const std::vector<std::string> &features) {
  return {cpu, hostArchitecture(), features, {}, {}};
}

TEST(CpuKernels, TheMostFeaturesThatThisMachineHas) {
  CpuKernels other = variant("other", {});
  other.architecture = "pdp-11";
  std::vector<CpuKernels> variants = {other, variant("none", {}), variant("all", hostFeatures()),
                                      variant("too much", {"sse3", "a feature of tomorrow"})};
  auto best = chooseKernels(variants);
  ASSERT_TRUE(best) << best.message();
  EXPECT_EQ((*best)->cpu, hostFeatures().empty() ? "none" : "all");
  variants = {other, variants.back()};
  auto none = chooseKernels(variants);
  ASSERT_FALSE(none);
  EXPECT_NE(none.message().find("'other' require architecture pdp-11"), std::string::npos);
  EXPECT_NE(
      none.message().find("a feature of tomorrow; compile the program with --cpu=" + portableCpu()),
      std::string::npos)
      << none.message();
  auto empty = chooseKernels({});
  EXPECT_TRUE(empty && !*empty);
}

TEST(CpuKernels, OneIsKept) {
  std::vector<CpuKernels> variants = {variant("a", {}), variant("b", {})};
  EXPECT_NE(keepKernels(variants, "c").message().find("has kernels for a, b"), std::string::npos);
  variants = {variant("a", {}), variant("b", {})};
  ASSERT_TRUE(keepKernels(variants, "b").ok());
  ASSERT_EQ(variants.size(), 1u);
  EXPECT_EQ(variants[0].cpu, "b");
}

TEST(CpuKernels, RejectsOtherJson) {
  for (const char *text : {"", "{}", "[1]", R"([{"cpu": "a"}])"})
    EXPECT_FALSE(parseCpuKernels(text)) << text;
  std::vector<CpuKernels> variants = {variant("a", {"x"})};
  auto read = parseCpuKernels(toJson(variants));
  ASSERT_TRUE(read);
  EXPECT_EQ(toJson(*read), toJson(variants));
}

} // namespace tessera::runtime
