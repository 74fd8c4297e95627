//===- Code.cpp - A part's steps as a flat list with jumps ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Code.h"

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
    return code.instructions.emplace_back(Instruction{op, &step, step.order, index, target});
  }

  void add(const Step &step, const LaunchStep &) { emit(Op::launch, step); }
  void add(const Step &step, const GemmStep &) { emit(Op::gemm, step); }
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

} // namespace tessera::runtime
