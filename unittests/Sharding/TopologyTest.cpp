//===- TopologyTest.cpp - Machines and their files -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Topology.h"

#include <gtest/gtest.h>

using namespace tessera::sharding;

namespace {

const char *const kTwoNodes = R"({"version": 1, "name": "2x8", "source": "test",
 "device": {"kind": "gpu", "flops": {"f32": 1e12, "bf16": 4e12},
            "memory_rate": 1e12, "memory": 8e9},
 "links": [{"name": "fast", "devices": 8, "alpha": 2e-6, "rate": 400e9},
           {"name": "slow", "devices": 16, "alpha": 5e-6, "rate": 50e9}],
 "axes": {"pinned": "slow"}})";

Mesh mesh(std::vector<int64_t> shape, std::vector<std::string> names) {
  Mesh result{"m", std::move(shape), std::move(names), {}};
  int64_t devices = 1;
  for (int64_t extent : result.shape)
    devices *= extent;
  for (int64_t id = 0; id < devices; ++id)
    result.processIds.push_back(id);
  return result;
}

TEST(Topology, AnAxisHasTheInnermostLinkThatJoinsItsLines) {
  std::string error;
  std::optional<Topology> topology = parseTopology(kTwoNodes, error);
  ASSERT_TRUE(topology) << error;
  LinkModel links = topology->linksOf(mesh({2, 8}, {"dp", "tp"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);  // ids 0 and 8
  EXPECT_EQ(links.axes[1].rate, 400e9); // ids 0..7
  links = topology->linksOf(mesh({4, 4}, {"x", "y"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);
  EXPECT_EQ(links.axes[1].rate, 400e9);
  links = topology->linksOf(mesh({3, 5}, {"x", "y"})); // 5..9 cross the border of 8
  EXPECT_EQ(links.axes[1].rate, 50e9);
  links = topology->linksOf(mesh({4, 8}, {"x", "y"})); // beyond all: the outermost
  EXPECT_EQ(links.axes[0].rate, 50e9);
  links = topology->linksOf(mesh({8}, {"pinned"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);
}

TEST(Topology, ComputeIsARoofline) {
  std::string error;
  Topology topology = *parseTopology(kTwoNodes, error);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "f32", 8), 2.0);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "bf16", 8), 1.0);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "i64", 8), 2.0); // as f32
  topology.device.sharesCores = true;
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "f32", 8), 16.0);
}

TEST(Topology, TheShippedFileIsTheDefault) {
  std::string error;
  std::optional<Topology> shipped =
      readTopology(TESSERA_SOURCE_DIR "/share/topologies/8gpu.json", error);
  ASSERT_TRUE(shipped) << error;
  Topology standard;
  EXPECT_EQ(shipped->device.flops, standard.device.flops);
  EXPECT_EQ(shipped->device.memoryRate, standard.device.memoryRate);
  EXPECT_EQ(shipped->device.memory, standard.device.memory);
  ASSERT_EQ(shipped->links.size(), 1u);
  EXPECT_EQ(shipped->links[0].link.alpha, standard.links[0].link.alpha);
  EXPECT_EQ(shipped->links[0].link.rate, standard.links[0].link.rate);
}

TEST(Topology, WhatIsWrongIsNamedWithItsLine) {
  struct Case {
    std::string from, to, error;
  };
  for (const Case &c : std::vector<Case>{
           {"\"version\": 1", "\"version\": 2", "line 1: field 'version' must be 1"},
           {"\"rate\": 50e9", "\"rate\": -1",
            "line 5: field 'links[1].rate' must be a number greater than 0"},
           {"\"devices\": 16", "\"devices\": 12",
            "line 5: field 'links[1].devices' must be a multiple of the link before it: 8"},
           {"\"memory\": 8e9", "\"memory\": \"8\"",
            "line 3: field 'device.memory' must be a number greater than 0"},
           {"\"memory\": 8e9", "\"memroy\": 8e9",
            "line 3: field 'device.memroy' is not known here"},
           {"\"pinned\": \"slow\"", "\"pinned\": \"rope\"",
            "line 6: field 'axes.pinned' names no link of this file: 'rope'"},
           {"\"f32\": 1e12, ", "",
            "line 2: field 'device.flops' must be an object with at least \"f32\""},
           {"\"source\": \"test\",", "\"source\": \"test\"", "line 2: not JSON"},
       }) {
    std::string text = kTwoNodes, error;
    size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, c.from.size(), c.to);
    EXPECT_FALSE(parseTopology(text, error));
    EXPECT_EQ(error, c.error);
  }
  std::string error;
  EXPECT_FALSE(readTopology("/nonexistent/t.json", error));
  EXPECT_EQ(error, "/nonexistent/t.json: cannot be read");
}

} // namespace
