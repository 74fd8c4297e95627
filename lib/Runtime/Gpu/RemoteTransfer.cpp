//===- RemoteTransfer.cpp - Transfers between parts as messages -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RemoteTransfer.h"

#include "../Execution/MoveJob.h"
#include "Executor.h"

#include <algorithm>

namespace tessera::runtime::gpu {

RemoteTransfer::RemoteTransfer(GpuDriver &driver, RankEngine &engine, const Program &program,
                               const Step &send, const Step &recv)
    : driver(driver), engine(engine), recv(recv), sending(std::get<TransferStep>(send.action)),
      receiving(std::get<TransferStep>(recv.action)), plan(program, sending, receiving) {
  for (auto [planned, sides] :
       {std::pair(&plan.senders, &senders), std::pair(&plan.receivers, &receivers)})
    for (const TransferPlan::Side &each : *planned) {
      Side &side = sides->emplace_back();
      side.device = each.device;
      side.stagingBytes = each.stagingBytes;
    }
}

RemoteTransfer::Side *RemoteTransfer::find(std::vector<Side> &sides, int64_t device) const {
  auto it = std::find_if(sides.begin(), sides.end(),
                         [&](const Side &side) { return side.device == device; });
  return it == sides.end() ? nullptr : &*it;
}

Status RemoteTransfer::addStagingBuffer(Side &side) {
  StagingBuffer buffer;
  auto memory = driver.allocate(side.device, side.stagingBytes);
  if (!memory)
    return memory.status();
  buffer.staging = *memory;
  for (Event *event : {&buffer.packed, &buffer.sent, &buffer.taken}) {
    auto made = driver.createEvent(side.device);
    if (!made)
      return made.status();
    *event = *made;
  }
  side.buffers.push_back(buffer);
  return {};
}

Status RemoteTransfer::openSide(Side &side, const char *name, int64_t buffers) {
  side.isHere = true;
  for (int64_t i = 0; i < buffers; ++i)
    TESSERA_RETURN_IF_ERROR(addStagingBuffer(side));
  auto stream = driver.createStream(side.device, std::string(name) + " of device " +
                                                     std::to_string(side.device));
  if (!stream)
    return stream.status();
  side.stream = *stream;
  auto event = driver.createEvent(side.device);
  if (!event)
    return event.status();
  side.done = *event;
  return {};
}

Status RemoteTransfer::open(const std::vector<int64_t> &here, int64_t buffers) {
  hasKnownDepth = buffers > 0;
  auto made = engine.makeCommunicators({plan.members}, here, RankEngine::Calls::concurrent);
  if (!made)
    return made.status();
  communicator = made->front();
  auto isHere = [&](const Side &side) {
    return std::find(here.begin(), here.end(), side.device) != here.end();
  };
  for (Side &side : senders)
    if (isHere(side))
      TESSERA_RETURN_IF_ERROR(openSide(side, "sends", std::max<int64_t>(buffers, 1)));
  for (Side &side : receivers)
    if (isHere(side))
      TESSERA_RETURN_IF_ERROR(openSide(side, "receives", 1));
  return {};
}

Expected<size_t> RemoteTransfer::chooseStagingBuffer(Side &side, Stream compute) {
  bool alsoReceives = find(receivers, side.device) != nullptr;
  if (hasKnownDepth) {
    size_t index = static_cast<size_t>(side.count) % side.buffers.size();
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.buffers[index].sent));
    if (alsoReceives)
      TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.buffers[index].taken));
    return index;
  }
  for (size_t index = 0; index < side.buffers.size(); ++index) {
    // The events of a buffer with a pending message to itself may not be recorded yet.
    if (std::find(side.toSelf.begin(), side.toSelf.end(), index) != side.toSelf.end())
      continue;
    bool free = true;
    for (Event event : {side.buffers[index].sent, side.buffers[index].taken}) {
      auto done = driver.isDone(event);
      if (!done)
        return done.status();
      free &= *done;
    }
    if (!free)
      continue;
    // They are done; the waits tell the hazard checker.
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.buffers[index].sent));
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.buffers[index].taken));
    return index;
  }
  TESSERA_RETURN_IF_ERROR(addStagingBuffer(side));
  return side.buffers.size() - 1;
}

Status RemoteTransfer::exchange(const Side &side, std::byte *staging, Issuer &issuer, bool sends) {
  std::vector<RankMessage> messages;
  for (const TransferPlan::Route &route : plan.routes) {
    if ((sends ? route.source : route.target) != side.device || route.source == route.target ||
        route.bytes == 0)
      continue;
    messages.push_back({plan.rankOf(sends ? route.target : route.source), sends,
                        staging + (sends ? route.sendAt : route.receiveAt), route.bytes});
  }
  if (messages.empty())
    return {};
  const Issue issue{side.stream, issuer.currentStep(), sends ? "send" : "recv", {}};
  TESSERA_RETURN_IF_ERROR(driver.beginTimed(issue));
  TESSERA_RETURN_IF_ERROR(
      engine.exchange(issue, communicator, plan.rankOf(side.device), std::move(messages)));
  return driver.endTimed(issue);
}

Expected<bool> RemoteTransfer::trySend(Issuer &issuer) {
  Side &side = *find(senders, issuer.device);
  Stream compute = issuer.stream(0);
  // A message to itself must have been unpacked by an issued receive: before that the event has no
  // meaning.
  size_t next = static_cast<size_t>(side.count) % side.buffers.size();
  if (hasKnownDepth && std::count(side.toSelf.begin(), side.toSelf.end(), next) > 0)
    return false;
  auto index = chooseStagingBuffer(side, compute);
  if (!index)
    return index.status();
  StagingBuffer &buffer = side.buffers[*index];
  for (const TransferPlan::Box &box : plan.boxes)
    for (size_t i = 0; i < box.sent.size(); ++i) {
      const End &from = box.piece->sources[i];
      if (from.device != issuer.device)
        continue;
      const Operand &operand = sending.operands[box.operand];
      MoveJob job{&box.pack,
                  operand.dtype,
                  {},
                  1,
                  {issuer.slot(operand.src) + from.offset * plan.moves[box.operand].elementBytes()},
                  {buffer.staging + box.sent[i]},
                  {}};
      TESSERA_RETURN_IF_ERROR(
          driver.move({compute, issuer.currentStep(), "pack", {}}, std::move(job)));
    }
  TESSERA_RETURN_IF_ERROR(driver.record(buffer.packed, compute));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, buffer.packed));
  TESSERA_RETURN_IF_ERROR(exchange(side, buffer.staging, issuer, true));
  TESSERA_RETURN_IF_ERROR(driver.record(buffer.sent, side.stream));
  ++side.count;
  if (find(receivers, issuer.device))
    side.toSelf.push_back(*index);
  return true;
}

Expected<bool> RemoteTransfer::tryReceive(Issuer &issuer) {
  Side &side = *find(receivers, issuer.device);
  Side *own = find(senders, issuer.device);
  if (own && own->toSelf.empty())
    return false; // it has not sent its part to itself
  StagingBuffer *given = own ? &own->buffers[own->toSelf.front()] : nullptr;
  std::byte *staging = side.buffers.front().staging;
  ++side.count;
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), issuer.stream(0)));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, issuer.spareEvent()));
  if (given)
    TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, given->packed));
  TESSERA_RETURN_IF_ERROR(exchange(side, staging, issuer, false));
  for (const TransferPlan::Box &box : plan.boxes) {
    const End &to = box.piece->targets.front();
    if (to.device != issuer.device)
      continue;
    const Operand &operand = receiving.operands[box.operand];
    const Move &move = plan.moves[box.operand];
    MoveJob job{box.piece->isFill() ? &box.piece->strides : &box.unpack,
                operand.dtype,
                move.reduction(),
                move.resultScale(),
                {},
                {issuer.slot(operand.dst) + to.offset * move.elementBytes()},
                box.piece->value};
    for (size_t i = 0; i < box.received.size(); ++i)
      job.sources.push_back(box.piece->sources[i].device == issuer.device
                                ? given->staging + box.sent[i]
                                : staging + box.received[i]);
    TESSERA_RETURN_IF_ERROR(
        driver.move({side.stream, issuer.currentStep(), "unpack", {}}, std::move(job)));
  }
  if (given) {
    TESSERA_RETURN_IF_ERROR(driver.record(given->taken, side.stream));
    own->toSelf.pop_front();
  }
  TESSERA_RETURN_IF_ERROR(driver.record(side.done, side.stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(issuer.stream(0), side.done));
  return true;
}

std::vector<int64_t> RemoteTransfer::missingFor(int64_t device) const {
  auto receiver = std::find_if(receivers.begin(), receivers.end(),
                               [&](const Side &side) { return side.device == device; });
  std::vector<int64_t> missing;
  for (const Side &side : senders) {
    bool sends =
        std::any_of(plan.routes.begin(), plan.routes.end(), [&](const TransferPlan::Route &route) {
          return route.source == side.device && route.target == device;
        });
    // A device that sends to itself counts a receive only after that send.
    int64_t awaited = receiver->count + (side.device == device);
    if (sends && side.isHere && side.count < awaited)
      missing.push_back(side.device);
  }
  return missing;
}

CollectiveStats RemoteTransfer::stats() const {
  CollectiveStats stats{receiving.id,        "transfer",     recv.loc,          0,
                        receiving.wireBytes, plan.sentBytes, plan.receivedBytes};
  for (const std::vector<Side> *sides : {&senders, &receivers})
    for (const Side &side : *sides)
      if (side.isHere)
        stats.executions = std::max(stats.executions, side.count);
  for (auto *bytes : {&stats.sentBytes, &stats.receivedBytes})
    for (int64_t &each : *bytes)
      each *= stats.executions;
  return stats;
}

} // namespace tessera::runtime::gpu
