//===- Plan.cpp - Steps as operations on streams --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <map>

namespace tessera::runtime::gpu {

namespace {

constexpr int64_t kNever = int64_t(1) << 40;

class PlanBuilder {
public:
  PlanBuilder(const Program &program, const Part &part, int64_t workspaceBytes,
              const PlanOptions &options)
      : program(program), part(part), options(options) {
    plan.workspaceBytes = workspaceBytes;
  }

  Plan run() {
    planCollectives(part.steps);
    nameStreams();
    add(part.steps);
    closeSegment();
    for (Segment &segment : plan.segments)
      plan.numEvents = std::max(
          plan.numEvents, orderSegment(segment, static_cast<int64_t>(plan.streamNames.size())));
    return std::move(plan);
  }

private:
  using Op = PlanStep::Op;
  using Accesses = std::vector<Access>;

  void planCollectives(const StepList &steps);
  void nameStreams();
  void add(const StepList &steps) {
    for (const Step &step : steps)
      std::visit([&](const auto &action) { add(step, action); }, step.action);
  }
  void add(const Step &step, const LaunchStep &launch);
  void add(const Step &step, const GemmStep &gemm);
  void add(const Step &step, const CopyStep &copy);
  void add(const Step &step, const CollectiveStep &);
  void add(const Step &, const WaitStep &) {} // what reads the result conflicts with the collective
  void add(const Step &step, const TransferStep &transfer);
  void add(const Step &step, const LoopStep &loop);
  void add(const Step &step, const WhileStep &loop);
  void add(const Step &step, const IfStep &branch);

  Access access(int64_t slot, bool write) const {
    return {addressOf(part.slots[slot]), part.slots[slot].bytes, write};
  }
  /// Accesses of a step are made once, however often it is unrolled.
  template <typename Make> std::shared_ptr<const Accesses> accessesOf(const Step &step, Make make) {
    auto &known = accesses[step.order];
    if (!known)
      known = std::make_shared<const Accesses>(make());
    return known;
  }
  void emit(Operation operation) { open.operations.push_back(std::move(operation)); }
  void closeSegment();
  int64_t size() const { return static_cast<int64_t>(plan.code.size()); }
  PlanStep &emit(Op op, const Step &step, int64_t index = 0, int64_t target = 0) {
    closeSegment();
    return plan.code.emplace_back(PlanStep{op, &step, index, target, step.order});
  }
  /// Operations that the list unrolls to; a large number where it cannot be unrolled.
  int64_t unrolledSize(const StepList &steps) const;
  int64_t unrolledSize(const LoopStep &loop) const;

  const Program &program;
  const Part &part;
  PlanOptions options;
  Plan plan;
  Segment open;
  std::map<int64_t, std::shared_ptr<const Accesses>> accesses; ///< by order of the step
  std::map<int64_t, int64_t> collectiveOf, streamOf;           ///< by order of the step
};

} // namespace

void PlanBuilder::planCollectives(const StepList &steps) {
  for (const Step &step : steps) {
    if (auto *collective = std::get_if<CollectiveStep>(&step.action)) {
      PlannedCollective planned{
          &step, planRanks(program, part, *collective, options.reducesExactly), {}};
      for (const Operand &operand : collective->operands) {
        planned.accesses.push_back(access(operand.src, false));
        planned.accesses.push_back(access(operand.dst, true));
      }
      collectiveOf[step.order] = static_cast<int64_t>(plan.collectives.size());
      plan.collectives.push_back(std::move(planned));
    } else if (auto *loop = std::get_if<LoopStep>(&step.action)) {
      planCollectives(loop->body);
    } else if (auto *loop = std::get_if<WhileStep>(&step.action)) {
      planCollectives(loop->before);
      planCollectives(loop->body);
    } else if (auto *branch = std::get_if<IfStep>(&step.action)) {
      planCollectives(branch->thenSteps);
      planCollectives(branch->elseSteps);
    } else if (std::holds_alternative<TransferStep>(step.action)) {
      plan.hasTransfers = true;
    }
  }
}

void PlanBuilder::nameStreams() {
  plan.streamNames = {"compute"};
  for (PlannedCollective &planned : plan.collectives) {
    const auto &step = std::get<CollectiveStep>(planned.step->action);
    int64_t stream = 0; // moves within the device are computation
    if (planned.ranks.communicates) {
      auto it = std::find(plan.groupings.begin(), plan.groupings.end(), planned.ranks.groups);
      stream = 1 + (it - plan.groupings.begin());
      if (it == plan.groupings.end()) {
        plan.groupings.push_back(planned.ranks.groups);
        plan.streamNames.push_back("communication over " +
                                   sharding::toString(program.meshes[step.mesh], step.axes));
      }
      // Ranks must launch the calls of all communicators in one order, and a GPU may not have room
      // for two at once: they are serialised.
      if (!options.inProcess)
        planned.accesses.push_back({kLaunchOrder, 1, true});
    }
    streamOf[planned.step->order] = stream;
  }
  plan.streamNames.push_back("transfers");
  plan.streamNames.push_back("copies");
  plan.stagingBytes.assign(plan.streamNames.size(), 0);
  for (PlannedCollective &planned : plan.collectives) {
    int64_t stream = streamOf[planned.step->order], bytes = planned.ranks.stagingBytes;
    plan.stagingBytes[stream] = std::max(plan.stagingBytes[stream], bytes);
  }
}

void PlanBuilder::closeSegment() {
  if (open.operations.empty())
    return;
  plan.code.push_back({Op::segment, open.operations.front().step,
                       static_cast<int64_t>(plan.segments.size()), 0,
                       open.operations.front().step->order});
  plan.segments.push_back(std::move(open));
  open = {};
}

void PlanBuilder::add(const Step &step, const LaunchStep &launch) {
  auto make = [&] {
    Accesses list;
    for (size_t i = 0; i < launch.slots.size(); ++i)
      list.push_back(access(launch.slots[i], static_cast<int64_t>(i) >= launch.reads));
    return list;
  };
  emit({Operation::Kind::launch, &step, 0, 0, 0, 0, accessesOf(step, make), {}, -1});
}

void PlanBuilder::add(const Step &step, const GemmStep &gemm) {
  auto make = [&] {
    Accesses list = {access(gemm.a, false), access(gemm.b, false), access(gemm.c, true)};
    if (gemm.bias)
      list.push_back(access(*gemm.bias, false));
    return list;
  };
  emit({Operation::Kind::gemm, &step, 0, 0, 0, 0, accessesOf(step, make), {}, -1});
}

void PlanBuilder::add(const Step &step, const CopyStep &copy) {
  if (overlaps(part, copy)) {
    int64_t &bytes = plan.stagingBytes[plan.copyStream()];
    bytes = std::max(bytes, copy.bytes);
  }
  auto make = [&] {
    return Accesses{{addressOf(part.slots[copy.src]), copy.bytes, false},
                    {addressOf(part.slots[copy.dst]), copy.bytes, true}};
  };
  emit({Operation::Kind::copy, &step, 0, 0, 0, plan.copyStream(), accessesOf(step, make), {}, -1});
}

void PlanBuilder::add(const Step &step, const CollectiveStep &) {
  int64_t index = collectiveOf[step.order];
  auto make = [&] { return plan.collectives[index].accesses; };
  emit({Operation::Kind::collective,
        &step,
        index,
        0,
        0,
        streamOf[step.order],
        accessesOf(step, make),
        {},
        -1});
}

void PlanBuilder::add(const Step &step, const TransferStep &transfer) {
  emit(transfer.isSend ? Op::send : Op::recv, step, transfer.id);
}

int64_t PlanBuilder::unrolledSize(const LoopStep &loop) const {
  if (loop.lower.slot || loop.upper.slot || loop.step.slot || loop.step.value <= 0)
    return kNever;
  if (loop.upper.value <= loop.lower.value)
    return 0;
  double distance = static_cast<double>(loop.upper.value) - static_cast<double>(loop.lower.value);
  double size = (distance / static_cast<double>(loop.step.value) + 1) *
                static_cast<double>(unrolledSize(loop.body) + 1);
  return static_cast<int64_t>(std::min<double>(kNever, size));
}

int64_t PlanBuilder::unrolledSize(const StepList &steps) const {
  int64_t sum = 0;
  for (const Step &step : steps) {
    if (auto *loop = std::get_if<LoopStep>(&step.action))
      sum += unrolledSize(*loop);
    else if (std::holds_alternative<WhileStep>(step.action) ||
             std::holds_alternative<IfStep>(step.action) ||
             std::holds_alternative<TransferStep>(step.action))
      return kNever;
    else
      ++sum;
    if (sum >= kNever)
      return kNever;
  }
  return sum;
}

void PlanBuilder::add(const Step &step, const LoopStep &loop) {
  if (static_cast<int64_t>(open.operations.size()) + unrolledSize(loop) <= options.maxOperations) {
    auto make = [&] { return Accesses{access(loop.iv, true)}; };
    for (int64_t value = loop.lower.value; value < loop.upper.value;) {
      emit({Operation::Kind::index, &step, 0, loop.iv, value, 0, accessesOf(step, make), {}, -1});
      add(loop.body);
      if (__builtin_add_overflow(value, loop.step.value, &value))
        break;
    }
    return;
  }
  closeSegment();
  int64_t index = plan.numLoops++, head = size();
  emit(Op::loopBegin, step, index);
  add(loop.body);
  emit(Op::loopNext, step, index, head + 1);
  plan.code[head].target = size();
}

void PlanBuilder::add(const Step &step, const WhileStep &loop) {
  closeSegment();
  int64_t head = size();
  add(loop.before);
  closeSegment();
  int64_t test = size();
  emit(Op::jumpIfZero, step, loop.condition);
  add(loop.body);
  emit(Op::jump, step, 0, head);
  plan.code[test].target = size();
}

void PlanBuilder::add(const Step &step, const IfStep &branch) {
  closeSegment();
  int64_t test = size();
  emit(Op::jumpIfZero, step, branch.condition);
  add(branch.thenSteps);
  closeSegment();
  int64_t skip = size();
  emit(Op::jump, step);
  plan.code[test].target = size();
  add(branch.elseSteps);
  closeSegment();
  plan.code[skip].target = size();
}

bool overlaps(const Part &part, const CopyStep &copy) {
  int64_t from = addressOf(part.slots[copy.src]), to = addressOf(part.slots[copy.dst]);
  return from != to && from < to + copy.bytes && to < from + copy.bytes;
}

Plan planPart(const Program &program, int64_t part, int64_t workspaceBytes,
              const PlanOptions &options) {
  return PlanBuilder(program, program.parts[part], workspaceBytes, options).run();
}

} // namespace tessera::runtime::gpu
