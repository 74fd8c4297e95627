//===- PlacementTest.cpp - Workers and arenas on synthetic machines -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Execution/Memory.h"
#include "Execution/Placement.h"
#include "Execution/WorkerPool.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <regex>
#include <sched.h>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tessera;
using namespace tessera::runtime;

namespace {

using List = std::vector<int64_t>;

/// hwloc's synthetic topologies, by its XML: PUs with the core, package and node that have them.
/// Empty without hwloc 2.
CpuTopology synthetic(const char *description) {
  void *library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return {};
  auto call = [&](const char *name, auto... arguments) {
    auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(::dlsym(library, name));
    return function ? function(arguments...) : -1;
  };
  void *topology = nullptr;
  char *text = nullptr;
  int size = 0;
  if (call("hwloc_topology_init", &topology) ||
      call("hwloc_topology_set_synthetic", topology, description) ||
      call("hwloc_topology_load", topology) ||
      call("hwloc_topology_export_xmlbuffer", topology, &text, &size, 0ul))
    return {};
  std::string xml(text);
  struct Object {
    int64_t number;
    std::set<int64_t> processors;
  };
  std::map<std::string, std::vector<Object>> objects; // by type
  std::regex element("<object type=\"(\\w+)\" os_index=\"(\\d+)\" cpuset=\"([0-9a-fx,]+)\"");
  for (auto it = std::sregex_iterator(xml.begin(), xml.end(), element);
       it != std::sregex_iterator(); ++it) {
    Object object{std::stoll((*it)[2]), {}};
    // "0x00000003,,0x0000ff00": words of 32 bits, the most significant first; empty ones are 0.
    std::vector<std::string> words{""};
    for (char c : (*it)[3].str())
      c == ',' ? words.emplace_back() : words.back() += c;
    std::reverse(words.begin(), words.end());
    for (size_t word = 0; word < words.size(); ++word)
      for (int64_t bits = words[word].empty() ? 0 : std::stoll(words[word], nullptr, 16), bit = 0;
           bit < 32; ++bit)
        if (bits >> bit & 1)
          object.processors.insert(static_cast<int64_t>(word) * 32 + bit);
    objects[(*it)[1]].push_back(object);
  }
  auto holder = [&](const char *type, int64_t processor) -> const Object * {
    for (const Object &object : objects[type])
      if (object.processors.count(processor))
        return &object;
    return nullptr;
  };
  CpuTopology all;
  for (const Object &unit : objects["PU"]) {
    const Object *core = holder("Core", unit.number), *package = holder("Package", unit.number),
                 *node = holder("NUMANode", unit.number);
    all.push_back({unit.number, core ? *core->processors.begin() : unit.number,
                   package ? package->number : 0, node ? node->number : 0});
  }
  std::sort(all.begin(), all.end(), [](auto &x, auto &y) { return x.id < y.id; });
  return all;
}

/// The request of a process that may use the whole machine and pins.
PlacementRequest requestOf(const CpuTopology &topology) {
  PlacementRequest request;
  request.topology = topology;
  for (const LogicalProcessor &processor : topology)
    request.affinity.push_back(processor.id);
  request.pins = true;
  return request;
}

List range(int64_t begin, int64_t end, int64_t step = 1) {
  List list;
  for (; begin < end; begin += step)
    list.push_back(begin);
  return list;
}

#define TESSERA_SYNTHETIC(NAME, DESCRIPTION)                                                       \
  const CpuTopology NAME = synthetic(DESCRIPTION);                                                 \
  if (NAME.empty())                                                                                \
  GTEST_SKIP() << "no libhwloc.so.15"

TEST(Placement, TwoPackagesOfFourNodesOfEightCores) {
  TESSERA_SYNTHETIC(machine, "pack:2 numa:4 core:8 pu:2");
  ASSERT_EQ(machine.size(), 128u);
  Placement placement = place(requestOf(machine));
  // One worker for each core; both threads of a core are neighbors here.
  EXPECT_EQ(placement.workers, 64);
  EXPECT_EQ(placement.processors, range(0, 128, 2));
  EXPECT_EQ(placement.nodes, range(0, 8));
  for (int64_t worker = 0; worker < 64; ++worker)
    EXPECT_EQ(placement.nodeOf[worker], worker / 8);
  // 16 devices: two on each node. 4: two nodes each. 3: every node has a device.
  for (int64_t device = 0; device < 16; ++device)
    EXPECT_EQ(placement.systemNodesOfDevice(device, 16), List{device / 2});
  for (int64_t device = 0; device < 4; ++device)
    EXPECT_EQ(placement.systemNodesOfDevice(device, 4), range(2 * device, 2 * device + 2));
  EXPECT_EQ(placement.systemNodesOfDevice(0, 3), range(0, 2));
  EXPECT_EQ(placement.systemNodesOfDevice(1, 3), range(2, 5));
  EXPECT_EQ(placement.systemNodesOfDevice(2, 3), range(5, 8));
  EXPECT_EQ(placement.systemNodesOfDevice(0, 1), range(0, 8));
}

TEST(Placement, RanksOfAHostDivideItsCores) {
  TESSERA_SYNTHETIC(machine, "pack:2 numa:1 core:6 pu:1");
  for (int64_t ranks : {1, 2, 3, 5, 12, 20}) {
    List used;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      PlacementRequest request = requestOf(machine);
      request.localRank = rank, request.ranks = ranks;
      Placement placement = place(request);
      EXPECT_GE(placement.workers, std::max<int64_t>(1, 12 / ranks));
      EXPECT_LE(placement.workers, 12 / ranks + 1);
      used.insert(used.end(), placement.processors.begin(), placement.processors.end());
      if (ranks == 2) // a rank a package, whose memory it takes
        EXPECT_EQ(placement.systemNodesOfDevice(0, 1), List{rank});
    }
    // No core twice, none unused; more ranks than cores: those with a core of their own are pinned.
    std::sort(used.begin(), used.end());
    EXPECT_EQ(used, range(0, 12)) << ranks;
  }
}

TEST(Placement, FewWorkersAreSpreadOverTheNodes) {
  TESSERA_SYNTHETIC(machine, "pack:2 numa:2 core:4 pu:1");
  PlacementRequest request = requestOf(machine);
  request.workers = 4;
  Placement placement = place(request);
  EXPECT_EQ(placement.processors, (List{0, 4, 8, 12}));
  EXPECT_EQ(placement.nodeOf, range(0, 4));
  request.workers = 17; // more than cores
  placement = place(request);
  EXPECT_EQ(placement.workers, 17);
  EXPECT_TRUE(placement.processors.empty());
}

TEST(Placement, OneNodeNeedsNone) {
  TESSERA_SYNTHETIC(machine, "pack:1 core:8 pu:2");
  Placement placement = place(requestOf(machine));
  EXPECT_EQ(placement.workers, 8);
  EXPECT_EQ(placement.processors, range(0, 16, 2));
  EXPECT_TRUE(placement.nodesOfDevice(0, 8).empty());
}

} // namespace

TEST(Placement, LimitsOfTheProcess) {
  CpuTopology machine; // four cores; threads i and i + 4 share one
  for (int64_t id = 0; id < 8; ++id)
    machine.push_back({id, id % 4, 0, id % 4 / 2});
  PlacementRequest request = requestOf(machine);
  EXPECT_EQ(place(request).processors, range(0, 4));
  // A part of the machine: another job may have the rest, so that nothing is pinned.
  request.affinity = {1, 2, 5, 6};
  EXPECT_EQ(place(request).workers, 2);
  EXPECT_TRUE(place(request).processors.empty());
  // A quota in the middle.
  request = requestOf(machine);
  request.quota = 3.5;
  EXPECT_EQ(place(request).workers, 3);
  EXPECT_TRUE(place(request).processors.empty());
  request.quota = 0.5;
  EXPECT_EQ(place(request).workers, 1);
  request.quota = 8;
  EXPECT_EQ(place(request).processors, range(0, 4));
  request.ranks = 3, request.quota = 2;
  for (int64_t rank = 0; rank < 3; ++rank) {
    request.localRank = rank;
    EXPECT_EQ(place(request).workers, 1);
  }
  // Not asked for.
  request = requestOf(machine);
  request.pins = false;
  EXPECT_EQ(place(request).workers, 4);
  EXPECT_TRUE(place(request).processors.empty());
  // Without sysfs.
  request = {{}, {0, 1, 2}, {}, 0, 0, 1, true};
  EXPECT_EQ(place(request).workers, 3);
  EXPECT_TRUE(place(request).processors.empty());
}

TEST(Placement, AnotherProcessThatPinsKeepsItsProcessors) {
  // Numbers that no machine has, so that no other test is in the way.
  const int64_t base = 1000000 + ::getpid() * 10;
  Placement wanted{2, {base, base + 1}, {0}, {0, 0}, true};
  HeldPlacement first = hold(wanted), second = hold(wanted); // of one process
  EXPECT_TRUE(first.claim && second.claim);
  auto inChild = [&] { // whether another process gets them
    pid_t child = ::fork();
    if (child == 0) {
      // The child has the sockets of this process: it asks as a new one would.
      if (!std::freopen("/dev/null", "w", stdout)) // it is expected to fail twice
        ::_exit(2);
      int status = ::execl("/proc/self/exe", "RuntimeTests", "--gtest_also_run_disabled_tests",
                           "--gtest_filter=Placement.DISABLED_Claims", nullptr);
      ::_exit(status);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  ::setenv("TESSERA_TEST_CLAIM", std::to_string(base + 1).c_str(), 1);
  EXPECT_FALSE(inChild());
  first = {};
  EXPECT_FALSE(inChild());
  second = {};
  EXPECT_TRUE(inChild());
  ::unsetenv("TESSERA_TEST_CLAIM");
}

/// Run by the test above, in a process of its own.
TEST(Placement, DISABLED_Claims) {
  const char *processor = std::getenv("TESSERA_TEST_CLAIM");
  ASSERT_TRUE(processor);
  HeldPlacement held = hold({1, {std::stoll(processor)}, {0}, {0}, true});
  EXPECT_TRUE(held.claim);
  EXPECT_EQ(held.placement.workers, 1);
  EXPECT_EQ(held.placement.processors.empty(), !held.claim);
}

TEST(Placement, WorkersRunWhereTheyArePinned) {
  const List affinity = processAffinity();
  ASSERT_FALSE(affinity.empty());
  const int64_t last = affinity.back();
  bool allowed = false; // a sandbox may refuse it
  std::thread([&] { allowed = pinThread(last); }).join();
  if (!allowed)
    GTEST_SKIP() << "sched_setaffinity is refused";
  {
    WorkerPool pool({{2, {affinity.front(), last}, {0}, {0, 0}, true}, nullptr});
    std::atomic<int64_t> wrong{0};
    const auto caller = std::this_thread::get_id();
    pool.parallelFor(200, [&](int64_t) {
      if (std::this_thread::get_id() != caller && ::sched_getcpu() != last)
        ++wrong;
    });
    EXPECT_EQ(wrong, 0);
    while (pool.pinned() == 0) // the worker may start late
      std::this_thread::yield();
  }
  EXPECT_EQ(processAffinity(), affinity) << "the caller moves as before";
}

TEST(Placement, JobsOfSeveralNodes) {
  // Nodes without processors: who runs a job is open, that each runs once per push is not.
  struct Count final : Job {
    void run() override {
      if (++runs < 50)
        pool->push(*this);
    }
    WorkerPool *pool = nullptr;
    std::atomic<int> runs{0};
  };
  for (int64_t workers : {1, 2, 4}) {
    Placement placement{workers, {}, {0, 1}, {}, false};
    for (int64_t worker = 0; worker < workers; ++worker)
      placement.nodeOf.push_back(2 * worker / workers);
    WorkerPool pool({placement, nullptr});
    std::vector<Count> jobs(9);
    std::vector<Job *> first;
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].pool = &pool;
      jobs[i].node = static_cast<int64_t>(i % 3) - 1; // any, 0, 1
      first.push_back(&jobs[i]);
    }
    for (int repetition = 0; repetition < 20; ++repetition) {
      for (Count &job : jobs)
        job.runs = 0;
      pool.run(first);
      for (Count &job : jobs)
        ASSERT_EQ(job.runs, 50);
      std::atomic<int64_t> sum{0};
      pool.parallelFor(100, [&](int64_t i) { sum += i; });
      ASSERT_EQ(sum, 4950);
    }
  }
}

TEST(Placement, PagesOfAnArena) {
  constexpr size_t kSize = 1 << 20;
  void *data = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  EXPECT_FALSE(bindMemory(static_cast<std::byte *>(data), kSize, {}));
  const int64_t node = readCpuTopology("").empty() ? 0 : readCpuTopology("").front().node;
  const bool bound = bindMemory(static_cast<std::byte *>(data), kSize, {node});
  // A sandbox may refuse it.
  if (bound) {
    int policy = -1;
    uint64_t mask[16] = {};
    ASSERT_EQ(::syscall(SYS_get_mempolicy, &policy, mask, sizeof(mask) * 8, data, 2 /*of address*/),
              0);
    EXPECT_EQ(policy, 1); // preferred
    EXPECT_EQ(mask[node / 64] >> (node % 64), 1u);
  }
  ::munmap(data, kSize);
  if (!bound)
    GTEST_SKIP() << "mbind is refused";
}
