//===- PlanRun.cpp - Executing a rank's plan over a transport -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanRun.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

/// Limit on the segments of a message in flight.
static constexpr size_t kWindow = 4;

PlanRun::PlanRun(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
                 std::shared_ptr<const MessagePlan> plan, const PlanElements &elements,
                 const std::byte *input, std::byte *output, int64_t segmentBytes,
                 std::shared_ptr<Scratch> memory)
    : transport(transport), channel(channel), members(members), plan(std::move(plan)),
      elements(elements), input(input), output(output), memory(std::move(memory)),
      scratch(this->memory->atLeast(this->plan->scratch * elements.bytes)),
      segment(std::max<int64_t>(segmentBytes / elements.bytes, 1)) {}

const std::byte *PlanRun::at(const Slice &slice) const {
  const std::byte *base = slice.buffer == Slice::Buffer::input    ? input
                          : slice.buffer == Slice::Buffer::output ? output
                                                                  : scratch;
  return base + slice.begin * elements.bytes;
}

void PlanRun::startRound() {
  const MessagePlan::Round &now = plan->rounds[round];
  for (const MessagePlan::Copy &copy : now.copies)
    if (at(copy.from) != at(copy.to))
      std::memmove(const_cast<std::byte *>(at(copy.to)), at(copy.from),
                   static_cast<size_t>(copy.from.count * elements.bytes));
  messages.clear();
  sums.clear();
  for (const MessagePlan::Message &message : now.messages) {
    int64_t before = static_cast<int64_t>(messages.size()) - 1;
    while (before >= 0 && (messages[before].message->peer != message.peer ||
                           messages[before].message->send != message.send))
      --before;
    messages.push_back({&message, before, 0, 0, {}});
  }
  for (const MessagePlan::Combination &each : now.combinations) {
    Sum sum{&each, {}, 0};
    for (const Slice &source : each.sources)
      for (size_t i = 0; i < messages.size(); ++i)
        if (!messages[i].message->send && messages[i].message->slice == source)
          sum.receives.push_back(i);
    sums.push_back(std::move(sum));
  }
}

Expected<bool> PlanRun::advance() {
  for (; round < plan->rounds.size(); ++round) {
    if (!started)
      startRound();
    started = true;
    TESSERA_RETURN_IF_ERROR(advanceMessages());
    advanceSums();
    for (const Progress &each : messages)
      if (each.done < each.message->slice.count)
        return false;
    started = false;
  }
  return true;
}

Status PlanRun::advanceMessages() {
  for (Progress &each : messages)
    TESSERA_RETURN_IF_ERROR(advanceMessage(each));
  return {};
}

Status PlanRun::advanceMessage(Progress &each) {
  const Slice &slice = each.message->slice;
  bool isTurn =
      each.before < 0 || messages[each.before].posted == messages[each.before].message->slice.count;
  while (true) {
    while (isTurn && each.posted < slice.count && each.requests.size() < kWindow) {
      int64_t count = std::min(segment, slice.count - each.posted);
      auto *data = const_cast<std::byte *>(at(slice)) + each.posted * elements.bytes;
      int64_t peer = members[each.message->peer], bytes = count * elements.bytes;
      auto request = each.message->send ? transport.send(channel, peer, data, bytes)
                                        : transport.receive(channel, peer, data, bytes);
      if (!request)
        return request.status();
      each.requests.emplace_back(*request, count);
      each.posted += count;
    }
    if (each.requests.empty())
      return {};
    auto isDone = transport.test(each.requests.front().first);
    if (!isDone)
      return isDone.status();
    if (!*isDone)
      return {};
    each.done += each.requests.front().second;
    each.requests.pop_front();
  }
}

void PlanRun::advanceSums() {
  for (Sum &sum : sums) {
    int64_t count = sum.combination->target.count;
    int64_t ready = count;
    for (size_t receive : sum.receives)
      ready = std::min(ready, messages[receive].done);
    if (ready > sum.done)
      combine(*sum.combination, sum.done, ready);
    sum.done = std::max(sum.done, ready);
  }
}

void PlanRun::combine(const MessagePlan::Combination &each, int64_t from, int64_t to) {
  std::vector<const std::byte *> data(each.sources.size());
  auto *target = const_cast<std::byte *>(at(each.target));
  for (int64_t done = from; done < to; done += kReduceChunk) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = at(each.sources[i]) + done * elements.bytes;
    elements.reduce(data.data(), static_cast<int64_t>(data.size()),
                    std::min(kReduceChunk, to - done), each.isLast ? elements.scale : 1,
                    target + done * elements.bytes);
  }
}

std::vector<int64_t> PlanRun::awaited() const {
  std::vector<int64_t> peers;
  for (const Progress &each : messages)
    if (each.done < each.message->slice.count)
      peers.push_back(each.message->peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

} // namespace tessera::runtime
