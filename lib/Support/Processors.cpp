//===- Processors.cpp - Processors that a process may use -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Processors.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

using namespace tessera;

/// A number that is the whole text.
static std::optional<double> numberOf(const std::string &text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != text.npos)
    return std::nullopt;
  return std::stod(text);
}

static std::string wordOf(const std::string &file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

static std::optional<double> ratioOf(const std::string &quota, const std::string &period) {
  std::optional<double> time = numberOf(quota), of = numberOf(period);
  return time && of && *of > 0 ? std::optional(*time / *of) : std::nullopt;
}

/// The folders of a group and of those around it. In a container its own path may not be visible:
/// then the mount is the group.
static std::vector<std::string> foldersOf(const std::string &mount, std::string group) {
  std::vector<std::string> folders;
  for (; !group.empty() && group != "/"; group.erase(group.rfind('/')))
    folders.push_back(mount + group);
  folders.push_back(mount);
  return folders;
}

std::optional<double> tessera::processorQuota(const std::string &root) {
  std::optional<double> least;
  auto take = [&](std::optional<double> limit) {
    if (limit && (!least || *limit < *least))
      least = limit;
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // hierarchy:controllers:path, without controllers in version 2
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos || line.compare(second + 1, 1, "/") != 0)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const std::string &folder : foldersOf(root + "/sys/fs/cgroup", group)) {
        std::ifstream in(folder + "/cpu.max");
        std::string quota, period;
        in >> quota >> period;
        take(ratioOf(quota, period));
      }
    } else if (("," + controllers + ",").find(",cpu,") != controllers.npos) {
      for (const std::string &name : {controllers, std::string("cpu")})
        for (const std::string &folder : foldersOf(root + "/sys/fs/cgroup/" + name, group))
          take(
              ratioOf(wordOf(folder + "/cpu.cfs_quota_us"), wordOf(folder + "/cpu.cfs_period_us")));
    }
  }
  return least;
}

int64_t tessera::availableProcessors() {
  auto count = static_cast<int64_t>(std::thread::hardware_concurrency()); // of the affinity mask
  if (std::optional<double> quota = processorQuota(""))
    count = std::min(count, static_cast<int64_t>(*quota));
  return std::max<int64_t>(1, count);
}
