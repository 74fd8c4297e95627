//===- ProcessStream.cpp - A part on the device of this process -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Execution/Deadlock.h"
#include "ProcessExecutor.h"

namespace tessera::runtime {

ProcessStream::ProcessStream(ProcessExecutor &executor, ProcessPart &part,
                             std::vector<std::byte *> slots, std::byte *packed)
    : PartStream(executor.computing(), executor.program(), *part.part, *part.code,
                 executor.messages().rank(), std::move(slots), packed),
      executor(executor), loaded(part) {}

void ProcessStream::restart() {
  PartStream::restart();
  arrived = false;
}

Expected<bool> ProcessStream::communicate(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::collective:
    return collective(instruction);
  case Op::wait: {
    const ProcessCollective &each = loaded.collectives[instruction.index];
    return each.completed >= each.started;
  }
  case Op::send: {
    ProcessTransfer &transfer = *executor.transfers.at(instruction.index);
    int64_t sequence = executor.log.issue(transfer.sendShape());
    executor.log.begin(sequence);
    TESSERA_RETURN_IF_ERROR(transfer.send());
    executor.log.end(sequence);
    return true;
  }
  default: {
    ProcessTransfer &transfer = *executor.transfers.at(instruction.index);
    if (!arrived) {
      receiving = executor.log.issue(transfer.receiveShape());
      executor.log.begin(receiving);
      arrived = true;
    }
    auto isDone = transfer.tryReceive();
    if (isDone && *isDone) {
      executor.log.end(receiving);
      arrived = false;
    }
    return isDone;
  }
  }
}

Expected<bool> ProcessStream::collective(const Instruction &instruction) {
  ProcessCollective &each = loaded.collectives[instruction.index];
  if (!arrived) {
    TESSERA_RETURN_IF_ERROR(executor.begin(loaded, each));
    arrived = true;
  }
  auto went = loaded.lanes[each.lane].advance();
  if (!went)
    return went.status();
  bool asynchronous = std::get<CollectiveStep>(instruction.step->action).token.has_value();
  if (!asynchronous && each.completed < each.started)
    return false;
  arrived = false;
  return true;
}

std::string ProcessStream::describeWait() const {
  constexpr int64_t kListed = 8;
  const Instruction &instruction = current();
  std::string text = waitText(*instruction.step);
  std::vector<int64_t> awaited;
  if (instruction.op == Op::recv) {
    awaited = executor.transfers.at(instruction.index)->awaited();
  } else {
    const ProcessCollective &each = loaded.collectives[instruction.index];
    text = waitText(*each.step) + ", execution " + std::to_string(each.started) + ",";
    awaited = loaded.lanes[each.lane].awaited();
  }
  for (size_t i = 0; i < awaited.size() && i < kListed; ++i)
    text += (i ? ", " : " for ") + executor.controlChannel().rankText(awaited[i]);
  if (awaited.size() > kListed)
    text += " and " + std::to_string(awaited.size() - kListed) + " more";
  return text;
}

} // namespace tessera::runtime
