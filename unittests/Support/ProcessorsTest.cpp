//===- ProcessorsTest.cpp - Quotas of processors --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Processors.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tessera;

namespace {

/// The files of a machine below a separate folder.
class Processors : public testing::Test {
protected:
  void SetUp() override {
    root = testing::TempDir() + "tessera-processors-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root);
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string &file, const std::string &text) {
    std::filesystem::path path = root + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root;
};

TEST_F(Processors, NoQuotaWithoutCgroups) {
  EXPECT_EQ(processorQuota(root), std::nullopt);
  EXPECT_GE(availableProcessors(), 1);
}

TEST_F(Processors, CgroupV2TakesTheMinimumOfGroupAndParents) {
  write("/proc/self/cgroup", "0::/pod/job");
  write("/sys/fs/cgroup/pod/job/cpu.max", "max 100000");
  EXPECT_EQ(processorQuota(root), std::nullopt);
  write("/sys/fs/cgroup/pod/cpu.max", "350000 100000");
  EXPECT_EQ(processorQuota(root), 3.5);
  write("/sys/fs/cgroup/pod/job/cpu.max", "200000 100000");
  EXPECT_EQ(processorQuota(root), 2);
}

TEST_F(Processors, CgroupV2InAContainerReadsTheMount) {
  write("/proc/self/cgroup", "0::/not/visible/here");
  write("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(processorQuota(root), 0.5);
}

TEST_F(Processors, CgroupV1HasQuotaAndPeriod) {
  write("/proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n2:cpuset:/job");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(processorQuota(root), std::nullopt);
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000");
  EXPECT_EQ(processorQuota(root), 4);
}

TEST_F(Processors, IgnoresInvalidQuotas) {
  write("/proc/self/cgroup", "garbage\n0:\n0::relative\n0::/a");
  write("/sys/fs/cgroup/a/cpu.max", "1e5 0");
  write("/sys/fs/cgroup/cpu.max", "100000 0");
  EXPECT_EQ(processorQuota(root), std::nullopt);
}

} // namespace
