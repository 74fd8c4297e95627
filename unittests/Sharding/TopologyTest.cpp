//===- TopologyTest.cpp - Machines and their files ------------------------===//
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

/// The error of a rejected text: "line L: message"; empty if it is accepted.
std::string refusal(const std::string &text) {
  TopologyError error;
  return parseTopology(text, error) ? ""
                                    : "line " + std::to_string(error.line) + ": " + error.message;
}

Mesh mesh(std::vector<int64_t> shape, std::vector<std::string> names) {
  Mesh result{"m", std::move(shape), std::move(names), {}};
  int64_t devices = 1;
  for (int64_t extent : result.shape)
    devices *= extent;
  result.processIds = DeviceIds::range(devices);
  return result;
}

TEST(Topology, AnAxisHasTheInnermostLinkOfItsDevices) {
  TopologyError error;
  std::optional<Topology> topology = parseTopology(kTwoNodes, error);
  ASSERT_TRUE(topology) << error.message;
  LinkModel links = topology->linksOf(mesh({2, 8}, {"dp", "tp"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);  // ids 0 and 8
  EXPECT_EQ(links.axes[1].rate, 400e9); // ids 0..7
  links = topology->linksOf(mesh({4, 4}, {"x", "y"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);
  EXPECT_EQ(links.axes[1].rate, 400e9);
  links = topology->linksOf(mesh({3, 5}, {"x", "y"})); // 5..9 cross the border of 8
  EXPECT_EQ(links.axes[1].rate, 50e9);
  links = topology->linksOf(mesh({4, 8}, {"x", "y"})); // beyond all links: the outermost
  EXPECT_EQ(links.axes[0].rate, 50e9);
  links = topology->linksOf(mesh({8}, {"pinned"}));
  EXPECT_EQ(links.axes[0].rate, 50e9);
}

TEST(Topology, AnAxisOverNodesHasALevelForEachLink) {
  TopologyError error;
  Topology topology = *parseTopology(kTwoNodes, error);
  LinkModel links = topology.linksOf(mesh({16}, {"d"}));
  ASSERT_EQ(links.levels[0].size(), 2U);
  EXPECT_EQ(links.levels[0][0].devices, 8);
  EXPECT_EQ(links.levels[0][0].link.rate, 400e9);
  EXPECT_EQ(links.levels[0][1].devices, 2);
  links = topology.linksOf(mesh({2, 8}, {"dp", "tp"}));
  EXPECT_EQ(links.levels[0].size(), 1U); // ids 0 and 8: only between the nodes
  EXPECT_EQ(links.levels[1].size(), 1U);
  links = topology.linksOf(
      mesh({3, 5}, {"x", "y"})); // no run of 5 stays in a node, none of 1 < n < 5 divides
  EXPECT_EQ(links.levels[1].size(), 1U);
  links = topology.linksOf(mesh({16}, {"pinned"}));
  EXPECT_EQ(links.levels[0].size(), 1U);
}

Traffic traffic(int64_t wireBytes) {
  Traffic result;
  result.wireBytes = wireBytes;
  result.count = 1;
  return result;
}

TEST(Topology, ChoosesTheFastestAlgorithm) {
  TopologyError error;
  Topology topology = *parseTopology(kTwoNodes, error);
  Mesh line = mesh({16}, {"d"});
  AxisList group{AxisRef::full(line, 0)};
  int64_t buffer = 160000000, wire = buffer * 2 * 15 / 16;
  // Large messages: within the nodes at the fast rate, an eighth between them at the slow one.
  Timing large =
      topology.linksOf(line).timing(line, group, CollectiveKind::all_reduce, traffic(wire));
  EXPECT_EQ(large.algorithm, Algorithm::hierarchical);
  EXPECT_NEAR(large.seconds,
              5e-6 + 6 * 2e-6 + 2 * 5e-6 + 2.0 * buffer * 7 / 8 / 400e9 +
                  2.0 * buffer / 8 * 1 / 2 / 50e9,
              1e-12);
  EXPECT_LT(large.seconds, wire / 50e9);
  // On links of one class, doubling; if the library lacks it, ring or, for few bytes, tree.
  Mesh node = mesh({8}, {"d"});
  AxisList all{AxisRef::full(node, 0)};
  LinkModel links = topology.linksOf(node);
  Timing flat = links.timing(node, all, CollectiveKind::all_reduce, traffic(1400));
  EXPECT_EQ(flat.algorithm, Algorithm::doubling);
  EXPECT_DOUBLE_EQ(flat.seconds, 7 * 2e-6 + 1400 / 400e9);
  links.algorithms = {Algorithm::ring, Algorithm::tree};
  EXPECT_EQ(links.timing(node, all, CollectiveKind::all_reduce, traffic(1400)).algorithm,
            Algorithm::tree);
  EXPECT_EQ(links.timing(node, all, CollectiveKind::all_gather, traffic(1 << 30)).algorithm,
            Algorithm::ring);
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::all_gather, traffic(1 << 30)),
                   8 * 2e-6 + (1 << 30) / 400e9);
  EXPECT_EQ(links.timing(node, all, CollectiveKind::permute, traffic(1 << 20)).algorithm,
            Algorithm::direct);
}

TEST(Topology, InSharedMemoryTheLargerSideCounts) {
  Mesh node = mesh({2, 4}, {"x", "y"});
  LinkModel links;
  links.axes = {{1e-6, 2e9}, {1e-6, 2e9}};
  links.algorithms = {Algorithm::shared_memory};
  AxisList pair{AxisRef::full(node, 0)}, all{AxisRef::full(node, 0), AxisRef::full(node, 1)};
  const int64_t buffer = 8000000;
  double expected = 1e-6 + buffer / 2e9;
  auto seconds = [&](const AxisList &group, CollectiveKind kind, int64_t wire) {
    Timing timing = links.timing(node, group, kind, traffic(wire));
    EXPECT_EQ(timing.algorithm, Algorithm::shared_memory);
    return timing.seconds;
  };
  EXPECT_NEAR(seconds(all, CollectiveKind::all_reduce, buffer / 8 * 14), expected, 1e-12);
  EXPECT_NEAR(seconds(pair, CollectiveKind::all_reduce, buffer), expected, 1e-12);
  EXPECT_NEAR(seconds(all, CollectiveKind::all_gather, buffer / 8 * 7), expected, 1e-12);
  EXPECT_NEAR(seconds(pair, CollectiveKind::reduce_scatter, buffer / 2), expected, 1e-12);
  EXPECT_NEAR(seconds(all, CollectiveKind::exchange, buffer), expected, 1e-12);
  // A library of messages never has it.
  links.algorithms = {};
  EXPECT_EQ(links.timing(node, all, CollectiveKind::all_gather, traffic(buffer)).algorithm,
            Algorithm::doubling);
}

TEST(Topology, InSharedMemoryCopiesAndSumsCount) {
  Mesh node = mesh({8}, {"d"});
  LinkModel links;
  links.axes = {{1e-6, 2e9, CopyRates{4e9, 1e9, 2e9, 5e8}}};
  links.algorithms = {Algorithm::shared_memory};
  AxisList all{AxisRef::full(node, 0)};
  Traffic sent = traffic(1 << 20);
  sent.written = {8000000, 0};
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::all_gather, sent), 1e-6 + 8e6 / 4e9);
  sent.written.strided = 2000000;
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::all_gather, sent),
                   1e-6 + 6e6 / 4e9 + 2e6 / 1e9);
  sent.added = {8000000, 8000000};
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::all_reduce, sent),
                   1e-6 + 6e6 / 4e9 + 2e6 / 1e9 + 8e6 / 5e8);
  // Local moves have no latency.
  Traffic local;
  local.written = {8000000, 0};
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::slice, local), 8e6 / 4e9);
  // Without rates of copies it is free, and the larger side counts; a library of messages ignores
  // the rates, too.
  links.axes[0].copies.reset();
  EXPECT_EQ(links.seconds(node, all, CollectiveKind::slice, local), 0);
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::exchange, sent),
                   1e-6 + (1 << 20) / 2e9);
  links.axes[0].copies = CopyRates{4e9, 1e9, 2e9, 5e8};
  links.algorithms = {Algorithm::ring};
  EXPECT_EQ(links.seconds(node, all, CollectiveKind::slice, local), 0);
  EXPECT_DOUBLE_EQ(links.seconds(node, all, CollectiveKind::all_gather, sent),
                   8 * 1e-6 + (1 << 20) / 2e9);
}

TEST(Topology, CopyRatesRequireSharedMemory) {
  auto errorOf = [](const std::string &copies, const std::string &algorithm) {
    std::string text = kTwoNodes;
    text.insert(text.rfind('}'), ", \"algorithms\": [\"" + algorithm + "\"]");
    const std::string rate = "\"rate\": 50e9";
    text.insert(text.find(rate) + rate.size(), ",\n \"copies\": " + copies);
    return refusal(text);
  };
  const std::string all = R"({"copy": 4, "strided_copy": 1, "add": 2, "strided_add": 1})";
  EXPECT_EQ(errorOf(all, "shared_memory"), "");
  EXPECT_EQ(
      errorOf(all, "ring"),
      "line 6: field 'links[1].copies' applies only if 'algorithms' has shared_memory; add it "
      "there, or remove this field");
  EXPECT_EQ(errorOf("3", "shared_memory"),
            "line 6: field 'links[1].copies' must be an object of rates");
  EXPECT_EQ(
      errorOf(R"({"copy": 4, "strided_copy": 0, "add": 2, "strided_add": 1})", "shared_memory"),
      "line 6: field 'links[1].copies.strided_copy' is 0; it must be a number from 1 to "
      "1e+30");
  EXPECT_EQ(errorOf(R"({"copy": 4, "strided_copy": 1, "strided_add": 1})", "shared_memory"),
            "line 6: field 'links[1].copies.add' is missing; it must be a number from 1 to 1e+30");
  EXPECT_EQ(errorOf(R"({"copy": 4, "strided_copy": 1, "add": 2, "strided_add": 1, "sub": 1})",
                    "shared_memory"),
            "line 6: field 'links[1].copies.sub' is not known here");
  // The list excludes objects within a link, and braces in a name.
  std::string text = kTwoNodes;
  text.replace(text.find("\"fast\""), 6, "\"fa{\\\"st\", \"copies\": " + all);
  text.replace(text.find("50e9"), 4, "-1");
  EXPECT_EQ(refusal(text),
            "line 5: field 'links[1].rate' is -1; it must be a number from 1 to 1e+30");
}

TEST(Topology, AlgorithmsAreNamed) {
  auto errorOf = [](const std::string &algorithms) {
    std::string text = kTwoNodes;
    text.insert(text.rfind('}'), ", \"algorithms\": " + algorithms);
    return refusal(text);
  };
  EXPECT_EQ(errorOf("[\"ring\", \"tree\"]"), "");
  EXPECT_EQ(errorOf("[\"star\"]"), "line 6: field 'algorithms' must name ring, tree, doubling, "
                                   "hierarchical or shared_memory, not \"star\"");
  EXPECT_EQ(errorOf("[\"tree\"]"),
            "line 6: field 'algorithms' must have ring, doubling or shared_memory, which "
            "apply to every collective");
  EXPECT_EQ(errorOf("3"), "line 6: field 'algorithms' must be a list of names");
}

TEST(Topology, HwlocNamesCoresAndMemory) {
  std::string error;
  auto topology = topologyFromHwlocXml(
      "<object type=\"NUMANode\" local_memory=\"1000\"/><object type=\"Core\"/>"
      "<object type=\"Core\"/><object type=\"NUMANode\" local_memory=\"500\"/>"
      "<object type=\"Core\"/><object type=\"Core\"/>",
      error);
  ASSERT_TRUE(topology) << error;
  EXPECT_EQ(topology->device.memory, 1500);
  EXPECT_TRUE(topology->device.sharesCores);
  ASSERT_EQ(topology->links.size(), 2U);
  EXPECT_EQ(topology->links[0].devices, 2);
  EXPECT_EQ(topology->links[1].devices, 4);
  EXPECT_GT(topology->links[0].link.rate, topology->links[1].link.rate);
  EXPECT_FALSE(topologyFromHwlocXml("<topology/>", error));
  EXPECT_EQ(error, "hwloc names no core or no memory of this machine");
}

TEST(Topology, ComputeIsARoofline) {
  TopologyError error;
  Topology topology = *parseTopology(kTwoNodes, error);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "f32", 8), 2.0);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "bf16", 8), 1.0);
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "i64", 8), 2.0); // like f32
  topology.device.sharesCores = true;
  EXPECT_DOUBLE_EQ(topology.computeSeconds(2e12, 1e12, "f32", 8), 16.0);
}

TEST(Topology, TheShippedFileIsTheDefault) {
  TopologyError error;
  std::optional<Topology> shipped =
      readTopology(TESSERA_SOURCE_DIR "/share/topologies/8gpu.json", error);
  ASSERT_TRUE(shipped) << error.message;
  Topology standard;
  EXPECT_EQ(shipped->device.flops, standard.device.flops);
  EXPECT_EQ(shipped->device.memoryRate, standard.device.memoryRate);
  EXPECT_EQ(shipped->device.memory, standard.device.memory);
  ASSERT_EQ(shipped->links.size(), 1u);
  EXPECT_EQ(shipped->links[0].link.alpha, standard.links[0].link.alpha);
  EXPECT_EQ(shipped->links[0].link.rate, standard.links[0].link.rate);
}

TEST(Topology, ErrorsNameTheLine) {
  struct Case {
    std::string from, to, error;
  };
  for (const Case &c : std::vector<Case>{
           {"\"version\": 1", "\"version\": 2", "line 1: field 'version' must be 1"},
           {"\"rate\": 50e9", "\"rate\": -1",
            "line 5: field 'links[1].rate' is -1; it must be a number from 1 to 1e+30"},
           {"\"rate\": 50e9", "\"rate\": 1e999", "line 5: the number 1e999 is too large"},
           {"\"rate\": 50e9", "\"rate\": 1e-300",
            "line 5: field 'links[1].rate' is 1e-300; it must be a number from 1 to 1e+30"},
           {"\"rate\": 50e9", "\"rate\": 50e9, \"rate\": 3", "line 4: field 'rate' is given twice"},
           {"\"devices\": 16", "\"devices\": 1e10",
            "line 5: field 'links[1].devices' is 10000000000.0; it must be a number from 1 to "
            "1e+09"},
           {"\"devices\": 16", "\"devices\": 12",
            "line 5: field 'links[1].devices' must be a multiple of the link before it: 8"},
           {"\"memory\": 8e9", "\"memory\": \"8\"",
            "line 3: field 'device.memory' is \"8\"; it must be a number from 1 to 1e+30"},
           {"\"memory\": 8e9", "\"memroy\": 8e9",
            "line 3: field 'device.memroy' is not known here"},
           {"\"pinned\": \"slow\"", "\"pinned\": \"rope\"",
            "line 6: field 'axes.pinned' names no link of this file: 'rope'"},
           {"\"f32\": 1e12, ", "",
            "line 2: field 'device.flops' must be an object with at least \"f32\""},
           {"\"source\": \"test\",", "\"source\": \"test\"", "line 2: not JSON"},
       }) {
    std::string text = kTwoNodes;
    size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, c.from.size(), c.to);
    EXPECT_EQ(refusal(text), c.error);
  }
  EXPECT_EQ(refusal(""), "line 1: is empty; a topology is a JSON object");
  TopologyError error;
  EXPECT_FALSE(readTopology("/nonexistent/t.json", error));
  EXPECT_EQ(error.message.find("cannot be read: No such file or directory; expected a file, "
                               "'hwloc', or one of share/topologies: 2core.json, "),
            0u)
      << error.message;
}

} // namespace
