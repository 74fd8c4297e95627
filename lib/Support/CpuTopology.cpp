//===- CpuTopology.cpp - Cores and memory nodes of a machine --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/CpuTopology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sched.h>

using namespace tessera;

static std::string firstWord(const std::string &file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

static int64_t numberIn(const std::string &file, int64_t otherwise) {
  std::string word = firstWord(file);
  int64_t value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? value : otherwise;
}

std::vector<int64_t> tessera::parseProcessorList(const std::string &text) {
  constexpr int64_t kMost = 1 << 20;
  std::vector<int64_t> list;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    int64_t first = 0, last = 0;
    auto number = std::from_chars(at, end, first);
    if (number.ec != std::errc())
      return {};
    last = first;
    if (number.ptr < end && *number.ptr == '-') {
      number = std::from_chars(number.ptr + 1, end, last);
      if (number.ec != std::errc())
        return {};
    }
    if (first < 0 || last < first || last >= kMost || (number.ptr < end && *number.ptr != ','))
      return {};
    for (int64_t i = first; i <= last; ++i)
      list.push_back(i);
    at = number.ptr + 1;
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

CpuTopology tessera::readCpuTopology(const std::string &root) {
  const std::string cpus = root + "/sys/devices/system/cpu/";
  const std::string nodes = root + "/sys/devices/system/node/";
  CpuTopology processors;
  for (int64_t id : parseProcessorList(firstWord(cpus + "online"))) {
    const std::string folder = cpus + "cpu" + std::to_string(id) + "/topology/";
    std::vector<int64_t> siblings = parseProcessorList(firstWord(folder + "thread_siblings_list"));
    processors.push_back({id, siblings.empty() ? id : siblings.front(),
                          std::max<int64_t>(0, numberIn(folder + "physical_package_id", 0)), 0});
  }
  for (int64_t node : parseProcessorList(firstWord(nodes + "online")))
    for (int64_t id :
         parseProcessorList(firstWord(nodes + "node" + std::to_string(node) + "/cpulist")))
      for (LogicalProcessor &processor : processors)
        if (processor.id == id)
          processor.node = node;
  return processors;
}

std::vector<int64_t> tessera::processAffinity() {
  // The kernel refuses masks that are smaller than its own.
  for (int count = 1024; count <= 1 << 16; count *= 4) {
    cpu_set_t *set = CPU_ALLOC(count);
    if (!set)
      return {};
    size_t size = CPU_ALLOC_SIZE(count);
    std::vector<int64_t> found;
    bool done = ::sched_getaffinity(0, size, set) == 0;
    for (int i = 0; done && i < count; ++i)
      if (CPU_ISSET_S(i, size, set))
        found.push_back(i);
    CPU_FREE(set);
    if (done)
      return found;
  }
  return {};
}
