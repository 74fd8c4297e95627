//===- Stream.cpp - Communication of virtual devices ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace tessera::runtime {

void Machine::fail(std::string message) {
  std::lock_guard lock(failureMutex);
  if (!failed.exchange(true))
    failure = std::move(message);
}

static std::vector<std::byte *> slotsOf(const Context &context, const LoadedPart &part,
                                        int64_t device) {
  int64_t position = context.program.meshes[part.part->mesh].positionOf(device);
  std::vector<std::byte *> slots;
  for (size_t slot = 0; slot < part.part->slots.size(); ++slot)
    slots.push_back(context.memory.slot(part.index, position, static_cast<int64_t>(slot)));
  return slots;
}

Stream::Stream(Machine &machine, const LoadedPart &part, int64_t device)
    : PartStream(
          machine.processor, machine.context.program, *part.part, part.code, device,
          slotsOf(machine.context, part, device),
          machine.context.memory.packed(
              part.index, machine.context.program.meshes[part.part->mesh].positionOf(device))),
      machine(&machine), loaded(&part), started(part.collectives.size()) {}

void Stream::restart() {
  PartStream::restart();
  arrived = false;
}

Expected<bool> Stream::communicate(const Instruction &instruction) {
  switch (instruction.op) {
  case Op::collective:
    return collective(instruction);
  case Op::wait:
    return wait(instruction);
  case Op::send:
    machine->channels.at(instruction.index)->send(device, transferred[instruction.index]++);
    return true;
  default: {
    int64_t &sequence = transferred[instruction.index];
    if (!machine->channels.at(instruction.index)->tryReceive(device, sequence))
      return false;
    ++sequence;
    return true;
  }
  }
}

bool Stream::collective(const Instruction &instruction) {
  GroupMeeting &group = loaded->collectives[instruction.index]->groupOf(device);
  bool asynchronous = std::get<CollectiveStep>(instruction.step->action).token.has_value();
  if (!arrived) {
    ++started[instruction.index];
    group.arrive(device);
    arrived = true;
  }
  if (!asynchronous && group.completed() < started[instruction.index])
    return false;
  arrived = false;
  return true;
}

bool Stream::wait(const Instruction &instruction) const {
  return loaded->collectives[instruction.index]->groupOf(device).completed() >=
         started[instruction.index];
}

} // namespace tessera::runtime
