//===- TopologyHwloc.cpp - A topology of this machine from hwloc ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// hwloc knows cores, memory and NUMA nodes, but not their speed: rates are those of a
// core in share/topologies/2core.json, as the field `source` says. The library is
// opened on demand; only its XML export is used, which needs no header and is stable.
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Topology.h"

#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>

namespace tessera::sharding {

namespace {

/// Of one core (2core.json describes two).
constexpr double kFlopsF32 = 98e9, kFlopsF64 = 46.8e9, kMemoryRate = 22.6e9, kAlpha = 9.6e-7,
                 kRate = 8.8e8;
constexpr CopyRates kCopies = {1.5e9, 6.1e8, 1.18e9, 3.74e8};
/// The rate between NUMA nodes as a part of the rate within one.
constexpr double kBetweenNodes = 0.5;

int64_t count(const std::string &text, const std::string &what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

/// An open library, closed on destruction.
struct Library {
  void *handle = nullptr;
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  template <typename Function> Function get(const char *name) const {
    return reinterpret_cast<Function>(dlsym(handle, name));
  }
};

} // namespace

std::optional<Topology> topologyFromHwlocXml(const std::string &xml, std::string &error) {
  int64_t cores = count(xml, "type=\"Core\""), nodes = count(xml, "type=\"NUMANode\"");
  if (cores == 0)
    cores = count(xml, "type=\"PU\"");
  double memory = 0;
  const std::string field = "local_memory=\"";
  for (size_t at = xml.find(field); at != std::string::npos; at = xml.find(field, at + 1))
    memory += std::strtod(xml.c_str() + at + field.size(), nullptr);
  if (cores == 0 || memory <= 0) {
    error = "hwloc names no core or no memory of this machine";
    return std::nullopt;
  }
  nodes = std::clamp<int64_t>(nodes, 1, cores);
  Topology topology;
  topology.name = "hwloc";
  topology.source = "hwloc: " + std::to_string(cores) + " cores, " + std::to_string(nodes) +
                    " memory nodes; rates of a core as in 2core.json";
  auto all = static_cast<double>(cores);
  topology.device.kind = "cpu";
  topology.device.flops = {{"f32", kFlopsF32 * all}, {"f64", kFlopsF64 * all}};
  topology.device.memoryRate = kMemoryRate * all;
  topology.device.memory = memory;
  topology.device.sharesCores = true;
  topology.algorithms = {Algorithm::shared_memory};
  int64_t perNode = (cores + nodes - 1) / nodes;
  auto linkOf = [](double waits, double cores) {
    CopyRates copies{kCopies.copy * cores, kCopies.stridedCopy * cores, kCopies.add * cores,
                     kCopies.stridedAdd * cores};
    return Link{kAlpha * waits, kRate * cores, copies};
  };
  auto onNode = static_cast<double>(perNode);
  topology.links = {{"memory", perNode, linkOf(1, onNode)}};
  if (nodes > 1)
    topology.links.push_back({"between nodes", perNode * nodes, linkOf(2, onNode * kBetweenNodes)});
  return topology;
}

std::optional<Topology> readHwlocTopology(std::string &error) {
  Library library{dlopen("libhwloc.so.15", RTLD_NOW)};
  if (!library.handle)
    library.handle = dlopen("libhwloc.so", RTLD_NOW);
  if (!library.handle) {
    error = "hwloc: libhwloc.so.15 was not found; install it (Debian: libhwloc15) or name a file";
    return std::nullopt;
  }
  auto init = library.get<int (*)(void **)>("hwloc_topology_init");
  auto load = library.get<int (*)(void *)>("hwloc_topology_load");
  auto write = library.get<int (*)(void *, char **, int *, unsigned long)>(
      "hwloc_topology_export_xmlbuffer");
  auto release = library.get<void (*)(void *, char *)>("hwloc_free_xmlbuffer");
  auto destroy = library.get<void (*)(void *)>("hwloc_topology_destroy");
  void *machine = nullptr;
  char *buffer = nullptr;
  int length = 0;
  if (!init || !load || !write || !release || !destroy || init(&machine) != 0) {
    error = "hwloc: the library is not version 2";
    return std::nullopt;
  }
  bool isWritten = load(machine) == 0 && write(machine, &buffer, &length, 0) == 0;
  std::string xml(isWritten ? buffer : "");
  if (isWritten)
    release(machine, buffer);
  destroy(machine);
  if (!isWritten) {
    error = "hwloc: this machine cannot be read";
    return std::nullopt;
  }
  return topologyFromHwlocXml(xml, error);
}

} // namespace tessera::sharding
