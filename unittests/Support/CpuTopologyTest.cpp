//===- CpuTopologyTest.cpp - Topologies read from sysfs -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/CpuTopology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tessera;

namespace {

TEST(CpuTopology, ProcessorLists) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(parseProcessorList("0-3,8,10-11"), (List{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parseProcessorList("4,1,4"), (List{1, 4}));
  EXPECT_EQ(parseProcessorList(""), List());
  for (const char *malformed : {"a", "1-", "3-1", "1;2", "-1", "0-99999999999", "1,b"})
    EXPECT_EQ(parseProcessorList(malformed), List()) << malformed;
}

TEST(CpuTopology, ReadsSysfs) {
  std::string root = testing::TempDir() + "tessera-cpu-topology";
  std::filesystem::remove_all(root);
  auto write = [&](const std::string &file, const std::string &text) {
    std::filesystem::path path = root + "/sys/devices/system/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  };
  EXPECT_TRUE(readCpuTopology(root).empty());
  // Two packages of two cores with two threads each; core 3 is offline.
  write("cpu/online", "0-2,4-6");
  write("node/online", "0,2");
  write("node/node0/cpulist", "0-1,4-5");
  write("node/node2/cpulist", "2-3,6-7");
  for (int cpu : {0, 1, 2, 4, 5, 6}) {
    std::string folder = "cpu/cpu" + std::to_string(cpu) + "/topology/";
    write(folder + "physical_package_id", cpu % 4 < 2 ? "0" : "1");
    write(folder + "thread_siblings_list",
          std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  CpuTopology topology = readCpuTopology(root);
  ASSERT_EQ(topology.size(), 6u);
  for (const LogicalProcessor &processor : topology) {
    EXPECT_EQ(processor.core, processor.id % 4);
    EXPECT_EQ(processor.package, processor.id % 4 < 2 ? 0 : 1);
    EXPECT_EQ(processor.node, processor.id % 4 < 2 ? 0 : 2);
  }
  std::filesystem::remove_all(root);
}

TEST(CpuTopology, ThisMachineHasTheProcessorsOfTheAffinity) {
  CpuTopology topology = readCpuTopology("");
  for (int64_t id : processAffinity())
    if (!topology.empty())
      EXPECT_TRUE(std::any_of(topology.begin(), topology.end(), [&](auto &processor) {
        return processor.id == id;
      })) << id;
}

} // namespace
