//===- Device.cpp - Scheduling a virtual device ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include "../Execution/Deadlock.h"

namespace tessera::runtime {

void Device::prepare() {
  for (auto &stream : streams)
    stream->restart();
  state.store(queued);
}

void Device::notify() {
  int seen = state.load();
  while (true) {
    if (seen == idle) {
      if (!state.compare_exchange_weak(seen, queued))
        continue;
      machine.context.pool.push(*this);
      return;
    }
    // An event may follow the last check of a running device: it must check again before it rests.
    if (seen != running || state.compare_exchange_weak(seen, notified))
      return;
  }
}

void Device::run() {
  state.store(running);
  while (true) {
    runStreams();
    int seen = running;
    if (state.compare_exchange_strong(seen, idle))
      return;
    state.store(running);
  }
}

void Device::runStreams() {
  Track *trace = machine.trace ? &track : nullptr;
  while (!machine.failed.load(std::memory_order_relaxed)) {
    auto went = advanceOne(order, trace);
    if (!went)
      machine.fail(went.message());
    else if (!*went)
      return;
  }
}

bool Device::finished() const {
  for (auto &stream : streams)
    if (!stream->finished())
      return false;
  return true;
}

std::string Device::describeWait() const {
  for (auto &stream : streams)
    if (!stream->finished())
      return stream->describeWait();
  return {};
}

std::string Stream::describeWait() const {
  const Instruction &instruction = current();
  if (instruction.op == Op::recv) {
    auto it = transferred.find(instruction.index);
    int64_t sequence = it == transferred.end() ? 0 : it->second;
    const Channel &channel = *machine->channels.at(instruction.index);
    return waitText(*instruction.step) + " for " + devicesText(channel.missingSenders(sequence));
  }
  CollectiveOperation &operation = *loaded->collectives[instruction.index];
  return waitText(operation.definingStep()) + ", execution " +
         std::to_string(started[instruction.index]) + ", with " +
         devicesText(operation.groupOf(device).members());
}

} // namespace tessera::runtime
