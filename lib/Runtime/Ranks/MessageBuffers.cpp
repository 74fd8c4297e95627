//===- MessageBuffers.cpp - Number of messages by which senders run ahead -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageBuffers.h"

#include "../Execution/Deadlock.h"

#include <algorithm>

namespace tessera::runtime {

namespace {

/// Limit on the simulated messages of a step; programs with more are not simulated.
constexpr int64_t kMaxEvents = 4000000;

struct Counts {
  int64_t sent = 0, received = 0, room = 1;
};

/// Whether a loop is skipped: its trips are known, and its body neither sends nor receives.
bool isQuiet(const Code &code, const Instruction &loop, size_t body) {
  auto isKnown = [](const Instruction &each) {
    const auto &bounds = std::get<LoopStep>(each.step->action);
    return !bounds.lower.slot && !bounds.upper.slot && !bounds.step.slot;
  };
  auto isQuietAlone = [&](const Instruction &each) {
    switch (each.op) {
    case Instruction::Op::send:
    case Instruction::Op::recv:
    case Instruction::Op::jumpIfZero:
      return false;
    case Instruction::Op::loopBegin:
      return isKnown(each);
    default:
      return true;
    }
  };
  auto first = code.instructions.begin();
  return isKnown(loop) &&
         std::all_of(first + static_cast<std::ptrdiff_t>(body),
                     first + static_cast<std::ptrdiff_t>(loop.target), isQuietAlone);
}

/// The simulation state of a part.
struct PartState {
  const Code *code;
  std::vector<bool> quiet; ///< loops without transfers, by their start
  size_t place = 0;
  std::vector<int64_t> left; ///< trips, by loop
};

class TransferSimulation {
public:
  explicit TransferSimulation(const std::vector<const Code *> &parts) {
    for (const Code *code : parts) {
      const auto &list = code->instructions;
      std::vector<bool> quiet(list.size());
      for (size_t i = 0; i < list.size(); ++i)
        quiet[i] = list[i].op == Instruction::Op::loopBegin && isQuiet(*code, list[i], i + 1);
      actors.push_back({code, quiet, 0, std::vector<int64_t>(static_cast<size_t>(code->numLoops))});
    }
  }
  Expected<MessageBuffers> run();

private:
  /// Advances to the end, a wait, or an unknown branch; false without progress.
  bool advance(PartState &actor);
  /// Executes the actor's current step if possible; it continues at `next`.
  bool perform(PartState &actor, size_t &next);
  /// Adds a buffer for the first blocked sender; false if there is none.
  bool addBuffer();
  Status stuck() const;

  std::vector<PartState> actors;
  std::map<int64_t, Counts> transfers;
  int64_t events = 0;
  bool known = true;
};

} // namespace

bool TransferSimulation::perform(PartState &actor, size_t &next) {
  const Instruction &step = actor.code->instructions[actor.place];
  auto target = static_cast<size_t>(step.target);
  switch (step.op) {
  default:
    return true; // does not count as an event
  case Instruction::Op::send: {
    Counts &counts = transfers[step.index];
    if (counts.sent - counts.received >= counts.room)
      return false;
    ++counts.sent;
    break;
  }
  case Instruction::Op::recv: {
    Counts &counts = transfers[step.index];
    if (counts.received >= counts.sent)
      return false;
    ++counts.received;
    break;
  }
  case Instruction::Op::loopBegin: {
    const auto &loop = std::get<LoopStep>(step.step->action);
    known &= !loop.lower.slot && !loop.upper.slot && !loop.step.slot;
    int64_t trips =
        loop.step.value > 0 ? tripsOf(loop.lower.value, loop.upper.value, loop.step.value) : 0;
    actor.left[step.index] = trips;
    next = trips > 0 && !actor.quiet[actor.place] ? next : target;
    break;
  }
  case Instruction::Op::loopNext:
    next = --actor.left[step.index] > 0 ? target : next;
    break;
  case Instruction::Op::jumpIfZero:
    known = false;
    break;
  case Instruction::Op::jump:
    next = target;
    break;
  }
  known &= ++events < kMaxEvents;
  return true;
}

bool TransferSimulation::advance(PartState &actor) {
  bool went = false;
  while (known && actor.place < actor.code->instructions.size()) {
    size_t next = actor.place + 1;
    if (!perform(actor, next))
      return went;
    actor.place = next;
    went = true;
  }
  return went;
}

bool TransferSimulation::addBuffer() {
  for (PartState &actor : actors) {
    if (actor.place >= actor.code->instructions.size())
      continue;
    const Instruction &step = actor.code->instructions[actor.place];
    if (step.op == Instruction::Op::send) {
      ++transfers[step.index].room;
      return true;
    }
  }
  return false;
}

Status TransferSimulation::stuck() const {
  DeadlockReport report("part");
  for (size_t i = 0; i < actors.size(); ++i) {
    const auto &[code, quiet, place, left] = actors[i];
    bool hasFinished = place == code->instructions.size();
    report.add(static_cast<int64_t>(i),
               hasFinished ? "" : waitText(*code->instructions[place].step));
  }
  return Status::error(report.text());
}

Expected<MessageBuffers> TransferSimulation::run() {
  for (bool finished = false; known && !finished;) {
    bool went = false;
    for (PartState &actor : actors)
      went |= advance(actor);
    finished = true;
    for (const PartState &actor : actors)
      finished &= actor.place >= actor.code->instructions.size();
    if (known && !went && !finished && !addBuffer())
      return stuck();
  }
  MessageBuffers buffers;
  buffers.isKnown = known;
  for (auto &[id, counts] : transfers) {
    if (known && counts.sent != counts.received)
      return Status::error("transfer " + std::to_string(id) + " is sent " +
                           std::to_string(counts.sent) + " times a step and received " +
                           std::to_string(counts.received) + " times");
    buffers.messages[id] = known ? counts.room : 1;
  }
  return buffers;
}

Expected<MessageBuffers> messageBuffersOf(const std::vector<const Code *> &parts) {
  return TransferSimulation(parts).run();
}

} // namespace tessera::runtime
