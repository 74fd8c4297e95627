//===- Stream.cpp - Executing the steps of one part on one device ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "tessera/Runtime/Execution/Gemm.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

void Machine::fail(std::string message) {
  std::lock_guard lock(failureMutex);
  if (!failed.exchange(true))
    failure = std::move(message);
}

Stream::Stream(Machine &machine, const LoadedPart &part, int64_t device)
    : machine(&machine), part(&part), device(device), loops(part.code.numLoops),
      started(part.collectives.size()) {
  const Program &program = machine.context.program;
  const sharding::Mesh &mesh = program.meshes[part.part->mesh];
  int64_t position = mesh.positionOf(device);
  for (size_t slot = 0; slot < part.part->slots.size(); ++slot)
    slots.push_back(machine.context.memory.slot(part.index, position, static_cast<int64_t>(slot)));
  for (const Coordinate &coordinate : part.part->coordinates) {
    const sharding::Mesh &of = program.meshes[coordinate.mesh.value_or(part.part->mesh)];
    int64_t value =
        sharding::linearIndex(of, coordinate.axes, of.coordinate(of.positionOf(device)));
    std::memcpy(at(coordinate.slot), &value, sizeof(value));
  }
  restart();
}

void Stream::restart() {
  place = 0;
  arrived = false;
  beganNs = -1;
}

bool Stream::advance(Track *track) {
  const Instruction &instruction = part->code.instructions[place];
  if (track && beganNs < 0)
    beganNs = machine->context.clock.now();
  next = place + 1; // unless the step is a jump
  if (!execute(instruction))
    return false;
  place = next;
  if (!track)
    return true;
  static constexpr const char *kNames[] = {"launch", "gemm", "collective", "wait",
                                           "send",   "recv", "copy"};
  if (instruction.op <= Op::copy)
    track->add({instruction.step, kNames[static_cast<int>(instruction.op)], beganNs,
                machine->context.clock.now()});
  beganNs = -1;
  return true;
}

bool Stream::execute(const Instruction &instruction) {
  const auto &action = instruction.step->action;
  switch (instruction.op) {
  case Op::launch:
    launch(std::get<LaunchStep>(action));
    return true;
  case Op::gemm:
    gemm(std::get<GemmStep>(action));
    return true;
  case Op::collective:
    return collective(instruction);
  case Op::wait:
    return wait(instruction);
  case Op::send:
    machine->channels.at(instruction.index)->send(device, transferred[instruction.index]++);
    return true;
  case Op::recv: {
    int64_t &sequence = transferred[instruction.index];
    if (!machine->channels.at(instruction.index)->tryReceive(device, sequence))
      return false;
    ++sequence;
    return true;
  }
  case Op::copy:
    copy(std::get<CopyStep>(action));
    return true;
  case Op::loopBegin:
    return beginLoop(instruction);
  case Op::loopNext: {
    LoopState &loop = loops[instruction.index];
    if (loop.next()) {
      setIndex(std::get<LoopStep>(action), loop.value());
      next = instruction.target;
    }
    return true;
  }
  case Op::jumpIfZero:
    if (valueOf(instruction.index) == 0)
      next = instruction.target;
    return true;
  case Op::jump:
    next = instruction.target;
    return true;
  }
  return true;
}

void Stream::launch(const LaunchStep &step) {
  arguments.clear();
  for (int64_t slot : step.slots)
    arguments.push_back(at(slot));
  Kernel kernel = machine->kernels.kernel(step.kernel);
  WorkerPool &pool = machine->context.pool;
  int64_t chunks = std::min(step.tasks, 4 * pool.size());
  if (!machine->splitGemms || chunks <= 1) {
    kernel(arguments.data(), 0, step.tasks);
    return;
  }
  pool.parallelFor(chunks, [&](int64_t chunk) {
    kernel(arguments.data(), step.tasks * chunk / chunks, step.tasks * (chunk + 1) / chunks);
  });
}

void Stream::gemm(const GemmStep &step) {
  // How a product is cut depends on the program and the number of workers alone, never on who is
  // idle: the same run gives the same bits.
  constexpr double kOperationsPerTask = 1 << 24;
  constexpr int64_t kRows = 64;
  double operations = 2.0 * static_cast<double>(step.batch) * static_cast<double>(step.m) *
                      static_cast<double>(step.n) * static_cast<double>(step.k);
  auto pieces = static_cast<int64_t>(std::min(
      operations / kOperationsPerTask, 4.0 * static_cast<double>(machine->context.pool.size())));
  const void *bias = step.bias ? at(*step.bias) : nullptr;
  if (!machine->splitGemms || pieces < 2) {
    multiply(step, at(step.a), at(step.b), at(step.c), bias, 0, step.batch, 0, step.m);
    return;
  }
  int64_t byBatch = std::min(pieces, step.batch);
  int64_t byRows = std::clamp<int64_t>(pieces / byBatch, 1, (step.m + kRows - 1) / kRows);
  int64_t rows = ((step.m + byRows - 1) / byRows + kRows - 1) / kRows * kRows;
  machine->context.pool.parallelFor(byBatch * byRows, [&](int64_t task) {
    int64_t batch = task / byRows, block = task % byRows;
    multiply(step, at(step.a), at(step.b), at(step.c), bias, step.batch * batch / byBatch,
             step.batch * (batch + 1) / byBatch, std::min(step.m, block * rows),
             std::min(step.m, (block + 1) * rows));
  });
}

bool Stream::collective(const Instruction &instruction) {
  GroupMeeting &group = part->collectives[instruction.index]->groupOf(device);
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
  return part->collectives[instruction.index]->groupOf(device).completed() >=
         started[instruction.index];
}

void Stream::copy(const CopyStep &step) const {
  // Slots may overlap where a planner shifts a buffer.
  std::memmove(at(step.dst), at(step.src), static_cast<size_t>(step.bytes));
}

int64_t Stream::valueOf(int64_t slot) const {
  return readInteger(part->part->slots[slot].dtype, at(slot));
}

void Stream::setIndex(const LoopStep &loop, int64_t value) const {
  std::memcpy(at(loop.iv), &value, sizeof(value));
}

bool Stream::beginLoop(const Instruction &instruction) {
  const auto &loop = std::get<LoopStep>(instruction.step->action);
  auto valueOfBound = [&](const Bound &bound) {
    return bound.slot ? valueOf(*bound.slot) : bound.value;
  };
  LoopState &state = loops[instruction.index];
  auto begun = state.begin(valueOfBound(loop.lower), valueOfBound(loop.upper),
                           valueOfBound(loop.step), *instruction.step, device);
  if (!begun) {
    machine->fail(begun.message());
    return false;
  }
  if (*begun)
    setIndex(loop, state.value());
  else
    next = instruction.target;
  return true;
}

} // namespace tessera::runtime
