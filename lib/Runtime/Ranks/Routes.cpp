//===- Routes.cpp - Bytes sent between processes --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Routes.h"

#include "../Execution/Code.h"
#include "AlgorithmChoice.h"
#include "RankPlan.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera::runtime {

using sharding::CollectiveKind;

PlanRequest requestOf(const RankCall &call, int64_t rank, int64_t ranks,
                      std::vector<int64_t> hosts) {
  bool perRank =
      call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::reduce_scatter;
  return {call.kind,
          rank,
          ranks,
          call.root,
          std::vector<int64_t>(static_cast<size_t>(perRank ? ranks : 1), call.count),
          {},
          std::move(hosts)};
}

std::vector<int64_t> bytesSentTo(const MessagePlan &plan, int64_t ranks, int64_t elementBytes) {
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  for (const MessagePlan::Round &round : plan.rounds)
    for (const MessagePlan::Message &message : round.messages)
      if (message.send)
        bytes[message.peer] += message.slice.count * elementBytes;
  return bytes;
}

namespace {
using Choices = std::map<std::vector<int64_t>, Algorithm>;

/// Adds the messages of one process in one collective.
struct Tally {
  CollectiveRoutes &routes;
  const std::vector<int64_t> &group, &hosts; ///< the communicator; hosts of its members
  const int64_t rank;
  const bool countsBytes;
  Choices &choices;

  /// The same for all ranks of a call, and for calls of equal size.
  Expected<Algorithm> algorithmOf(const RankCall &call, const PlanRequest &request) {
    std::vector<int64_t> key{static_cast<int64_t>(call.kind), sizeOf(call.dtype), call.count,
                             call.root, request.ranks};
    key.insert(key.end(), hosts.begin(), hosts.end());
    if (auto known = choices.find(key); known != choices.end())
      return known->second;
    auto made = chooseAlgorithm(request, sizeOf(call.dtype), {});
    if (made)
      choices.emplace(key, *made);
    return made;
  }
  void name(std::string_view algorithm) {
    if (std::find(routes.algorithms.begin(), routes.algorithms.end(), algorithm) ==
        routes.algorithms.end())
      routes.algorithms.emplace_back(algorithm);
  }
  void send(int64_t peer, int64_t bytes) {
    if (peer != rank && bytes > 0)
      routes.bytes[{group[rank], group[peer]}] += bytes;
  }
  Status add(const RankAction &action) {
    if (action.kind == RankAction::Kind::exchange) {
      name("exchange");
      for (const RankAction::Message &each : action.messages)
        if (each.send)
          send(each.peer, each.bytes);
      return {};
    }
    if (action.kind != RankAction::Kind::call)
      return {};
    auto ranks = static_cast<int64_t>(group.size());
    PlanRequest request = requestOf(action.call, rank, ranks, hosts);
    auto algorithm = algorithmOf(action.call, request);
    if (!algorithm)
      return algorithm.status();
    name(toString(*algorithm));
    if (!countsBytes)
      return {};
    auto plan = makePlan(request, *algorithm);
    if (!plan)
      return plan.status();
    std::vector<int64_t> bytes = bytesSentTo(*plan, ranks, sizeOf(action.call.dtype));
    for (int64_t peer = 0; peer < ranks; ++peer)
      send(peer, bytes[peer]);
    return {};
  }
};
} // namespace

/// All that the routes of a collective depend on, but for the hosts: those of a model's layers are
/// often the same.
using Shapes =
    std::vector<std::tuple<DType, sharding::Layout, sharding::Layout, std::optional<double>>>;
using Signature = std::tuple<int64_t, CollectiveKind, int64_t, std::optional<int64_t>,
                             sharding::AxisList, std::optional<sharding::ReduceKind>, Shapes>;

static Signature signatureOf(const Part &part, const CollectiveStep &step) {
  Shapes shapes;
  for (const Operand &each : step.operands)
    shapes.emplace_back(each.dtype, each.source, each.target, each.fill);
  return {part.mesh, step.kind,      step.mesh,        step.targetMesh,
          step.axes, step.reduction, std::move(shapes)};
}

static Status tally(const Program &program, const Part &part, const CollectiveStep &step,
                    const std::vector<int64_t> &hosts, bool countsBytes, Choices &choices,
                    CollectiveRoutes &routes) {
  RankPlan plan = planRanks(program, part, step, [](DType, sharding::ReduceKind) { return true; });
  const sharding::DeviceIds &ids = program.meshes[part.mesh].processIds;
  for (size_t place = 0; place < ids.size(); ++place) {
    if (plan.groupOf[place] < 0)
      continue;
    const std::vector<int64_t> &group = plan.groups[plan.groupOf[place]];
    std::vector<int64_t> of;
    for (int64_t id : group)
      of.push_back(hosts.empty() ? 0 : hosts[id]);
    Tally tally{
        routes,      group,
        of,          std::lower_bound(group.begin(), group.end(), ids[place]) - group.begin(),
        countsBytes, choices};
    for (const RankAction &action : plan.actions[place])
      TESSERA_RETURN_IF_ERROR(tally.add(action));
  }
  return {};
}

static Expected<std::vector<CollectiveRoutes>>
tally(const Program &program, const std::vector<int64_t> &hosts, bool countsBytes) {
  std::vector<CollectiveRoutes> all;
  Choices choices;
  std::map<Signature, size_t> first; // of the same signature
  for (const Part &part : program.parts)
    for (const Step *step : flatten(part).collectives) {
      const auto &collective = std::get<CollectiveStep>(step->action);
      auto [known, isNew] = first.emplace(signatureOf(part, collective), all.size());
      CollectiveRoutes routes = isNew ? CollectiveRoutes{} : all[known->second];
      routes.id = collective.id;
      routes.kind = toString(collective.kind);
      routes.loc = step->loc;
      if (isNew)
        TESSERA_RETURN_IF_ERROR(
            tally(program, part, collective, hosts, countsBytes, choices, routes));
      all.push_back(std::move(routes));
    }
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.id < b.id; });
  return all;
}

Expected<std::vector<CollectiveRoutes>> routesOf(const Program &program,
                                                 const std::vector<int64_t> &hosts) {
  return tally(program, hosts, true);
}

Expected<std::vector<CollectiveRoutes>> algorithmsOf(const Program &program,
                                                     const std::vector<int64_t> &hosts) {
  return tally(program, hosts, false);
}

} // namespace tessera::runtime
