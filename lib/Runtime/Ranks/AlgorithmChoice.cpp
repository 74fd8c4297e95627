//===- AlgorithmChoice.cpp - Choice of a collective's algorithm -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlgorithmChoice.h"

#include <algorithm>
#include <cassert>

namespace tessera::runtime {

using sharding::CollectiveKind;

static int64_t hostOf(const PlanRequest &request, int64_t rank) {
  return request.hosts.empty() ? 0 : request.hosts[rank];
}

/// The time of a round: of the busiest rank, or of the host with the most to send or receive.
static double secondsOfRound(const PlanRequest &request, const std::vector<MessagePlan> &plans,
                             size_t round, double elementBytes, const MessageCosts &costs) {
  int64_t hosts = 1;
  for (int64_t host : request.hosts)
    hosts = std::max(hosts, host + 1);
  std::vector<double> out(static_cast<size_t>(hosts)), in(out);
  double longest = 0, latency = 0;
  for (int64_t rank = 0; rank < request.ranks; ++rank) {
    const MessagePlan::Round &now = plans[rank].rounds[round];
    double sends = 0, receives = 0, combines = 0;
    for (const MessagePlan::Message &message : now.messages) {
      double bytes = static_cast<double>(message.slice.count) * elementBytes;
      bool isLocal = hostOf(request, rank) == hostOf(request, message.peer);
      latency = std::max(latency, isLocal ? costs.localLatency : costs.remoteLatency);
      (message.send ? sends : receives) +=
          costs.perMessage + (isLocal ? bytes / costs.localBandwidth : 0);
      if (!isLocal)
        (message.send ? out : in)[hostOf(request, rank)] += bytes / costs.remoteBandwidth;
    }
    for (const MessagePlan::Combination &each : now.combinations)
      combines += static_cast<double>(each.target.count) * elementBytes *
                  static_cast<double>(each.sources.size()) / costs.combineBandwidth;
    longest = std::max(longest, std::max(sends, receives) + combines);
  }
  for (const std::vector<double> &link : {out, in})
    longest = std::max(longest, *std::max_element(link.begin(), link.end()));
  return longest + latency;
}

double modelledSeconds(const PlanRequest &request, Algorithm algorithm, int64_t elementBytes,
                       const MessageCosts &costs) {
  std::vector<MessagePlan> plans;
  for (int64_t rank = 0; rank < request.ranks; ++rank) {
    PlanRequest ofRank = request;
    ofRank.rank = rank;
    auto plan = makePlan(ofRank, algorithm);
    assert(plan && "the algorithm applies");
    plans.push_back(std::move(*plan));
  }
  double seconds = 0;
  for (size_t round = 0; round < plans[0].rounds.size(); ++round)
    seconds += secondsOfRound(request, plans, round, static_cast<double>(elementBytes), costs);
  return seconds;
}

Expected<Algorithm> chooseAlgorithm(const PlanRequest &request, int64_t elementBytes,
                                    const AlgorithmRequest &requested, const MessageCosts &costs) {
  if (requested.forced) {
    auto plan = makePlan(request, *requested.forced);
    return plan ? Expected<Algorithm>(*requested.forced) : plan.status();
  }
  if (request.ranks == 1 || request.kind == CollectiveKind::all_to_all)
    return Algorithm::direct;
  Algorithm best = Algorithm::direct;
  double least = modelledSeconds(request, best, elementBytes, costs);
  for (Algorithm each : algorithmsFor(request)) {
    if (!requested.mayReorder && !keepsOrder(each, request.kind))
      continue;
    double seconds = modelledSeconds(request, each, elementBytes, costs);
    if (seconds < least)
      best = each, least = seconds;
  }
  return best;
}

std::vector<int64_t> hostNumbers(const Transport &transport, const std::vector<int64_t> &members) {
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  for (int64_t member : members) {
    auto found = std::find(names.begin(), names.end(), transport.hostOf(member));
    numbers.push_back(found - names.begin());
    if (found == names.end())
      names.push_back(transport.hostOf(member));
  }
  return numbers;
}

} // namespace tessera::runtime
