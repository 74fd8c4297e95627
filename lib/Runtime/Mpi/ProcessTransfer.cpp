//===- ProcessTransfer.cpp - Moves between parts, by messages -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProcessTransfer.h"

#include "../Execution/MoveJob.h"

#include <algorithm>

namespace tessera::runtime {

ProcessTransfer::ProcessTransfer(const Program &program, const Step &send, const Step &recv,
                                 int64_t device, std::vector<std::byte *> sendSlots,
                                 std::vector<std::byte *> recvSlots)
    : sendStep(send), recvStep(recv), sending(std::get<TransferStep>(send.action)),
      receiving(std::get<TransferStep>(recv.action)), plan(program, sending, receiving),
      device(device), sendSlots(std::move(sendSlots)), recvSlots(std::move(recvSlots)) {
  for (const TransferPlan::Side &side : plan.senders)
    if (side.device == device) {
      isSender = true;
      sendBytes = side.stagingBytes;
    }
  for (const TransferPlan::Side &side : plan.receivers)
    if (side.device == device) {
      isReceiver = true;
      receiveBytes = side.stagingBytes;
    }
  auto shape = [&](bool sends) {
    auto made = std::make_shared<CallShape>();
    made->id = receiving.id;
    made->kind = sends ? "send" : "recv";
    made->text = made->kind + " " + std::to_string(receiving.id);
    made->loc = (sends ? send : recv).loc;
    made->stream = "transfer " + std::to_string(receiving.id) + (!sends && isSender ? " here" : "");
    for (const TransferPlan::Side &side : plan.senders)
      if (!sends && !isSender)
        made->group.push_back(side.device);
    return made;
  };
  sendCall = shape(true);
  receiveCall = shape(false);
}

Status ProcessTransfer::open(RankEngine &with) {
  engine = &with;
  if (!isSender && !isReceiver)
    return {};
  auto made = engine->makeCommunicators({plan.members}, {device}, RankEngine::Calls::concurrent);
  if (!made)
    return made.status();
  communicator = made->front();
  incoming.resize(static_cast<size_t>(receiveBytes));
  incomingClaim.emplace(device, nullptr, receiveBytes);
  return {};
}

Expected<ProcessTransfer::StagingBuffer *> ProcessTransfer::freeBuffer() {
  for (StagingBuffer &buffer : buffers) {
    auto went = buffer.lane.advance();
    if (!went)
      return went.status();
    if (buffer.lane.idle() && !buffer.held)
      return &buffer;
  }
  return &buffers.emplace_back(device, sendBytes);
}

Status ProcessTransfer::exchange(Lane &lane, std::byte *staging, bool sends) {
  std::vector<RankMessage> messages;
  for (const TransferPlan::Route &route : plan.routes) {
    if ((sends ? route.source : route.target) != device || route.source == route.target ||
        route.bytes == 0)
      continue;
    messages.push_back({plan.rankOf(sends ? route.target : route.source), sends,
                        staging + (sends ? route.sendAt : route.receiveAt), route.bytes});
  }
  if (messages.empty())
    return {};
  const Step &step = sends ? sendStep : recvStep;
  TESSERA_RETURN_IF_ERROR(engine->exchange({lane.stream(), &step, sends ? "send" : "recv", {}},
                                           communicator, plan.rankOf(device), std::move(messages)));
  // Posted now: the n-th send meets the n-th receive.
  auto went = lane.advance();
  return went ? Status() : went.status();
}

void ProcessTransfer::pack(StagingBuffer &buffer) const {
  for (const TransferPlan::Box &box : plan.boxes)
    for (size_t i = 0; i < box.sent.size(); ++i) {
      const End &from = box.piece->sources[i];
      if (from.device != device)
        continue;
      const Operand &operand = sending.operands[box.operand];
      runMoveJob({&box.pack,
                  operand.dtype,
                  {},
                  1,
                  {sendSlots[operand.src] + from.offset * plan.moves[box.operand].elementBytes()},
                  {buffer.staging.data() + box.sent[i]},
                  {}});
    }
}

Status ProcessTransfer::send() {
  auto buffer = freeBuffer();
  if (!buffer)
    return buffer.status();
  pack(**buffer);
  ++sent;
  if (isReceiver) {
    (*buffer)->held = true;
    toSelf.push_back(*buffer);
  }
  return exchange((*buffer)->lane, (*buffer)->staging.data(), true);
}

void ProcessTransfer::unpack(const StagingBuffer *own) {
  for (const TransferPlan::Box &box : plan.boxes) {
    const End &to = box.piece->targets.front();
    if (to.device != device)
      continue;
    const Operand &operand = receiving.operands[box.operand];
    const Move &move = plan.moves[box.operand];
    MoveJob job{box.piece->isFill() ? &box.piece->strides : &box.unpack,
                operand.dtype,
                move.reduction(),
                move.resultScale(),
                {},
                {recvSlots[operand.dst] + to.offset * move.elementBytes()},
                box.piece->value};
    for (size_t i = 0; i < box.received.size(); ++i)
      job.sources.push_back(box.piece->sources[i].device == device
                                ? own->staging.data() + box.sent[i]
                                : incoming.data() + box.received[i]);
    runMoveJob(job);
  }
}

Expected<bool> ProcessTransfer::tryReceive() {
  if (!posted) {
    TESSERA_RETURN_IF_ERROR(exchange(incomingLane, incoming.data(), false));
    posted = true;
  }
  auto went = incomingLane.advance();
  if (!went)
    return went.status();
  if (!incomingLane.idle() || (isSender && toSelf.empty()))
    return false;
  StagingBuffer *own = isSender ? toSelf.front() : nullptr;
  unpack(own);
  if (own) {
    own->held = false;
    toSelf.pop_front();
  }
  posted = false;
  ++received;
  return true;
}

Expected<bool> ProcessTransfer::progress() {
  bool any = false;
  for (StagingBuffer &buffer : buffers) {
    auto went = buffer.lane.advance();
    if (!went)
      return went.status();
    any |= *went;
  }
  auto went = incomingLane.advance();
  if (!went)
    return went.status();
  return any | *went;
}

bool ProcessTransfer::isIdle() const {
  return incomingLane.idle() &&
         std::all_of(buffers.begin(), buffers.end(),
                     [](const StagingBuffer &buffer) { return buffer.lane.idle(); });
}

} // namespace tessera::runtime
