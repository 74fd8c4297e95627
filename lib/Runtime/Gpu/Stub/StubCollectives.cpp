//===- StubCollectives.cpp - Match and perform calls of ranks -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StubCollectives.h"

#include "StubStreams.h"

#include <cstring>

namespace tessera::runtime::gpu {

using sharding::CollectiveKind;

Expected<std::vector<int64_t>>
StubCollectives::makeCommunicators(const std::vector<std::vector<int64_t>> &groups,
                                   const std::vector<int64_t> &, Calls calls) {
  std::vector<int64_t> made;
  for (const std::vector<int64_t> &devices : groups) {
    made.push_back(static_cast<int64_t>(communicators.size()));
    communicators.push_back(
        {devices, calls == Calls::ordered, {}, 0, std::vector<int64_t>(devices.size()), {}});
    for (int64_t device : devices)
      launchOrder.try_emplace(device, std::make_unique<std::byte>());
  }
  return made;
}

Status StubCollectives::call(Issue issue, int64_t communicator, int64_t rank, const RankCall &call,
                             const std::byte *send, std::byte *receive) {
  const Communicator &group = communicators[communicator];
  auto ranks = static_cast<int64_t>(group.devices.size());
  Accessor accessor{0, 0, issue.step, issue.what, group.devices[rank]};
  TESSERA_RETURN_IF_ERROR(checkInPlace(call, rank, ranks, send, receive).in(describe(accessor)));
  auto [sent, received] = callBytes(call, rank, ranks);
  issue.touches = {{launchOrder.at(group.devices[rank]).get(), 1, true}, {send, sent, false}};
  if (received > 0)
    issue.touches.push_back({receive, received, true});
  StubMeeting meeting{communicator, rank, false, call, send, receive, {}};
  return driver.rendezvous(std::move(issue), std::move(meeting));
}

Status StubCollectives::exchange(Issue issue, int64_t communicator, int64_t rank,
                                 std::vector<RankMessage> messages) {
  const Communicator &group = communicators[communicator];
  if (group.ordered)
    issue.touches = {{launchOrder.at(group.devices[rank]).get(), 1, true}};
  for (const RankMessage &message : messages)
    issue.touches.push_back({message.data, message.bytes, !message.send});
  StubMeeting meeting{communicator, rank, true, {}, nullptr, nullptr, std::move(messages)};
  return driver.rendezvous(std::move(issue), std::move(meeting));
}

Status StubCollectives::arrive(const StubNodePtr &node, std::vector<StubNodePtr> &finished) {
  Communicator &communicator = communicators[node->work->meeting->communicator];
  return node->work->meeting->isExchange ? arriveAtExchange(communicator, node, finished)
                                         : arriveAtCall(communicator, node, finished);
}

static std::string callText(const StubNodePtr &node) {
  const RankCall &call = node->work->meeting->call;
  std::string text = std::string(toString(call.kind)) + " of " + std::to_string(call.count) + " " +
                     std::string(toString(call.dtype));
  bool reduces = call.kind != CollectiveKind::all_gather && call.kind != CollectiveKind::broadcast;
  if (reduces)
    text += " by " + std::string(toString(call.reduction));
  return text + " (" + describe(node->accessor) + ")";
}

/// Whether two ranks make the same call.
static bool agree(const StubNodePtr &a, const StubNodePtr &b) {
  const RankCall &x = a->work->meeting->call, &y = b->work->meeting->call;
  return x.kind == y.kind && x.dtype == y.dtype && x.reduction == y.reduction &&
         x.scale == y.scale && x.count == y.count && x.root == y.root &&
         a->work->step == b->work->step;
}

Status StubCollectives::arriveAtCall(Communicator &communicator, const StubNodePtr &node,
                                     std::vector<StubNodePtr> &finished) {
  int64_t rank = node->work->meeting->rank;
  int64_t index = communicator.reached[rank]++ - communicator.first;
  if (index >= static_cast<int64_t>(communicator.open.size()))
    communicator.open.resize(static_cast<size_t>(index) + 1);
  Open &open = communicator.open[index];
  open.ranks.resize(communicator.devices.size());
  for (const StubNodePtr &other : open.ranks)
    if (other && !agree(other, node))
      return Status::error("the ranks of a communicator call different collectives: " +
                           callText(other) + ", but " + callText(node));
  open.ranks[rank] = node;
  if (++open.arrived < static_cast<int64_t>(communicator.devices.size()))
    return {};
  std::vector<const std::byte *> send;
  std::vector<std::byte *> receive;
  for (const StubNodePtr &each : open.ranks) {
    send.push_back(each->work->meeting->send);
    receive.push_back(each->work->meeting->receive);
  }
  performCall(node->work->meeting->call, send, receive);
  finished = std::move(open.ranks);
  communicator.open.pop_front(); // ranks call in order, so it is the first
  ++communicator.first;
  return {};
}

/// Whether a message of one step matches a receive of another: the same step, or both sides of a
/// transfer.
static bool belongTogether(const Step *sends, const Step *receives) {
  if (sends == receives)
    return true;
  auto *from = sends ? std::get_if<TransferStep>(&sends->action) : nullptr;
  auto *to = receives ? std::get_if<TransferStep>(&receives->action) : nullptr;
  return from && to && from->id == to->id;
}

Status StubCollectives::arriveAtExchange(Communicator &communicator, const StubNodePtr &node,
                                         std::vector<StubNodePtr> &finished) {
  const StubMeeting &meeting = *node->work->meeting;
  node->openMessages = static_cast<int64_t>(meeting.messages.size());
  auto closeOne = [&](const StubNodePtr &each) {
    if (--each->openMessages == 0)
      finished.push_back(each);
  };
  for (const RankMessage &copy : meeting.messages) {
    auto pair = copy.send ? std::pair(meeting.rank, copy.peer) : std::pair(copy.peer, meeting.rank);
    std::deque<Message> &queue = communicator.waiting[pair];
    if (queue.empty() || queue.front().copy.send == copy.send) {
      queue.push_back({node, copy});
      continue;
    }
    Message other = std::move(queue.front());
    queue.pop_front();
    const Message mine{node, copy};
    const Message &from = copy.send ? mine : other, &to = copy.send ? other : mine;
    if (from.copy.bytes != to.copy.bytes ||
        !belongTogether(from.node->work->step, to.node->work->step))
      return Status::error("a message of " + std::to_string(from.copy.bytes) + " bytes (" +
                           describe(from.node->accessor) + ") meets a receive of " +
                           std::to_string(to.copy.bytes) + " bytes (" +
                           describe(to.node->accessor) + ")");
    std::memcpy(to.copy.data, from.copy.data, static_cast<size_t>(from.copy.bytes));
    closeOne(other.node);
    closeOne(node);
  }
  return {};
}

} // namespace tessera::runtime::gpu
