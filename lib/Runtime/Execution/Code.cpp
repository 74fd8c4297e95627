//===- Code.cpp - A part's steps as a flat list with jumps ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Code.h"

#include <cstring>
#include <map>

namespace tessera::runtime {

namespace {

class Flattener {
public:
  Code code;

  void add(const StepList &steps) {
    for (const Step &step : steps)
      std::visit([&](const auto &action) { add(step, action); }, step.action);
  }

private:
  using Op = Instruction::Op;

  int64_t size() const { return static_cast<int64_t>(code.instructions.size()); }
  Instruction &emit(Op op, const Step &step, int64_t index = 0, int64_t target = 0) {
    return code.instructions.emplace_back(
        Instruction{op, &step, step.order, index, target, nullptr});
  }

  void add(const Step &step, const LaunchStep &launch) {
    if (launch.joins)
      code.instructions.back().joined = &step;
    else
      emit(Op::launch, step);
  }
  void add(const Step &step, const GemmStep &) { emit(Op::gemm, step); }
  void add(const Step &step, const ContractStep &) { emit(Op::contract, step); }
  void add(const Step &step, const CopyStep &) { emit(Op::copy, step); }
  void add(const Step &step, const CollectiveStep &collective) {
    auto index = static_cast<int64_t>(code.collectives.size());
    code.collectives.push_back(&step);
    if (collective.token)
      tokens[*collective.token] = index;
    emit(Op::collective, step, index);
  }
  void add(const Step &step, const WaitStep &wait) { emit(Op::wait, step, tokens[wait.token]); }
  void add(const Step &step, const TransferStep &transfer) {
    emit(transfer.isSend ? Op::send : Op::recv, step, transfer.id);
  }
  void add(const Step &step, const LoopStep &loop) {
    int64_t index = code.numLoops++, head = size();
    emit(Op::loopBegin, step, index);
    add(loop.body);
    emit(Op::loopNext, step, index, head + 1);
    code.instructions[head].target = size();
  }
  void add(const Step &step, const WhileStep &loop) {
    int64_t head = size();
    add(loop.before);
    int64_t test = size();
    emit(Op::jumpIfZero, step, loop.condition);
    add(loop.body);
    emit(Op::jump, step, 0, head);
    code.instructions[test].target = size();
  }
  void add(const Step &step, const IfStep &branch) {
    int64_t test = size();
    emit(Op::jumpIfZero, step, branch.condition);
    add(branch.thenSteps);
    int64_t skip = size();
    emit(Op::jump, step);
    code.instructions[test].target = size();
    add(branch.elseSteps);
    code.instructions[skip].target = size();
  }

  std::map<int64_t, int64_t> tokens; ///< to the collective that starts them
};

} // namespace

Code flatten(const Part &part) {
  Flattener flattener;
  flattener.add(part.steps);
  return std::move(flattener.code);
}

int64_t tripsOf(int64_t lower, int64_t upper, int64_t step) {
  if (lower >= upper)
    return 0;
  uint64_t distance = static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower) - 1;
  return static_cast<int64_t>(distance / static_cast<uint64_t>(step)) + 1;
}

Expected<bool> LoopState::begin(int64_t lower, int64_t upper, int64_t stride, const Step &loop,
                                int64_t device) {
  if (stride <= 0)
    return Status::error("device " + std::to_string(device) + ": the loop at " + loop.loc +
                         " has a step of " + std::to_string(stride) + ", it must be positive");
  now = lower;
  step = stride;
  left = tripsOf(lower, upper, stride);
  return left > 0;
}

bool LoopState::next() {
  if (--left <= 0)
    return false;
  now += step;
  return true;
}

int64_t readInteger(DType dtype, const void *at) {
  if (dtype == DType::i32) {
    int32_t narrow;
    std::memcpy(&narrow, at, sizeof(narrow));
    return narrow;
  }
  int64_t value = 0; // of little endian machines
  std::memcpy(&value, at, static_cast<size_t>(sizeOf(dtype)));
  return value;
}

} // namespace tessera::runtime
