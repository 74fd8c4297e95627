//===- Transfers.cpp - Transfers between parts in one process -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include <algorithm>

namespace tessera::runtime::gpu {

InProcessTransfer::InProcessTransfer(GpuDriver &driver, Recorder &recorder, const Program &program,
                                     const Step &send, const Step &recv)
    : driver(driver), recorder(recorder), recv(recv), sending(std::get<TransferStep>(send.action)),
      receiving(std::get<TransferStep>(recv.action)),
      sourceMesh(program.meshes[sending.sourceMesh]),
      targetMesh(program.meshes[sending.targetMesh]), sentBy(sourceMesh.numDevices()),
      receivedBy(targetMesh.numDevices()), counter(program.numDevices()) {
  for (size_t i = 0; i < sending.operands.size(); ++i) {
    const Operand &from = sending.operands[i], &to = receiving.operands[i];
    moves.emplace_back(from.dtype, sourceMesh, from.source, targetMesh, to.target,
                       Move::Options{to.fill, true, Attribution::direct});
    whole.emplace_back();
    whole.back().run = whole.back().elements = *elementCount(from.source.localShape());
  }
}

Expected<std::unique_ptr<InProcessTransfer::Message>> InProcessTransfer::makeMessage() {
  auto message = std::make_unique<Message>();
  for (size_t operand = 0; operand < moves.size(); ++operand)
    for (int64_t device : sourceMesh.processIds) {
      auto memory =
          driver.allocate(device, whole[operand].elements * moves[operand].elementBytes());
      if (!memory)
        return memory.status();
      message->buffers.push_back(*memory);
    }
  for (auto [mesh, events] :
       {std::pair(&sourceMesh, &message->sent), std::pair(&targetMesh, &message->received)})
    for (int64_t device : mesh->processIds) {
      auto event = driver.createEvent(device);
      if (!event)
        return event.status();
      events->push_back(*event);
    }
  message->isSent.resize(sourceMesh.processIds.size());
  return message;
}

InProcessTransfer::Message *InProcessTransfer::find(int64_t sequence) const {
  int64_t index = sequence - first;
  return index < static_cast<int64_t>(messages.size()) ? messages[index].get() : nullptr;
}

Expected<bool> InProcessTransfer::trySend(Issuer &issuer) {
  int64_t position = sourceMesh.positionOf(issuer.device), sequence = sentBy[position]++;
  while (!find(sequence)) {
    if (spare.empty()) {
      auto made = makeMessage();
      if (!made)
        return made.status();
      spare.push_back(std::move(*made));
    }
    messages.push_back(std::move(spare.back()));
    spare.pop_back();
  }
  Message &message = *find(sequence);
  Stream stream = issuer.stream(issuer.part.plan.transferStream()), compute = issuer.stream(0);
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), compute));
  TESSERA_RETURN_IF_ERROR(driver.wait(stream, issuer.spareEvent()));
  for (Event event : message.received) // of the previous message in these buffers
    TESSERA_RETURN_IF_ERROR(driver.wait(stream, event));
  for (size_t i = 0; i < moves.size(); ++i) {
    MoveJob job{&whole[i],
                sending.operands[i].dtype,
                {},
                1,
                {issuer.slot(sending.operands[i].src)},
                {message.buffers[i * sourceMesh.processIds.size() + position]},
                {}};
    TESSERA_RETURN_IF_ERROR(
        driver.move({stream, issuer.currentStep(), "send", {}}, std::move(job)));
  }
  TESSERA_RETURN_IF_ERROR(driver.record(message.sent[position], stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(compute, message.sent[position]));
  message.isSent[position] = true;
  ++message.numSent;
  return true;
}

Expected<bool> InProcessTransfer::tryReceive(Issuer &issuer) {
  int64_t position = targetMesh.positionOf(issuer.device);
  Message *message = find(receivedBy[position]);
  if (!message || message->numSent < sourceMesh.numDevices())
    return false;
  ++receivedBy[position];
  Stream stream = issuer.stream(issuer.part.plan.transferStream()), compute = issuer.stream(0);
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), compute));
  TESSERA_RETURN_IF_ERROR(driver.wait(stream, issuer.spareEvent()));
  for (Event event : message->sent)
    TESSERA_RETURN_IF_ERROR(driver.wait(stream, event));
  for (size_t i = 0; i < moves.size(); ++i)
    for (const MovePiece &piece : moves[i].pieces()) {
      const End &to = piece.targets.front();
      if (to.position != position)
        continue;
      MoveJob job{&piece.strides,
                  sending.operands[i].dtype,
                  moves[i].reduction(),
                  moves[i].resultScale(),
                  {},
                  {},
                  piece.value};
      for (const End &from : piece.sources)
        job.sources.push_back(message->buffers[i * sourceMesh.processIds.size() + from.position] +
                              from.offset * moves[i].elementBytes());
      job.targets = {issuer.slot(receiving.operands[i].dst) + to.offset * moves[i].elementBytes()};
      TESSERA_RETURN_IF_ERROR(
          driver.move({stream, issuer.currentStep(), "recv", {}}, std::move(job)));
    }
  TESSERA_RETURN_IF_ERROR(driver.record(message->received[position], stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(compute, message->received[position]));
  ++message->numReceived;
  recycle();
  return true;
}

void InProcessTransfer::recycle() {
  while (!messages.empty() && messages.front()->numReceived == targetMesh.numDevices()) {
    recorder.add({receiving.id, "transfer", recv.loc, first, targetMesh.processIds.front(), 0, 0});
    for (const Move &move : moves)
      move.countAll(counter);
    Message &done = *messages.front();
    done.numSent = done.numReceived = 0;
    done.isSent.assign(done.isSent.size(), false);
    spare.push_back(std::move(messages.front()));
    messages.pop_front();
    ++first;
  }
}

std::vector<int64_t> InProcessTransfer::missingFor(int64_t device) const {
  Message *message = find(receivedBy[targetMesh.positionOf(device)]);
  std::vector<int64_t> missing;
  for (size_t position = 0; position < sourceMesh.processIds.size(); ++position)
    if (!message || !message->isSent[position])
      missing.push_back(sourceMesh.processIds[position]);
  return missing;
}

CollectiveStats InProcessTransfer::stats() const {
  return {
      receiving.id,           "transfer", recv.loc, first, receiving.wireBytes, counter.sentBytes(),
      counter.receivedBytes()};
}

} // namespace tessera::runtime::gpu
