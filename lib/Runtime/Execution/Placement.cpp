//===- Placement.cpp - Where workers run and arenas lie -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "tessera/Support/Processors.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <tuple>
#include <unistd.h>

namespace tessera::runtime {

/// One logical processor of each core within the affinity, in the order of nodes and packages.
static std::vector<LogicalProcessor> coresOf(const PlacementRequest &request) {
  std::vector<LogicalProcessor> cores;
  for (const LogicalProcessor &processor : request.topology) {
    bool isAllowed =
        std::binary_search(request.affinity.begin(), request.affinity.end(), processor.id);
    bool isNew = std::none_of(cores.begin(), cores.end(),
                              [&](auto &other) { return other.core == processor.core; });
    if (isAllowed && isNew)
      cores.push_back(processor);
  }
  std::stable_sort(cores.begin(), cores.end(), [](auto &left, auto &right) {
    return std::tie(left.node, left.package, left.core) <
           std::tie(right.node, right.package, right.core);
  });
  return cores;
}

Placement place(const PlacementRequest &request) {
  const std::vector<LogicalProcessor> cores = coresOf(request);
  const auto count = static_cast<int64_t>(cores.size());
  const int64_t ranks = std::max<int64_t>(1, request.ranks);
  const int64_t rank = std::clamp<int64_t>(request.localRank, 0, ranks - 1);
  // Without a topology, the processors of the affinity.
  int64_t granted =
      std::max<int64_t>(count ? count : static_cast<int64_t>(request.affinity.size()), 1);
  const bool isLimited = request.quota && *request.quota < static_cast<double>(granted);
  if (isLimited)
    granted = std::max<int64_t>(1, static_cast<int64_t>(*request.quota));
  const int64_t begin = granted * rank / ranks, end = granted * (rank + 1) / ranks;
  Placement placement;
  placement.workers = request.workers > 0 ? request.workers : std::max<int64_t>(1, end - begin);
  const bool hasMachine = count && request.affinity.size() == request.topology.size();
  if (!request.pins || !hasMachine || isLimited || placement.workers > end - begin)
    return placement;
  for (int64_t i = 0; i < placement.workers; ++i) {
    // Fewer workers than cores are spread over the nodes.
    const LogicalProcessor &core = cores[begin + (end - begin) * i / placement.workers];
    placement.processors.push_back(core.id);
    if (placement.nodes.empty() || placement.nodes.back() != core.node)
      placement.nodes.push_back(core.node);
    placement.nodeOf.push_back(static_cast<int64_t>(placement.nodes.size()) - 1);
  }
  placement.hasOneNode =
      std::all_of(request.topology.begin(), request.topology.end(),
                  [&](auto &processor) { return processor.node == request.topology.front().node; });
  return placement;
}

std::vector<int64_t> Placement::nodesOfDevice(int64_t index, int64_t count) const {
  const auto all = static_cast<int64_t>(nodes.size());
  if (hasOneNode || nodes.empty())
    return {};
  const int64_t begin = all * index / count;
  const int64_t end = std::max(begin + 1, all * (index + 1) / count);
  std::vector<int64_t> found;
  for (int64_t node = begin; node < end; ++node)
    found.push_back(node);
  return found;
}

std::vector<int64_t> Placement::systemNodesOfDevice(int64_t index, int64_t count) const {
  std::vector<int64_t> found = nodesOfDevice(index, count);
  for (int64_t &node : found)
    node = nodes[node];
  return found;
}

PlacementRequest requestOfProcess(int64_t workers, bool pins, int64_t localRank, int64_t ranks) {
  return {
      readCpuTopology(""), processAffinity(), processorQuota(""), workers, localRank, ranks, pins};
}

namespace {

/// The processors that this process holds. A name that is bound is free when the process ends, in
/// whatever way.
struct Held {
  struct Name {
    int socket = -1;
    int64_t uses = 0;
  };
  std::mutex mutex;
  std::map<int64_t, Name> names; // guarded by mutex
};

Held &held() {
  static Held &all = *new Held; // pools may outlive static objects
  return all;
}

/// An abstract socket, bound to a name that only one process can have; -1 if another one has it.
int bindName(int64_t processor) {
  int handle = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return -1;
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                             "tessera-processor-%lld", static_cast<long long>(processor));
  auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 +
                                     static_cast<size_t>(length));
  if (::bind(handle, reinterpret_cast<const struct sockaddr *>(&address), size) == 0)
    return handle;
  ::close(handle);
  return -1;
}

} // namespace

std::shared_ptr<ProcessorClaim> ProcessorClaim::take(const std::vector<int64_t> &processors) {
  Held &all = held();
  std::shared_ptr<ProcessorClaim> claim(new ProcessorClaim);
  {
    std::lock_guard lock(all.mutex);
    for (int64_t processor : processors) {
      Held::Name &name = all.names[processor];
      if (name.socket < 0)
        name.socket = bindName(processor);
      if (name.socket < 0)
        break;
      ++name.uses;
      claim->processors.push_back(processor);
    }
  }
  return claim->processors.size() == processors.size() ? claim : nullptr;
}

ProcessorClaim::~ProcessorClaim() {
  Held &all = held();
  std::lock_guard lock(all.mutex);
  for (int64_t processor : processors) {
    Held::Name &name = all.names[processor];
    if (--name.uses == 0) {
      ::close(name.socket);
      name.socket = -1;
    }
  }
}

HeldPlacement hold(Placement placement) {
  if (placement.processors.empty())
    return {std::move(placement), nullptr};
  auto claim = ProcessorClaim::take(placement.processors);
  if (!claim)
    return {{placement.workers, {}, {}, {}, true}, nullptr};
  return {std::move(placement), std::move(claim)};
}

bool pinThread(int64_t processor) {
  cpu_set_t *set = CPU_ALLOC(processor + 1);
  if (!set)
    return false;
  size_t size = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(size, set);
  CPU_SET_S(static_cast<size_t>(processor), size, set);
  bool done = ::sched_setaffinity(0, size, set) == 0; // 0: the calling thread
  CPU_FREE(set);
  return done;
}

bool bindMemory(std::byte *data, size_t size, const std::vector<int64_t> &nodes) {
  constexpr long kPreferred = 1, kInterleaved = 3; // MPOL_PREFERRED, MPOL_INTERLEAVE
  constexpr int64_t kBits = 64;
  if (nodes.empty())
    return false;
  std::vector<uint64_t> mask(
      static_cast<size_t>(*std::max_element(nodes.begin(), nodes.end()) / kBits + 1));
  for (int64_t node : nodes)
    mask[static_cast<size_t>(node / kBits)] |= uint64_t(1) << (node % kBits);
  return ::syscall(SYS_mbind, data, size, nodes.size() == 1 ? kPreferred : kInterleaved,
                   mask.data(), mask.size() * kBits + 1, 0) == 0;
}

} // namespace tessera::runtime
