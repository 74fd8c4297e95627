//===- HostEngine.cpp - Calls of ranks, over messages ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostEngine.h"

#include "AlgorithmChoice.h"
#include "HostCalls.h"
#include "Routes.h"

#include <algorithm>
#include <list>
#include <set>

namespace tessera::runtime {

using sharding::CollectiveKind;

Expected<std::vector<int64_t>>
HostEngine::makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                              const std::vector<int64_t> &here, Calls calls) {
  std::vector<int64_t> made;
  for (const std::vector<int64_t> &group : groups) {
    auto communicator = std::make_unique<Communicator>();
    communicator->members = group;
    communicator->hosts = hostNumbers(transport, group);
    if (std::find(group.begin(), group.end(), transport.rank()) != group.end())
      for (int64_t *channel : {&communicator->calls, &communicator->exchanges}) {
        auto opened = transport.openChannel(group);
        if (!opened)
          return opened.status();
        *channel = *opened;
      }
    made.push_back(static_cast<int64_t>(communicators.size()));
    communicators.push_back(std::move(communicator));
  }
  return made;
}

/// Waits for its turn on the communicator, then runs its plan.
class HostEngine::CallWork final : public HostWork {
public:
  CallWork(Communicator &communicator, std::unique_ptr<PlanRun> run)
      : communicator(communicator), run(std::move(run)), number(communicator.started++) {}
  Expected<bool> advance() override {
    if (communicator.finished != number)
      return false;
    auto isDone = run->advance();
    if (isDone && *isDone)
      ++communicator.finished;
    return isDone;
  }
  std::vector<int64_t> awaited() const override {
    std::vector<int64_t> ranks;
    for (int64_t place : run->awaited())
      ranks.push_back(communicator.members[place]);
    return ranks;
  }

private:
  Communicator &communicator;
  const std::unique_ptr<PlanRun> run;
  const uint64_t number;
};

class HostEngine::ExchangeWork final : public HostWork {
public:
  explicit ExchangeWork(Transport &transport) : transport(transport) {}
  Status post(const Communicator &communicator, const std::vector<RankMessage> &messages) {
    for (const RankMessage &each : messages) {
      int64_t peer = communicator.members[each.peer];
      auto request = each.send
                         ? transport.send(communicator.exchanges, peer, each.data, each.bytes)
                         : transport.receive(communicator.exchanges, peer, each.data, each.bytes);
      if (!request)
        return request.status();
      requests.emplace_back(*request, peer);
    }
    return {};
  }
  Expected<bool> advance() override {
    for (auto each = requests.begin(); each != requests.end();) {
      auto isDone = transport.test(each->first);
      if (!isDone)
        return isDone.status();
      each = *isDone ? requests.erase(each) : std::next(each);
    }
    return requests.empty();
  }
  std::vector<int64_t> awaited() const override {
    std::set<int64_t> ranks;
    for (auto &[request, peer] : requests)
      ranks.insert(peer);
    return {ranks.begin(), ranks.end()};
  }

private:
  Transport &transport;
  std::list<std::pair<Transport::Request, int64_t>> requests; ///< with their peers
};

Expected<std::shared_ptr<const MessagePlan>>
HostEngine::planOf(const Communicator &communicator, int64_t rank, const RankCall &call) {
  auto ranks = static_cast<int64_t>(communicator.members.size());
  PlanRequest request = requestOf(call, rank, ranks, communicator.hosts);
  std::vector<int64_t> key{static_cast<int64_t>(call.kind), rank, call.count, sizeOf(call.dtype),
                           call.root};
  key.insert(key.end(), communicator.hosts.begin(), communicator.hosts.end());
  auto &known = plans[key];
  if (!known) {
    AlgorithmRequest requested{options.algorithm, false};
    auto applicable = algorithmsFor(request);
    if (requested.forced &&
        std::find(applicable.begin(), applicable.end(), *requested.forced) == applicable.end())
      requested.forced.reset();
    auto algorithm = chooseAlgorithm(request, sizeOf(call.dtype), requested);
    if (!algorithm)
      return algorithm.status();
    auto plan = makePlan(request, *algorithm);
    if (!plan)
      return plan.status();
    known = std::make_shared<const MessagePlan>(std::move(*plan));
  }
  return known;
}

Status HostEngine::call(Issue issue, int64_t index, int64_t rank, const RankCall &call,
                        const std::byte *send, std::byte *receive) {
  Communicator &communicator = *communicators[index];
  auto ranks = static_cast<int64_t>(communicator.members.size());
  std::string where = std::string(issue.what) + ", rank " + std::to_string(rank);
  TESSERA_RETURN_IF_ERROR(checkInPlace(call, rank, ranks, send, receive).in(where));
  auto plan = planOf(communicator, rank, call);
  if (!plan)
    return plan.status().in(where);
  PlanElements elements{sizeOf(call.dtype), reduceFunction(call.dtype, call.reduction), call.scale};
  return streams.issue(
      std::move(issue),
      [this, &communicator, plan = *plan, elements, send,
       receive]() -> Expected<std::unique_ptr<HostWork>> {
        return std::unique_ptr<HostWork>(new CallWork(
            communicator,
            std::make_unique<PlanRun>(transport, communicator.calls, communicator.members, plan,
                                      elements, send, receive, options.segmentBytes)));
      });
}

Status HostEngine::exchange(Issue issue, int64_t index, int64_t rank,
                            std::vector<RankMessage> messages) {
  Communicator &communicator = *communicators[index];
  return streams.issue(std::move(issue),
                       [this, &communicator,
                        messages = std::move(messages)]() -> Expected<std::unique_ptr<HostWork>> {
                         auto work = std::make_unique<ExchangeWork>(transport);
                         if (Status status = work->post(communicator, messages); !status.ok())
                           return status;
                         return std::unique_ptr<HostWork>(std::move(work));
                       });
}

} // namespace tessera::runtime
