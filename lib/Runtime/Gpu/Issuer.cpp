//===- Issuer.cpp - Issue one part on one device --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "../Execution/Deadlock.h"

#include <cstring>

namespace tessera::runtime::gpu {

Issuer::Issuer(GpuExecutor &executor, GpuPart &part, int64_t device)
    : part(part), device(device),
      position(executor.program().meshes[part.part->mesh].positionOf(device)),
      executions(part.plan.collectives.size()), executor(executor),
      graphs(part.plan.segments.size()), loops(part.plan.numLoops) {}

Status Issuer::open(std::byte *opened) {
  constants = opened;
  GpuDriver &driver = executor.driver();
  auto memory = driver.allocate(device, part.blockBytes);
  if (!memory)
    return memory.status();
  block = *memory;
  for (const std::string &name : part.plan.streamNames) {
    auto stream = driver.createStream(device, name + " of device " + std::to_string(device));
    if (!stream)
      return stream.status();
    streams.push_back(*stream);
  }
  for (int64_t i = 0; i <= part.plan.numEvents; ++i) {
    auto event = driver.createEvent(device);
    if (!event)
      return event.status();
    events.push_back(*event);
  }
  for (const Coordinate &coordinate : part.part->coordinates) {
    const sharding::Mesh &of = executor.program().meshes[coordinate.mesh.value_or(part.part->mesh)];
    int64_t value =
        sharding::linearIndex(of, coordinate.axes, of.coordinate(of.positionOf(device)));
    TESSERA_RETURN_IF_ERROR(driver.write(
        device, slot(coordinate.slot), reinterpret_cast<const std::byte *>(&value), sizeof(value)));
  }
  return prepareProducts();
}

Status Issuer::prepareProducts() {
  for (const Segment &segment : part.plan.segments)
    for (const Operation &each : segment.operations)
      if (each.kind == Operation::Kind::gemm) {
        std::vector<const Step *> products = each.group;
        products.push_back(each.step);
        for (const Step *product : products) {
          const auto &step = std::get<GemmStep>(product->action);
          TESSERA_RETURN_IF_ERROR(
              executor.driver().prepareGemm(step, slot(step.a), slot(step.b), slot(step.c),
                                            step.bias ? slot(*step.bias) : nullptr));
        }
        if (!each.group.empty())
          TESSERA_RETURN_IF_ERROR(executor.driver().prepareGroup(
              device, std::get<GemmStep>(each.step->action), operandsOf(each)));
      }
  return {};
}

std::vector<GemmOperands> Issuer::operandsOf(const Operation &operation) const {
  std::vector<GemmOperands> operands;
  auto add = [&](const Step *product) {
    const auto &step = std::get<GemmStep>(product->action);
    operands.push_back({slot(step.a), slot(step.b), slot(step.c)});
  };
  add(operation.step);
  for (const Step *product : operation.group)
    add(product);
  return operands;
}

void Issuer::restart() {
  place = 0;
  operation = 0;
  waited = false;
}

std::byte *Issuer::resolve(int64_t address, int64_t stream) const {
  int64_t space = spaceOf(address), offset = address - space;
  if (space == kConstants)
    return constants + offset;
  if (space == kWorkspace)
    return block + part.workspaceOffset + offset;
  if (space == kStaging)
    return block + part.stagingOffsets[stream] + offset;
  return block + offset;
}

Expected<bool> Issuer::advance() {
  const PlanStep &step = part.plan.code[place];
  next = place + 1;
  Expected<bool> went = true;
  switch (step.op) {
  case PlanStep::Op::segment:
    went = runSegment(step.index);
    break;
  case PlanStep::Op::send:
    went = executor.transfers.at(step.index)->trySend(*this);
    break;
  case PlanStep::Op::recv:
    went = executor.transfers.at(step.index)->tryReceive(*this);
    break;
  case PlanStep::Op::loopBegin:
    went = beginLoop(step);
    break;
  case PlanStep::Op::loopNext: {
    LoopState &loop = loops[step.index];
    if (!loop.next())
      break;
    int64_t iv = std::get<LoopStep>(step.step->action).iv;
    TESSERA_RETURN_IF_ERROR(
        executor.driver().setIndex({streams[0], step.step, "loop", {}}, slot(iv), loop.value()));
    next = static_cast<size_t>(step.target);
    break;
  }
  case PlanStep::Op::jumpIfZero: {
    int64_t value = 0;
    went = readValue(step.index, value);
    if (went && *went && value == 0)
      next = static_cast<size_t>(step.target);
    break;
  }
  case PlanStep::Op::jump:
    next = static_cast<size_t>(step.target);
    break;
  }
  if (went && *went)
    place = next;
  return went;
}

Expected<bool> Issuer::runSegment(int64_t index) {
  const Segment &segment = part.plan.segments[index];
  GpuDriver &driver = executor.driver();
  // In one process, other devices take part in the collectives of a segment, so a device has no
  // separate graph.
  bool alone = executor.options.engine || part.plan.groupings.empty();
  bool captures = executor.options.capture && alone && !part.plan.hasTransfers;
  if (!captures) {
    auto done = issueSegment(segment);
    if (done && *done)
      countSegment(segment);
    return done;
  }
  countSegment(segment);
  if (!graphs[index]) {
    // The first execution is without a graph: a driver loads code at the first launch, and NCCL
    // connects ranks at their first call; neither is allowed during a capture.
    const int64_t waitsBefore = executor.waitsIssued;
    for (bool capture : {false, true}) {
      executor.waitsIssued = waitsBefore;
      if (capture)
        TESSERA_RETURN_IF_ERROR(driver.beginCapture(streams[0]));
      auto done = issueSegment(segment);
      if (!done)
        return done;
    }
    auto graph = driver.endCapture(streams[0]);
    if (!graph)
      return graph.status();
    graphs[index] = *graph;
    return true;
  }
  TESSERA_RETURN_IF_ERROR(driver.launchGraph(graphs[index], streams[0]));
  return true;
}

void Issuer::skipSegment() {
  countSegment(part.plan.segments[part.plan.code[place].index]);
  ++place;
}

void Issuer::countSegment(const Segment &segment) {
  for (const Operation &each : segment.operations) {
    if (each.kind != Operation::Kind::collective)
      continue;
    const RankPlan &ranks = part.plan.collectives[each.index].ranks;
    int64_t sequence = executions[each.index]++, group = ranks.groupOf[position];
    if (group < 0 || ranks.groups[group].front() != device)
      continue;
    const auto &step = std::get<CollectiveStep>(each.step->action);
    int64_t now = executor.clock.now();
    executor.recorder.add(
        {step.id, toString(step.kind), each.step->loc, sequence, device, now, now});
  }
}

Expected<bool> Issuer::readValue(int64_t slotIndex, int64_t &value) {
  GpuDriver &driver = executor.driver();
  auto done = driver.synchronize(streams[0], /*forStep=*/true);
  if (!done || !*done)
    return done;
  DType dtype = part.part->slots[slotIndex].dtype;
  std::byte bytes[8] = {};
  TESSERA_RETURN_IF_ERROR(driver.read(device, bytes, slot(slotIndex), sizeOf(dtype)));
  value = readInteger(dtype, bytes);
  return true;
}

Expected<bool> Issuer::beginLoop(const PlanStep &step) {
  const auto &loop = std::get<LoopStep>(step.step->action);
  int64_t bounds[3];
  const Bound *from[3] = {&loop.lower, &loop.upper, &loop.step};
  for (int i = 0; i < 3; ++i) {
    bounds[i] = from[i]->value;
    if (!from[i]->slot)
      continue;
    auto read = readValue(*from[i]->slot, bounds[i]);
    if (!read || !*read)
      return read;
  }
  LoopState &state = loops[step.index];
  auto begun = state.begin(bounds[0], bounds[1], bounds[2], *step.step, device);
  if (!begun)
    return begun;
  if (*begun)
    TESSERA_RETURN_IF_ERROR(executor.driver().setIndex({streams[0], step.step, "loop", {}},
                                                       slot(loop.iv), state.value()));
  else
    next = static_cast<size_t>(step.target);
  return true;
}

std::string Issuer::describeWait() const {
  const Step *step = executor.driver().stuckAt(device);
  if (!step && !finished() && part.plan.code[place].op == PlanStep::Op::segment)
    step = part.plan.segments[part.plan.code[place].index].operations[operation].step;
  if (step && std::holds_alternative<CollectiveStep>(step->action)) {
    std::string text = waitText(*step);
    for (const PlannedCollective &planned : part.plan.collectives)
      if (int64_t group = planned.ranks.groupOf[position]; planned.step == step && group >= 0)
        text += ", with " + devicesText(planned.ranks.groups[group]);
    return text;
  }
  if (step && std::holds_alternative<TransferStep>(step->action))
    return waitText(*step) + missingText(*step);
  if (finished())
    return {};
  const PlanStep &at = part.plan.code[place];
  if (at.op == PlanStep::Op::recv)
    return waitText(*at.step) + missingText(*at.step);
  if (at.op == PlanStep::Op::send)
    return waitText(*at.step) + " until its last message is received";
  return "waits for the condition of the step" +
         (at.step->loc.empty() ? "" : " at " + at.step->loc);
}

/// " for device 1": the devices whose messages are missing.
std::string Issuer::missingText(const Step &step) const {
  const auto &transfer = std::get<TransferStep>(step.action);
  if (transfer.isSend)
    return {};
  auto missing = executor.transfers.at(transfer.id)->missingFor(device);
  return missing.empty() ? "" : " for " + devicesText(missing);
}

} // namespace tessera::runtime::gpu
