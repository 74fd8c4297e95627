//===- Topology.h - Devices and the links between them ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A description of a machine, read from a JSON file (share/topologies/8gpu.json):
//
//   {"version": 1, "name": "2x8gpu", "source": "literature: …",
//    "device": {"kind": "gpu", "flops": {"f32": 67e12, "bf16": 989e12},
//               "memory_rate": 3.35e12, "memory": 80e9, "shares_cores": false},
//    "links": [{"name": "nvlink",     "devices": 8,  "alpha": 2e-6, "rate": 450e9},
//              {"name": "infiniband", "devices": 16, "alpha": 5e-6, "rate": 50e9}],
//    "axes": {"tp": "nvlink"}, "algorithms": ["ring", "tree", "hierarchical"]}
//
// Links are listed innermost first: `devices` consecutive process ids are joined by
// the link or by one before it. `axes` (optional) names the link of a mesh axis.
// `algorithms` (optional) lists those of the communication library: ring, tree, doubling,
// hierarchical, or shared_memory for devices that read each other's buffers; default: all
// that send messages. For shared_memory a link may state the rates of copies and additions
// in long and in short runs of bytes:
// "copies": {"copy": 3e9, "strided_copy": 1e9, "add": 2e9, "strided_add": 1e9}
// (bytes per second of each device while all copy; CopyRates); otherwise `rate` counts.
// Rates are per second (flop, bytes), alpha in seconds, memory in bytes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_TOPOLOGY_H
#define TESSERA_SHARDING_TOPOLOGY_H

#include "tessera/Sharding/CostModel.h"

#include <map>
#include <optional>

namespace tessera::sharding {

/// One device.
struct DeviceKind {
  std::string kind = "gpu";
  std::map<std::string, double> flops{
      {"f64", 67e12}, {"f32", 67e12}, {"bf16", 989e12}, {"f16", 989e12}}; ///< per second, by dtype
  double memoryRate = 3.35e12;                                            ///< bytes per second
  double memory = 80e9;                                                   ///< bytes
  /// Whether these are virtual devices of one machine: their simultaneous work and traffic add up.
  bool sharesCores = false;

  /// Flops per second for an element type; the f32 rate if the type has none.
  double flopsOf(const std::string &dtype) const;
};

/// A class of links and how many consecutive devices it joins.
struct LinkClass {
  std::string name = "nvlink";
  int64_t devices = 8;
  Link link;
};

/// A machine. The default is share/topologies/8gpu.json.
struct Topology {
  std::string name = "8gpu";
  std::string source;
  DeviceKind device;
  std::vector<LinkClass> links{LinkClass()};    ///< innermost first, at least one
  std::map<std::string, std::string> axisLinks; ///< mesh axis name to the name of its link
  std::vector<Algorithm> algorithms;            ///< of collectives; empty: all that send messages

  /// The link along each mesh axis: the innermost class that joins every line of devices along the
  /// axis; the outermost class if none does.
  LinkModel linksOf(const Mesh &mesh) const;
  /// Roofline: the longer of the times of computation and of memory accesses, in seconds on one
  /// device of `devices`.
  double computeSeconds(double flops, double bytes, const std::string &dtype,
                        int64_t devices) const;
};

/// The reason why a topology was not read.
struct TopologyError {
  int64_t line = 0;    ///< of the file, from 1; 0: no specific line
  std::string message; ///< "field 'links[0].rate' is -1; it must be a number from 1 to 1e+30"
};

/// Reads the JSON text of a topology. Empty on failure.
std::optional<Topology> parseTopology(const std::string &text, TopologyError &error);
/// The topology of this machine, with virtual devices that share cores, from hwloc's XML.
std::optional<Topology> topologyFromHwlocXml(const std::string &xml, std::string &error);
/// The same by hwloc's library, which is opened at run time.
std::optional<Topology> readHwlocTopology(std::string &error);
/// The same from a file. An empty path is the default topology, "hwloc" is this machine.
std::optional<Topology> readTopology(const std::string &path, TopologyError &error);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_TOPOLOGY_H
