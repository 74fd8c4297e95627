//===- ReshardTables.cpp - Reshard plans beside the peers' ----------------===//
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
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>

using namespace tessera::sharding;
using nlohmann::json;

static Mesh makeMesh(std::vector<int64_t> shape) {
  return {"m", shape, {"x", "y"}, DeviceIds::range(shape[0] * shape[1])};
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

/// Mean wire bytes per device: an exchange may be uneven.
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

/// Parses "S0,P": a placement per axis.
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

/// The sharding of a matrix on the mesh x = 2, y = 4: the axes of each dimension in order, and the
/// partial axes. Peers split axes, so y is p, its major half, and q.
struct State {
  std::string dims[2];
  std::string partial;
  auto operator<=>(const State &) const = default;
};

static State stateOf(const TensorSharding &sharding) {
  State state;
  for (int d = 0; d < 2; ++d)
    for (const AxisRef &axis : sharding.dims[d])
      state.dims[d] += axis.axis == 0 ? "x" : "pq";
  for (const PartialAxis &part : sharding.partial)
    state.partial += part.axis.axis == 0 ? "x" : "pq";
  std::sort(state.partial.begin(), state.partial.end());
  return state;
}

static int64_t sizeOfAxes(const std::string &axes) {
  return int64_t(1) << axes.size();
}

/// The least time, by Tessera's model, of a chain with the peer's kinds and bytes. The data does
/// not name the axes of each step, so all are tried; steps without communication may be anywhere.
class PeerChain {
public:
  PeerChain(const json &chain, double bytes, State target) : bytes(bytes), target(target) {
    for (const json &step : chain)
      if (auto name = step.get<std::string>(); name != "all_slice" && name != "slice")
        steps.push_back(name);
  }

  /// Infinite when no chain fits.
  double seconds(const State &source) {
    visit(source, 0, 0, 0, 0);
    return best;
  }

private:
  static constexpr double kLocal = 1024.0 * 1024 * 4;

  static double localBytes(const State &state) {
    return kLocal / static_cast<double>(sizeOfAxes(state.dims[0]) * sizeOfAxes(state.dims[1]));
  }

  /// `slack`: what permutations send at most; a device that stays where it is sends nothing.
  void visit(const State &state, size_t step, double sent, double slack, double took) {
    if (took >= best || sent > bytes * 1.001 + 1)
      return;
    if (step == steps.size() && state == target && sent + slack > bytes * 0.999 - 1)
      best = took;
    for (char axis :
         {'p', 'q', 'x'}) // local: a free axis cuts a dimension, or what is whole is partial
      if ((state.dims[0] + state.dims[1] + state.partial).find(axis) == std::string::npos) {
        for (int d = 0; d < 2; ++d) {
          State next = state;
          next.dims[d] += axis;
          visit(next, step, sent, slack, took);
        }
        State next = state;
        next.partial += axis;
        std::sort(next.partial.begin(), next.partial.end());
        visit(next, step, sent, slack, took);
      }
    if (step == steps.size())
      return;
    const std::string &kind = steps[step];
    auto take = [&](const State &next, CollectiveKind as, double base, double factor, int64_t n) {
      auto share = static_cast<double>(n - 1) / static_cast<double>(n);
      bool isPermute = as == CollectiveKind::permute;
      Traffic one;
      one.messages = 1;
      double wire = isPermute ? base : base * factor * share; // of the busiest device
      visit(next, step + 1, sent + (isPermute ? 0 : wire), slack + (isPermute ? wire : 0),
            took + static_cast<double>(1 + roundsOf(as, n, one)) * Link().alpha +
                wire / Link().rate);
    };
    if (kind == "all_gather") {
      for (size_t a = 0; a <= state.dims[0].size(); ++a)
        for (size_t b = 0; b <= state.dims[1].size(); ++b) {
          State next = state;
          next.dims[0].resize(a);
          next.dims[1].resize(b);
          int64_t n = sizeOfAxes(state.dims[0].substr(a)) * sizeOfAxes(state.dims[1].substr(b));
          if (n > 1)
            take(next, CollectiveKind::all_gather, localBytes(next), 1, n);
        }
    } else if (kind == "all_to_all") {
      for (int from = 0; from < 2; ++from)
        for (size_t keep = 0; keep < state.dims[from].size(); ++keep) {
          State next = state;
          std::string tail = state.dims[from].substr(keep);
          next.dims[from].resize(keep);
          next.dims[1 - from] += tail;
          take(next, CollectiveKind::all_to_all, localBytes(state), 1, sizeOfAxes(tail));
        }
    } else if (kind == "all_reduce" || kind == "reduce_scatter") {
      for (unsigned bits = 1; bits < 1u << state.partial.size(); ++bits) {
        std::string axes, rest;
        for (size_t at = 0; at < state.partial.size(); ++at)
          (bits >> at & 1 ? axes : rest) += state.partial[at];
        State next{{state.dims[0], state.dims[1]}, rest};
        if (kind == "all_reduce")
          take(next, CollectiveKind::all_reduce, localBytes(state), 2, sizeOfAxes(axes));
        for (int d = 0; kind == "reduce_scatter" && d < 2; ++d) {
          State scattered = next;
          scattered.dims[d] += axes;
          take(scattered, CollectiveKind::reduce_scatter, localBytes(state), 1, sizeOfAxes(axes));
        }
      }
    } else { // a permutation of the devices: as many parts of each dimension as before
      size_t first = state.dims[0].size(), cut = first + state.dims[1].size();
      std::string axes = "pqx";
      do {
        State next{{axes.substr(0, first), axes.substr(first, cut - first)}, state.partial};
        if (next != state && axes.substr(0, cut).find_first_of(state.partial) == std::string::npos)
          take(next, CollectiveKind::permute, localBytes(state), 1, 1);
      } while (std::next_permutation(axes.begin(), axes.end()));
    }
  }

  std::vector<std::string> steps;
  double bytes;
  State target;
  double best = std::numeric_limits<double>::infinity();
};

/// objective=time: pairs where the plan takes no longer than the peers' chains.
static void timesTable(const std::string &data) {
  Mesh mesh = makeMesh({2, 4});
  auto compare = [&](const char *peer, const char *file, auto parse, auto chainOf) {
    int64_t pairs = 0, within = 0, unknown = 0;
    double own = 0, theirs = 0;
    const json table = load(data, file);
    for (const json &row : table["rows"]) {
      std::optional<std::pair<json, double>> chain = chainOf(row);
      if (!chain)
        continue;
      ReshardProblem problem{
          mesh, {1024, 1024}, 4, parse(mesh, row["src"]), parse(mesh, row["dst"])};
      double seconds = planReshard(problem, Objective::time).seconds;
      double peerTakes = PeerChain(chain->first, chain->second, stateOf(problem.target))
                             .seconds(stateOf(problem.source));
      if (!std::isfinite(peerTakes)) {
        ++unknown;
        std::printf("  no chain fits the peer's bytes: %s -> %s\n",
                    row["src"].get<std::string>().c_str(), row["dst"].get<std::string>().c_str());
        continue;
      }
      ++pairs;
      within += seconds <= peerTakes * (1 + 1e-9);
      if (seconds > peerTakes * (1 + 1e-9))
        std::printf("  longer: %s -> %s  %.2f us, %s %.2f us\n",
                    row["src"].get<std::string>().c_str(), row["dst"].get<std::string>().c_str(),
                    seconds * 1e6, peer, peerTakes * 1e6);
      own += seconds;
      theirs += peerTakes;
    }
    std::printf(
        "  %-8s %lld of %lld pairs no longer (%lld not priced); in all %.1f us, the peer %.1f us\n",
        peer, static_cast<long long>(within), static_cast<long long>(pairs),
        static_cast<long long>(unknown), own * 1e6, theirs * 1e6);
  };
  std::printf("objective=time: modelled on links of 450 GB/s and 2 us, peers' chains by the same "
              "model\n");
  compare("Shardy", "reshard_110_jax.json", parseCuts, [](const json &row) {
    return std::make_optional(std::make_pair(row["shardy_seq"], row["shardy_wire"].get<double>()));
  });
  compare("DTensor", "reshard_256_dtensor.json", parsePlacements,
          [](const json &row) -> std::optional<std::pair<json, double>> {
            if (row["dtensor"].is_null())
              return std::nullopt;
            return std::make_pair(row["dtensor"]["greedy_chain"],
                                  row["dtensor"]["greedy_bytes"].get<double>());
          });
}

int main(int argc, char **argv) {
  std::string data = argc > 1 ? argv[1] : TESSERA_BENCH_DATA;
  cutsTable(data);
  placementsTable(data);
  paddleTable();
  std::printf("\n");
  timesTable(data);
  return 0;
}
