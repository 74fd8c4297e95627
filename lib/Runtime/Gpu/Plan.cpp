//===- Plan.cpp - Lower steps to operations on streams --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera::runtime::gpu {

namespace {

constexpr int64_t kNever = int64_t(1) << 40;

class PlanBuilder {
public:
  PlanBuilder(const Program &program, const Part &part, int64_t workspaceBytes,
              const PlanOptions &options)
      : program(program), part(part), options(options), code(flatten(part)),
        isTarget(code.instructions.size() + 1), placeOf(code.instructions.size() + 1) {
    plan.workspaceBytes = workspaceBytes;
    plan.numLoops = code.numLoops;
  }

  Plan run() {
    planCollectives();
    nameStreams();
    for (size_t i = 0; i < code.instructions.size(); ++i)
      if (const Instruction &each = code.instructions[i];
          each.op == Instruction::Op::jump && each.target <= static_cast<int64_t>(i))
        isTarget[each.target] = true; // forward targets are found on the way
    add(0, size_t(code.instructions.size()));
    closeSegment();
    placeOf[code.instructions.size()] = size();
    for (PlanStep &step : plan.code)
      step.target = placeOf[step.target];
    for (Segment &segment : plan.segments)
      plan.numEvents = std::max(
          plan.numEvents, orderSegment(segment, static_cast<int64_t>(plan.streamNames.size())));
    return std::move(plan);
  }

private:
  using Op = PlanStep::Op;
  using Accesses = std::vector<Access>;

  void planCollectives();
  void nameStreams();
  /// Adds instructions [begin, end).
  void add(size_t begin, size_t end);
  /// Adds an instruction; returns the index of the next one.
  size_t add(size_t index);
  void add(const Step &step, const LaunchStep &launch);
  /// A launch that joins a product is a step of its own here.
  void addJoined(const Instruction &product) {
    if (product.joined)
      add(*product.joined, std::get<LaunchStep>(product.joined->action));
  }
  void add(const Step &step, const GemmStep &gemm);
  bool joinsGroup(const GemmStep &gemm) const;
  void add(const Step &step, const ContractStep &contract);
  void add(const Step &step, const CopyStep &copy);
  void addCollective(const Step &step, int64_t index);
  size_t addLoop(size_t index);

  Access access(int64_t slot, bool write) const {
    return {addressOf(part.slots[slot]), part.slots[slot].bytes, write};
  }
  /// Accesses of a step are created once and shared by its unrolled copies.
  template <typename Make> std::shared_ptr<const Accesses> accessesOf(const Step &step, Make make) {
    auto &known = accesses[step.order];
    if (!known)
      known = std::make_shared<const Accesses>(make());
    return known;
  }
  void emit(Operation operation) { open.operations.push_back(std::move(operation)); }
  void closeSegment();
  int64_t size() const { return static_cast<int64_t>(plan.code.size()); }
  /// `target` is an instruction until all targets have positions in the plan.
  void emit(Op op, const Instruction &at) {
    closeSegment();
    plan.code.push_back({op, at.step, at.index, at.target, at.order});
    isTarget[at.target] = true;
  }
  /// The number of operations that instructions, or all trips of a loop, unroll to; a large number
  /// if they cannot be unrolled.
  int64_t unrolledSize(size_t begin, size_t end) const;
  int64_t unrolledSize(size_t loop) const;

  const Program &program;
  const Part &part;
  PlanOptions options;
  const Code code;
  std::vector<bool> isTarget;   ///< instructions that begin a segment
  std::vector<int64_t> placeOf; ///< in the plan, of targets
  Plan plan;
  Segment open;
  std::map<int64_t, std::shared_ptr<const Accesses>> accesses; ///< by order of the step
  std::vector<int64_t> streamOf;                               ///< by collective
};

} // namespace

void PlanBuilder::planCollectives() {
  for (const Step *step : code.collectives) {
    const auto &collective = std::get<CollectiveStep>(step->action);
    PlannedCollective planned{
        step, planRanks(program, part, collective, options.reducesExactly), {}};
    for (const Operand &operand : collective.operands) {
      planned.accesses.push_back(access(operand.src, false));
      planned.accesses.push_back(access(operand.dst, true));
    }
    plan.collectives.push_back(std::move(planned));
  }
  for (const Instruction &each : code.instructions)
    plan.hasTransfers |= each.op == Instruction::Op::send || each.op == Instruction::Op::recv;
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
      // Ranks must launch the calls of all communicators in one order, and a GPU may have no room
      // for two at once: they are serialized.
      if (!options.inProcess)
        planned.accesses.push_back({kLaunchOrder, 1, true});
    }
    streamOf.push_back(stream);
  }
  plan.streamNames.push_back("transfers");
  plan.streamNames.push_back("copies");
  plan.stagingBytes.assign(plan.streamNames.size(), 0);
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    int64_t &bytes = plan.stagingBytes[streamOf[i]];
    bytes = std::max(bytes, plan.collectives[i].ranks.stagingBytes);
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

/// Whether (extent, stride) pairs address distinct elements.
static bool areDistinct(std::vector<std::pair<int64_t, int64_t>> dims) {
  std::sort(dims.begin(), dims.end(),
            [](const auto &a, const auto &b) { return a.second < b.second; });
  int64_t span = 1;
  for (auto [extent, stride] : dims) {
    if (extent == 1)
      continue;
    if (stride < span)
      return false;
    span += (extent - 1) * stride;
  }
  return true;
}

/// Batches over two dimensions without a common stride are consecutive steps, one for each index of
/// the outer dimension, which may become one call.
bool PlanBuilder::joinsGroup(const GemmStep &gemm) const {
  if (open.operations.empty() || open.operations.back().kind != Operation::Kind::gemm)
    return false;
  const Operation &last = open.operations.back();
  const auto &first = std::get<GemmStep>(last.step->action);
  auto shape = [](const GemmStep &of) {
    return std::tie(of.dtype, of.resultDType, of.batch, of.m, of.n, of.k, of.transA, of.transB,
                    of.lda, of.ldb, of.ldc, of.strideA, of.strideB, of.strideC, of.accumulate);
  };
  if (gemm.hasEpilogue() || first.hasEpilogue() || shape(gemm) != shape(first))
    return false;
  const GemmStep &before =
      last.group.empty() ? first : std::get<GemmStep>(last.group.back()->action);
  const GemmStep &second =
      last.group.empty() ? gemm : std::get<GemmStep>(last.group.front()->action);
  int64_t step = 0; ///< of the result, in bytes
  for (int64_t GemmStep::*operand : {&GemmStep::a, &GemmStep::b, &GemmStep::c}) {
    auto distance = [&](const GemmStep &from, const GemmStep &to) {
      return addressOf(part.slots[to.*operand]) - addressOf(part.slots[from.*operand]);
    };
    step = distance(first, second);
    if (distance(before, gemm) != step)
      return false;
  }
  int64_t size = sizeOf(gemm.resultDType.value_or(gemm.dtype));
  auto count = static_cast<int64_t>(last.group.size()) + 2;
  if (step <= 0 || step % size != 0 ||
      !areDistinct(
          {{count, step / size}, {gemm.batch, gemm.strideC}, {gemm.m, gemm.ldc}, {gemm.n, 1}}))
    return false;
  // Slots of slices extend to the end of the sliced buffer.
  Access result = access(first.c, true);
  auto isApart = [&](int64_t slot) {
    Access read = access(slot, false);
    return read.begin + read.bytes <= result.begin || result.begin + result.bytes <= read.begin;
  };
  return isApart(first.a) && isApart(first.b) && isApart(gemm.a) && isApart(gemm.b);
}

void PlanBuilder::add(const Step &step, const GemmStep &gemm) {
  if (joinsGroup(gemm)) {
    Operation &last = open.operations.back();
    auto all = std::make_shared<Accesses>(*last.accesses);
    for (Access each : {access(gemm.a, false), access(gemm.b, false), access(gemm.c, true)})
      all->push_back(each);
    last.accesses = std::move(all);
    last.group.push_back(&step);
    return;
  }
  auto make = [&] {
    Accesses list = {access(gemm.a, false), access(gemm.b, false), access(gemm.c, true)};
    if (gemm.bias)
      list.push_back(access(*gemm.bias, false));
    return list;
  };
  emit({Operation::Kind::gemm, &step, 0, 0, 0, 0, accessesOf(step, make), {}, -1});
}

void PlanBuilder::add(const Step &step, const ContractStep &contract) {
  auto make = [&] {
    return Accesses{access(contract.a, false), access(contract.b, false), access(contract.c, true)};
  };
  emit({Operation::Kind::contract, &step, 0, 0, 0, 0, accessesOf(step, make), {}, -1});
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

void PlanBuilder::addCollective(const Step &step, int64_t index) {
  auto make = [&] { return plan.collectives[index].accesses; };
  emit({Operation::Kind::collective,
        &step,
        index,
        0,
        0,
        streamOf[index],
        accessesOf(step, make),
        {},
        -1});
}

int64_t PlanBuilder::unrolledSize(size_t index) const {
  const Instruction &at = code.instructions[index];
  const auto &loop = std::get<LoopStep>(at.step->action);
  if (loop.lower.slot || loop.upper.slot || loop.step.slot || loop.step.value <= 0)
    return kNever;
  if (loop.upper.value <= loop.lower.value)
    return 0;
  double distance = static_cast<double>(loop.upper.value) - static_cast<double>(loop.lower.value);
  double size = (distance / static_cast<double>(loop.step.value) + 1) *
                static_cast<double>(unrolledSize(index + 1, at.target - 1) + 1);
  return static_cast<int64_t>(std::min<double>(kNever, size));
}

int64_t PlanBuilder::unrolledSize(size_t begin, size_t end) const {
  int64_t sum = 0;
  for (size_t i = begin; i < end && sum < kNever; ++i) {
    switch (code.instructions[i].op) {
    case Instruction::Op::loopBegin:
      sum += unrolledSize(i);
      i = static_cast<size_t>(code.instructions[i].target) - 1;
      break;
    case Instruction::Op::send:
    case Instruction::Op::recv:
    case Instruction::Op::jumpIfZero:
    case Instruction::Op::jump:
      return kNever;
    default:
      ++sum;
    }
  }
  return std::min(sum, kNever);
}

void PlanBuilder::add(size_t begin, size_t end) {
  for (size_t i = begin; i < end;) {
    if (isTarget[i])
      closeSegment();
    placeOf[i] = size();
    i = add(i);
  }
}

size_t PlanBuilder::add(size_t index) {
  const Instruction &at = code.instructions[index];
  const Step &step = *at.step;
  switch (at.op) {
  case Instruction::Op::launch:
    add(step, std::get<LaunchStep>(step.action));
    break;
  case Instruction::Op::gemm:
    add(step, std::get<GemmStep>(step.action));
    addJoined(at);
    break;
  case Instruction::Op::copy:
    add(step, std::get<CopyStep>(step.action));
    break;
  case Instruction::Op::collective:
    addCollective(step, at.index);
    break;
  case Instruction::Op::contract:
    add(step, std::get<ContractStep>(step.action));
    addJoined(at);
    break;
  case Instruction::Op::wait:
    break; // readers of the result conflict with the collective
  case Instruction::Op::send:
    emit(Op::send, at);
    break;
  case Instruction::Op::recv:
    emit(Op::recv, at);
    break;
  case Instruction::Op::loopBegin:
    return addLoop(index);
  case Instruction::Op::loopNext:
    emit(Op::loopNext, at);
    break;
  case Instruction::Op::jumpIfZero:
    emit(Op::jumpIfZero, at);
    break;
  case Instruction::Op::jump:
    emit(Op::jump, at);
    break;
  }
  return index + 1;
}

/// Unrolls the loop, or begins it; the next instruction is after it, or in its body.
size_t PlanBuilder::addLoop(size_t index) {
  const Instruction &at = code.instructions[index];
  const auto &loop = std::get<LoopStep>(at.step->action);
  if (static_cast<int64_t>(open.operations.size()) + unrolledSize(index) > options.maxOperations) {
    emit(Op::loopBegin, at);
    return index + 1;
  }
  auto make = [&] { return Accesses{access(loop.iv, true)}; };
  for (int64_t value = loop.lower.value; value < loop.upper.value;) {
    emit({Operation::Kind::index,
          at.step,
          0,
          loop.iv,
          value,
          0,
          accessesOf(*at.step, make),
          {},
          -1});
    add(index + 1, at.target - 1);
    if (__builtin_add_overflow(value, loop.step.value, &value))
      break;
  }
  return static_cast<size_t>(at.target);
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
