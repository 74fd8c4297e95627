//===- Group.cpp - Ranks that call collectives together -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Group.h"

#include "../Ranks/Routes.h"

#include <algorithm>
#include <numeric>

namespace tessera::runtime {

using sharding::CollectiveKind;

static std::string listText(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

static bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::reduce_scatter;
}
static bool hasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}
static bool isWhole(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::broadcast;
}

Group::Group(std::shared_ptr<Job> job, std::vector<int64_t> members, double timeout)
    : owner(std::move(job)), ranks(std::move(members)), timeout(timeout) {}

Status Group::open(Transport &transport) {
  hosts = hostNumbers(transport, ranks);
  self = std::find(ranks.begin(), ranks.end(), transport.rank()) - ranks.begin();
  auto calls = transport.openChannel(ranks);
  if (!calls)
    return calls.status();
  auto messages = transport.openChannel(ranks);
  if (!messages)
    return messages.status();
  channel = *calls;
  queue = owner->makeQueue();
  name = "group " + listText(ranks);
  if (int64_t number = owner->countGroup(ranks))
    name += " " + std::to_string(number);
  mailbox = std::make_shared<Mailbox>(*owner, *messages, ranks, name);
  owner->keep(mailbox);
  return {};
}

Expected<std::unique_ptr<Group>> Group::ofJob(std::shared_ptr<Job> job, double timeout) {
  std::vector<int64_t> all(static_cast<size_t>(job->transport().size()));
  std::iota(all.begin(), all.end(), 0);
  TESSERA_RETURN_IF_ERROR(job->watch(timeout));
  std::unique_ptr<Group> group(new Group(std::move(job), all, timeout));
  TESSERA_RETURN_IF_ERROR(
      group->owner->withTransport([&](Transport &transport) { return group->open(transport); }));
  return group;
}

Expected<std::unique_ptr<Group>> Group::make(const std::vector<int64_t> &members, double limit) {
  CallDescription description{"new_group of " + listText(members), "", {}, {}};
  for (size_t i = 0; i < members.size(); ++i) {
    bool isMember = std::find(ranks.begin(), ranks.end(), members[i]) != ranks.end();
    if (!isMember)
      description.isRefused = "new_group of " + listText(members) + ": rank " +
                              std::to_string(members[i]) + " is not in the group " +
                              listText(ranks);
    else if (i > 0 && members[i] <= members[i - 1])
      description.isRefused =
          "new_group of " + listText(members) + "; expected distinct ranks in ascending order";
  }
  if (members.empty())
    description.isRefused = "new_group of no ranks; a group has at least one";
  TESSERA_RETURN_IF_ERROR(guarded(std::move(description))->wait());
  if (std::find(members.begin(), members.end(), ranks[self]) == members.end())
    return std::unique_ptr<Group>();
  std::unique_ptr<Group> group(new Group(owner, members, limit));
  TESSERA_RETURN_IF_ERROR(
      owner->withTransport([&](Transport &transport) { return group->open(transport); }));
  return group;
}

/// A call in device memory: the ranks of the first call create a communicator, with an id that the
/// first of them broadcasts.
class Group::DeviceRun {
public:
  DeviceRun(Group &group, DeviceCalls &device, GroupCall call, int64_t rootPlace)
      : group(group), device(device), call(std::move(call)), rootPlace(rootPlace) {}

  Expected<bool> advance() {
    if (group.communicator < 0)
      if (auto isJoined = join(); !isJoined || !*isJoined)
        return isJoined;
    if (!hasBegun)
      TESSERA_RETURN_IF_ERROR(device.begin(group.communicator, call, rootPlace));
    hasBegun = true;
    return device.isDone(group.communicator);
  }
  std::string awaited() const {
    return hasBegun ? "the device has not ended it" : "its communicator is being made";
  }

private:
  Expected<bool> join() {
    if (joining < 0) {
      if (auto hasCome = spreadId(); !hasCome || !*hasCome)
        return hasCome;
      auto made = device.join(id, group.self, static_cast<int64_t>(group.ranks.size()));
      if (!made)
        return made.status();
      joining = *made;
    }
    auto isJoined = device.isJoined(joining);
    if (isJoined && *isJoined)
      group.communicator = joining;
    return isJoined;
  }

  Expected<bool> spreadId() {
    if (!spread) {
      id.assign(DeviceCalls::kIdBytes, '\0');
      if (group.self == 0) {
        auto made = device.makeId();
        if (!made)
          return made.status();
        id = *made;
      }
      PlanRequest request{CollectiveKind::broadcast,
                          group.self,
                          static_cast<int64_t>(group.ranks.size()),
                          0,
                          {DeviceCalls::kIdBytes},
                          {},
                          {}};
      auto plan = makePlan(request, Algorithm::direct);
      if (!plan)
        return plan.status();
      auto *bytes = reinterpret_cast<std::byte *>(id.data());
      spread.emplace(group.owner->transport(), group.channel, group.ranks,
                     std::make_shared<const MessagePlan>(std::move(*plan)), PlanElements{}, bytes,
                     bytes);
    }
    return spread->advance();
  }

  Group &group;
  DeviceCalls &device;
  const GroupCall call;
  const int64_t rootPlace;
  bool hasBegun = false;
  int64_t joining = -1;
  std::string id;
  std::optional<PlanRun> spread;
};

/// Sends its description, compares it, then runs the plan or the device's call.
class Group::CallWork final : public Work {
public:
  CallWork(Group &group, CallDescription description, Deadline deadline)
      : Work(callAt(description.isRefused.empty() ? description.text : "call", description.where),
             deadline),
        log(group.owner->log()), sequence(log.issue(group.shapeOf(description))),
        transport(group.owner->transport()), channel(group.channel), members(group.ranks),
        scratch(group.scratch), guard(transport, channel, members, description) {}

  void setPlan(std::shared_ptr<const MessagePlan> made, const PlanElements &ofElements,
               const GroupCall &call) {
    plan = std::move(made);
    elements = ofElements;
    input = call.input;
    output = call.output;
  }

  void setDevice(std::unique_ptr<DeviceRun> run) { device = std::move(run); }

  Expected<bool> advance() override {
    if (!hasBegun) {
      log.begin(sequence);
      log.progressed();
      hasBegun = true;
    }
    auto isDone = advanceCall();
    if (isDone && *isDone)
      log.progressed();
    else
      log.waits();
    return isDone;
  }

  /// Ends the work for waiting threads and in the record.
  void finish(const Status &status) {
    log.end(sequence);
    if (!status.ok())
      log.dump(status.message());
    complete(status);
  }

  Expected<bool> advanceCall() {
    if (!isAgreed) {
      auto haveAllReported = guard.advance();
      if (!haveAllReported || !*haveAllReported)
        return haveAllReported;
      isAgreed = true;
      Status verdict = guard.verdict();
      if (!verdict.ok() || (!plan && !device)) {
        finish(verdict);
        return true;
      }
    }
    if (device) {
      auto isDone = device->advance();
      if (isDone && *isDone)
        finish({});
      return isDone;
    }
    if (!run) {
      constexpr int64_t kMostKept = int64_t(1) << 26; // the limit of a group's scratch memory
      if (plan->scratch * elements.bytes > kMostKept)
        scratch = std::make_shared<Scratch>();
      run.emplace(transport, channel, members, plan, elements, input, output,
                  PlanRun::kSegmentBytes, scratch);
    }
    auto isDone = run->advance();
    if (isDone && *isDone)
      finish({});
    return isDone;
  }

  std::string awaited() const override {
    if (!isAgreed)
      return ranksText(guard.missing()) + (guard.missing().size() == 1 ? " has" : " have") +
             " not called it";
    if (device)
      return device->awaited();
    std::vector<int64_t> peers;
    for (int64_t place : run->awaited())
      peers.push_back(members[place]);
    return "messages with " + ranksText(peers) + " are pending";
  }

private:
  CallLog &log;
  const int64_t sequence;
  bool hasBegun = false;
  Transport &transport;
  const int64_t channel;
  const std::vector<int64_t> members;
  std::shared_ptr<Scratch> scratch;
  Guard guard;
  bool isAgreed = false;
  std::unique_ptr<DeviceRun> device;
  std::shared_ptr<const MessagePlan> plan;
  PlanElements elements;
  const std::byte *input = nullptr;
  std::byte *output = nullptr;
  std::optional<PlanRun> run;
};

/// The shape of the call in the record.
CallShapePtr Group::shapeOf(const CallDescription &description) const {
  auto shape = std::make_shared<CallShape>();
  shape->text = description.isRefused.empty() ? description.text : description.isRefused;
  shape->kind = shape->text.substr(0, shape->text.find(' '));
  shape->stream = name;
  shape->group = ranks;
  shape->dtype = description.dtype;
  shape->count = description.count;
  shape->loc = description.where;
  return shape;
}

WorkPtr Group::guarded(CallDescription description) {
  auto work = std::make_shared<CallWork>(*this, std::move(description), deadline());
  owner->submit(queue, work);
  return work;
}

WorkPtr Group::barrier(const std::string &where) {
  return guarded({"barrier", "", {}, {}, "", 0, where});
}

Status Group::agree(const Status &status) {
  return guarded({"init_process_group", status.ok() ? "" : status.message(), {}, {}})->wait();
}

WorkPtr Group::refuse(const std::string &reason) {
  return guarded({"", reason, {}, {}});
}

Expected<PlanRequest> Group::request(const GroupCall &call) const {
  auto size = static_cast<int64_t>(ranks.size());
  PlanRequest made{call.kind, self, size, 0, call.counts, call.receives, hosts};
  if (hasRoot(call.kind)) {
    made.root = std::find(ranks.begin(), ranks.end(), call.root) - ranks.begin();
    if (made.root == size)
      return Status::error("the root is rank " + std::to_string(call.root) +
                           ", which is not in the group " + listText(ranks));
  }
  bool pairs = call.kind == CollectiveKind::all_to_all;
  size_t wanted = isWhole(call.kind) ? 1 : ranks.size();
  if (call.counts.size() != wanted || call.receives.size() != (pairs ? wanted : 0))
    return Status::error(std::to_string(call.counts.size()) + " parts in a group of " +
                         std::to_string(size) + "; give one per rank");
  for (const std::vector<int64_t> *counts : {&call.counts, &call.receives})
    for (int64_t count : *counts)
      if (count < 0)
        return Status::error("a part has " + std::to_string(count) + " elements");
  return made;
}

Expected<Algorithm> Group::algorithmOf(const GroupCall &call) {
  auto made = request(call);
  if (!made)
    return made.status();
  if (call.isOnDevice)
    return Status::error("NCCL chooses the algorithms of buffers on 'cuda'");
  return chooseAlgorithm(*made, sizeOf(call.type.dtype), {call.algorithm, false});
}

Expected<std::shared_ptr<const MessagePlan>> Group::planOf(const GroupCall &call,
                                                           const PlanRequest &made) {
  std::vector<int64_t> key{static_cast<int64_t>(call.kind), made.root, sizeOf(call.type.dtype),
                           call.algorithm ? static_cast<int64_t>(*call.algorithm) : -1};
  key.insert(key.end(), call.counts.begin(), call.counts.end());
  key.insert(key.end(), call.receives.begin(), call.receives.end());
  std::lock_guard lock(mutex);
  auto known = plans.find(key);
  if (known != plans.end())
    return known->second;
  auto algorithm = chooseAlgorithm(made, sizeOf(call.type.dtype), {call.algorithm, false});
  if (!algorithm)
    return algorithm.status();
  auto plan = makePlan(made, *algorithm);
  if (!plan)
    return plan.status();
  constexpr size_t kMostPlans = 256; // programs repeat a few plans
  if (plans.size() >= kMostPlans)
    plans.clear();
  return plans[key] = std::make_shared<const MessagePlan>(std::move(*plan));
}

Expected<std::vector<int64_t>> Group::sentBytesOf(const GroupCall &call) {
  auto made = request(call);
  if (!made)
    return made.status();
  auto plan = planOf(call, *made);
  if (!plan)
    return plan.status();
  return bytesSentTo(**plan, static_cast<int64_t>(ranks.size()), sizeOf(call.type.dtype));
}

static CallDescription describe(const GroupCall &call) {
  CallDescription description;
  std::string type = " " + call.type.text(), text(toString(call.kind));
  if (call.kind == CollectiveKind::all_to_all)
    text += " of" + type;
  else
    text += " of " + (isWhole(call.kind) ? std::to_string(call.counts[0]) : listText(call.counts)) +
            type;
  if (reduces(call.kind))
    text += " by " + std::string(toString(call.reduction));
  if (hasRoot(call.kind))
    text += (call.kind == CollectiveKind::broadcast || call.kind == CollectiveKind::scatter
                 ? ", from rank "
                 : ", to rank ") +
            std::to_string(call.root);
  if (call.algorithm)
    text += ", " + std::string(toString(*call.algorithm));
  if (call.isOnDevice)
    text += " on the device";
  description.text = text;
  description.where = call.where;
  description.dtype = call.type.text();
  description.count = std::accumulate(call.counts.begin(), call.counts.end(), int64_t(0));
  if (call.kind == CollectiveKind::all_to_all) {
    description.sends = call.counts;
    description.receives = call.receives;
  }
  return description;
}

WorkPtr Group::refused(const GroupCall &call, const Status &why) {
  return guarded(
      {"", std::string(toString(call.kind)) + ": " + why.message(), {}, {}, "", 0, call.where});
}

WorkPtr Group::call(const GroupCall &call) {
  auto made = request(call);
  if (!made)
    return refused(call, made.status());
  Expected<PlanElements> elements = PlanElements{sizeOf(call.type.dtype), nullptr, 1};
  if (reduces(call.kind))
    elements = elementsOf(call.type, call.reduction, made->ranks);
  if (!elements)
    return refused(call, elements.status());
  if (call.isOnDevice)
    return callOnDevice(call, *made);
  auto plan = planOf(call, *made);
  if (!plan)
    return refused(call, plan.status());
  auto work = std::make_shared<CallWork>(*this, describe(call), deadline());
  work->setPlan(*plan, *elements, call);
  owner->submit(queue, work);
  return work;
}

WorkPtr Group::callOnDevice(const GroupCall &call, const PlanRequest &made) {
  auto device = owner->device();
  if (!device)
    return refused(call, device.status());
  if (call.algorithm)
    return refused(call, Status::error("algorithm '" + std::string(toString(*call.algorithm)) +
                                       "' of buffers on 'cuda', where NCCL chooses"));
  if (Status status = (*device)->supports(call); !status.ok())
    return refused(call, status);
  auto work = std::make_shared<CallWork>(*this, describe(call), deadline());
  work->setDevice(std::make_unique<DeviceRun>(*this, **device, call, made.root));
  owner->submit(queue, work);
  return work;
}

namespace {
/// A message that could not start.
class FailedWork final : public Work {
public:
  explicit FailedWork(const Status &why) : Work("send", {}) { complete(why.in("send")); }
  Expected<bool> advance() override { return true; }
  std::string awaited() const override { return {}; }
};
} // namespace

WorkPtr Group::sendFromDevice(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
                              const std::string &type, void *stream) {
  auto copy = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  auto device = owner->device();
  if (!device)
    return std::make_shared<FailedWork>(device.status());
  Status status = owner->withTransport(
      [&](Transport &) { return (*device)->read(copy->data(), data, bytes, stream); });
  if (!status.ok())
    return std::make_shared<FailedWork>(status);
  return mailbox->send(peer, tag, copy->data(), bytes, type, deadline(), copy);
}

std::shared_ptr<ReceiveWork> Group::receiveToDevice(int64_t peer, int64_t tag, std::byte *data,
                                                    int64_t bytes, const std::string &type) {
  auto copy = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  auto device = owner->device();
  auto then = [device, copy, data, bytes]() -> Status {
    if (!device)
      return device.status();
    return (*device)->write(data, copy->data(), bytes);
  };
  return mailbox->receive(peer, tag, copy->data(), bytes, type, deadline(), then);
}

WorkPtr Group::send(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
                    const std::string &type) {
  return mailbox->send(peer, tag, data, bytes, type, deadline());
}

std::shared_ptr<ReceiveWork> Group::receive(int64_t peer, int64_t tag, std::byte *data,
                                            int64_t bytes, const std::string &type) {
  return mailbox->receive(peer, tag, data, bytes, type, deadline());
}

} // namespace tessera::runtime
