//===- Channel.cpp - Transfers between two parts --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Channel.h"

#include <algorithm>

namespace tessera::runtime {

Channel::Channel(Context &context, const Step &sendStep, int64_t sendPart, const Step &recvStep,
                 int64_t recvPart)
    : context(context), recvStep(recvStep), sending(std::get<TransferStep>(sendStep.action)),
      receiving(std::get<TransferStep>(recvStep.action)),
      sourceMesh(context.program.meshes[sending.sourceMesh]),
      targetMesh(context.program.meshes[sending.targetMesh]),
      counter(context.program.numDevices()) {
  auto slotsOf = [&](const sharding::Mesh &mesh, int64_t part, int64_t slot) {
    const sharding::Mesh &partMesh = context.program.meshes[context.program.parts[part].mesh];
    std::vector<std::byte *> result;
    for (int64_t device : mesh.processIds)
      result.push_back(context.memory.slot(part, partMesh.positionOf(device), slot));
    return result;
  };
  for (size_t i = 0; i < sending.operands.size(); ++i) {
    const Operand &from = sending.operands[i], &to = receiving.operands[i];
    Route route;
    route.move = std::make_unique<Move>(from.dtype, sourceMesh, from.source, targetMesh, to.target,
                                        Move::Options{to.fill, true, Attribution::direct});
    route.sources = slotsOf(sourceMesh, sendPart, from.src);
    route.targets = slotsOf(targetMesh, recvPart, to.dst);
    route.piecesOf.resize(targetMesh.processIds.size());
    for (const MovePiece &piece : route.move->pieces())
      route.piecesOf[piece.targets.front().position].push_back(&piece);
    route.sourceBytes = *elementCount(from.source.localShape()) * sizeOf(from.dtype);
    routes.push_back(std::move(route));
  }
}

std::unique_ptr<Channel::Message> Channel::makeMessage() const {
  auto message = std::make_unique<Message>();
  message->sent.resize(sourceMesh.processIds.size());
  for (const Route &route : routes) {
    auto &buffers = message->buffers.emplace_back(sourceMesh.processIds.size());
    auto &sources = message->sources.emplace_back();
    for (size_t position = 0; position < buffers.size(); ++position) {
      buffers[position].resize(static_cast<size_t>(route.sourceBytes));
      sources.push_back(buffers[position].data());
      message->claims.emplace_back(sourceMesh.processIds[position], nullptr, route.sourceBytes);
    }
  }
  return message;
}

Channel::Message *Channel::find(int64_t sequence) {
  int64_t index = sequence - first;
  return index < static_cast<int64_t>(messages.size()) ? messages[index].get() : nullptr;
}

void Channel::send(int64_t device, int64_t sequence) {
  int64_t position = sourceMesh.positionOf(device);
  Message *message;
  {
    std::lock_guard lock(mutex);
    while (!find(sequence)) {
      if (spare.empty()) {
        messages.push_back(makeMessage());
        continue;
      }
      messages.push_back(std::move(spare.back()));
      spare.pop_back();
    }
    message = find(sequence);
  }
  for (size_t i = 0; i < routes.size(); ++i)
    std::copy_n(routes[i].sources[position], routes[i].sourceBytes,
                message->buffers[i][position].data());
  bool complete;
  {
    std::lock_guard lock(mutex);
    message->sent[position] = true;
    complete = ++message->arrived == sourceMesh.numDevices();
  }
  if (complete)
    for (int64_t receiver : targetMesh.processIds)
      context.waiters[receiver]->notify();
}

bool Channel::tryReceive(int64_t device, int64_t sequence) {
  int64_t position = targetMesh.positionOf(device);
  Message *message;
  {
    std::lock_guard lock(mutex);
    message = find(sequence);
    if (!message || message->arrived < sourceMesh.numDevices())
      return false;
  }
  for (size_t i = 0; i < routes.size(); ++i)
    for (const MovePiece *piece : routes[i].piecesOf[position])
      routes[i].move->run(*piece, 0, piece->strides.elements, message->sources[i].data(),
                          routes[i].targets.data(), &counter);
  int64_t now = context.clock.now();
  std::lock_guard lock(mutex);
  ++message->received;
  while (!messages.empty() && messages.front()->received == targetMesh.numDevices()) {
    context.recorder.add(
        {receiving.id, "transfer", loc(), first, targetMesh.processIds.front(), now, now});
    Message &done = *messages.front();
    done.arrived = done.received = 0;
    done.sent.assign(done.sent.size(), false);
    spare.push_back(std::move(messages.front()));
    messages.pop_front();
    ++first;
  }
  return true;
}

std::vector<int64_t> Channel::missingSenders(int64_t sequence) const {
  std::lock_guard lock(mutex);
  int64_t index = sequence - first;
  std::vector<int64_t> missing;
  for (size_t position = 0; position < sourceMesh.processIds.size(); ++position)
    if (index >= static_cast<int64_t>(messages.size()) || !messages[index]->sent[position])
      missing.push_back(sourceMesh.processIds[position]);
  return missing;
}

CollectiveStats Channel::stats() const {
  std::lock_guard lock(mutex);
  return {
      receiving.id,           "transfer", loc(), first, receiving.wireBytes, counter.sentBytes(),
      counter.receivedBytes()};
}

} // namespace tessera::runtime
