//===- ReshardTables.cpp - Reshard plans beside the peers' -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bench-reshards [DATA_DIR]: prints the tables of plain reshards, planned with
// objective=bytes, beside what JAX 0.10.2 and DTensor 2.13 were measured to do
// for the same pairs (data/*.json).
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/ReshardPlanner.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

using namespace tessera::sharding;
using nlohmann::json;

static Mesh makeMesh(std::vector<int64_t> shape) {
  Mesh mesh{"m", shape, {"x", "y"}, {}};
  for (int64_t id = 0, n = shape[0] * shape[1]; id < n; ++id)
    mesh.processIds.push_back(id);
  return mesh;
}

static json load(const std::string &directory, const char *name) {
  std::ifstream file(directory + "/" + name);
  if (!file) {
    std::fprintf(stderr, "bench-reshards: error: cannot read %s/%s\n", directory.c_str(), name);
    std::exit(1);
  }
  return json::parse(file);
}

/// Most bytes that any device receives over all moves of a plan.
static int64_t maxReceived(const ReshardProblem &problem, const ReshardPlan &plan) {
  std::vector<int64_t> received(problem.mesh.numDevices());
  for (const Move &move : plan.moves) {
    Redistribution pieces = redistribute(problem.mesh, makeLayout(move.source, problem.shape),
                                         problem.mesh, makeLayout(move.target, problem.shape));
    ExchangeTraffic traffic = exchangeTraffic(problem.mesh, problem.mesh, pieces);
    for (size_t d = 0; d < received.size(); ++d)
      received[d] += traffic.received[d] * problem.bytesPerElement;
  }
  return *std::max_element(received.begin(), received.end());
}

/// Wire bytes a device, the mean over devices: an exchange may be uneven.
static double meanWireBytes(const ReshardProblem &problem, const ReshardPlan &plan) {
  double bytes = 0;
  for (const Move &move : plan.moves) {
    Traffic traffic = trafficOf(problem, move);
    if (move.kind == CollectiveKind::exchange || move.kind == CollectiveKind::permute) {
      Redistribution pieces = redistribute(problem.mesh, makeLayout(move.source, problem.shape),
                                           problem.mesh, makeLayout(move.target, problem.shape));
      int64_t received = 0;
      for (int64_t elements : exchangeTraffic(problem.mesh, problem.mesh, pieces).received)
        received += elements;
      bytes += static_cast<double>(received * problem.bytesPerElement) /
               static_cast<double>(problem.mesh.numDevices());
    } else {
      bytes += static_cast<double>(traffic.wireBytes);
    }
  }
  return bytes;
}

struct Count {
  int64_t exchanges = 0, messages = 0;
  void add(const ReshardPlan &plan) {
    messages += plan.traffic.messages;
    for (const Move &move : plan.moves)
      exchanges += move.kind == CollectiveKind::exchange;
  }
};

/// "(('x',), ('y',))": for each dimension the axes that cut it.
static TensorSharding parseCuts(const Mesh &mesh, const std::string &text) {
  TensorSharding sharding = TensorSharding::replicated(2);
  size_t dim = 0;
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == ')' && depth == 1)
      ++dim;
    if (c == 'x' || c == 'y')
      sharding.dims[dim].push_back(AxisRef::full(mesh, c - 'x'));
  }
  return canonical(sharding);
}

/// "S0,P": what each axis does.
static TensorSharding parsePlacements(const Mesh &mesh, const std::string &text) {
  TensorSharding sharding = TensorSharding::replicated(2);
  int64_t axis = 0;
  for (size_t at = 0; at < text.size(); at = text.find(',', at) + 1) {
    if (text[at] == 'S')
      sharding.dims[text[at + 1] - '0'].push_back(AxisRef::full(mesh, axis));
    if (text[at] == 'P')
      sharding.partial.push_back({AxisRef::full(mesh, axis), ReduceKind::sum});
    ++axis;
    if (text.find(',', at) == std::string::npos)
      break;
  }
  return canonical(sharding);
}

static void cutsTable(const std::string &data) {
  Mesh mesh = makeMesh({2, 4});
  int64_t pairs = 0, needing = 0, atBound = 0, collectives = 0;
  double sum = 0, worst = 0, xlaSum = 0, xlaWorst = 0, shardySum = 0, shardyWorst = 0;
  Count count;
  const json table = load(data, "reshard_110_jax.json");
  for (const json &row : table["rows"]) {
    ReshardProblem problem{
        mesh, {1024, 1024}, 4, parseCuts(mesh, row["src"]), parseCuts(mesh, row["dst"])};
    ReshardPlan plan = planReshard(problem, Objective::bytes);
    ++pairs;
    collectives += plan.traffic.count;
    count.add(plan);
    int64_t bound = row["bound"];
    int64_t own = receiveBound(mesh, makeLayout(problem.source, problem.shape), mesh,
                               makeLayout(problem.target, problem.shape)) *
                  4;
    if (own != bound)
      std::printf("bound differs for %s -> %s\n", row["src"].get<std::string>().c_str(),
                  row["dst"].get<std::string>().c_str());
    int64_t received = maxReceived(problem, plan);
    atBound += received == bound;
    if (bound == 0)
      continue;
    ++needing;
    auto ratio = [&](double bytes) { return bytes / static_cast<double>(bound); };
    sum += ratio(static_cast<double>(received));
    worst = std::max(worst, ratio(static_cast<double>(received)));
    xlaSum += ratio(row["wire_bytes"]);
    xlaWorst = std::max(xlaWorst, ratio(row["wire_bytes"]));
    shardySum += ratio(row["shardy_wire"]);
    shardyWorst = std::max(shardyWorst, ratio(row["shardy_wire"]));
  }
  auto n = static_cast<double>(needing);
  std::printf("1024x1024 f32 on 2x4, %lld ordered pairs of cuts, %lld need data: bytes received "
              "over the bound\n",
              static_cast<long long>(pairs), static_cast<long long>(needing));
  std::printf("  XLA      mean %.3f  worst %.2f\n", xlaSum / n, xlaWorst);
  std::printf("  Shardy   mean %.3f  worst %.2f\n", shardySum / n, shardyWorst);
  std::printf(
      "  Tessera  mean %.3f  worst %.2f  at the bound %lld of %lld  (%lld collectives, %lld of "
      "them exchanges, %lld messages)\n\n",
      sum / n, worst, static_cast<long long>(atBound), static_cast<long long>(pairs),
      static_cast<long long>(collectives), static_cast<long long>(count.exchanges),
      static_cast<long long>(count.messages));
}

static void placementsTable(const std::string &data) {
  Mesh mesh = makeMesh({2, 4});
  int64_t pairs = 0, accepted = 0, listed = 0, collectives = 0, greedy = 0, least = 0;
  int64_t greedyCollectives = 0, leastCollectives = 0;
  double bytes = 0, bounds = 0, worst = 0;
  Count count;
  const json table = load(data, "reshard_256_dtensor.json");
  for (const json &row : table["rows"]) {
    ReshardProblem problem{mesh,
                           {1024, 1024},
                           4,
                           parsePlacements(mesh, row["src"]),
                           parsePlacements(mesh, row["dst"])};
    ReshardPlan plan = planReshard(problem, Objective::bytes);
    ++pairs;
    accepted += plan.moves.empty() == (problem.source == problem.target);
    if (row["dtensor"].is_null() || row["src"] == row["dst"])
      continue;
    ++listed;
    double bound = row["bound_bytes"];
    double own = meanWireBytes(problem, plan);
    bytes += own;
    bounds += bound;
    if (bound > 0)
      worst = std::max(worst, own / bound);
    collectives += plan.traffic.count;
    count.add(plan);
    greedy += row["dtensor"]["greedy_bytes"].get<int64_t>();
    least += row["dtensor"]["mincost_bytes"].get<int64_t>();
    greedyCollectives += row["dtensor"]["greedy_collectives"].get<int64_t>();
    leastCollectives += row["dtensor"]["mincost_collectives"].get<int64_t>();
  }
  const double mib = 1 << 20;
  std::printf("the same, {R, S0, S1, P}^2: %lld of %lld pairs planned; mean wire bytes a device "
              "over the %lld that "
              "DTensor accepts (bound %.2f MiB)\n",
              static_cast<long long>(accepted), static_cast<long long>(pairs),
              static_cast<long long>(listed), bounds / mib);
  std::printf("  DTensor           %.2f MiB  %lld collectives\n", static_cast<double>(greedy) / mib,
              static_cast<long long>(greedyCollectives));
  std::printf("  DTensor min-cost  %.2f MiB  %lld collectives\n", static_cast<double>(least) / mib,
              static_cast<long long>(leastCollectives));
  std::printf("  Tessera           %.2f MiB  %lld collectives  worst %.2f x  (%lld exchanges, %lld "
              "messages)\n\n",
              bytes / mib, static_cast<long long>(collectives), worst,
              static_cast<long long>(count.exchanges), static_cast<long long>(count.messages));
}

static void paddleTable() {
  Mesh mesh = makeMesh({2, 2});
  const char *names[] = {"R", "S0", "S1", "P"};
  int64_t pairs = 0, elements = 0, collectives = 0;
  for (auto *a : names)
    for (auto *b : names)
      for (auto *c : names)
        for (auto *d : names) {
          std::string source = std::string(a) + "," + b, target = std::string(c) + "," + d;
          auto twice = [](const std::string &text) { return text == "S0,S0" || text == "S1,S1"; };
          if (twice(source) || twice(target))
            continue;
          ++pairs;
          ReshardProblem problem{
              mesh, {8, 8}, 4, parsePlacements(mesh, source), parsePlacements(mesh, target)};
          ReshardPlan plan = planReshard(problem, Objective::bytes);
          elements += plan.traffic.wireBytes / 4;
          collectives += plan.traffic.count;
        }
  std::printf("8x8 on 2x2, %lld pairs with no dimension cut twice: elements a device\n",
              static_cast<long long>(pairs));
  std::printf("  Paddle   7104  212 collectives\n  least by single-axis moves 5312\n");
  std::printf("  Tessera  %lld  %lld collectives\n", static_cast<long long>(elements),
              static_cast<long long>(collectives));
}

int main(int argc, char **argv) {
  std::string data = argc > 1 ? argv[1] : TESSERA_BENCH_DATA;
  cutsTable(data);
  placementsTable(data);
  paddleTable();
  return 0;
}
