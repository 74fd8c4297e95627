//===- IssueOperations.cpp - Issue operations to the driver ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include <algorithm>

namespace tessera::runtime::gpu {

Issue Issuer::issueOf(const Operation &op, const char *what) const {
  Issue issue{streams[op.stream], op.step, what, {}};
  if (executor.driver().checksTouches() && op.accesses)
    for (const Access &access : *op.accesses)
      if (spaceOf(access.begin) != kLaunchOrder)
        issue.touches.push_back({resolve(access.begin, op.stream), access.bytes, access.write});
  return issue;
}

/// The collective that an injected fault issues instead of `index`: the first two of a stream are
/// swapped.
static int64_t swapped(const Segment &segment, int64_t index) {
  std::map<int64_t, int64_t> firstOf; ///< by stream
  for (const Operation &each : segment.operations) {
    if (each.kind != Operation::Kind::collective || each.stream == 0)
      continue;
    int64_t first = firstOf.try_emplace(each.stream, each.index).first->second;
    if (first != each.index)
      return index == first ? each.index : index == each.index ? first : index;
  }
  return index;
}

Expected<bool> Issuer::issueSegment(const Segment &segment) {
  GpuDriver &driver = executor.driver();
  const PlantedFaults &faults = executor.options.faults;
  for (; operation < segment.operations.size(); ++operation, waited = false) {
    const Operation &op = segment.operations[operation];
    if (!waited)
      for (int64_t event : op.waits)
        if (executor.waitsIssued++ != faults.dropWait)
          TESSERA_RETURN_IF_ERROR(driver.wait(streams[op.stream], events[event]));
    waited = true;
    if (op.kind == Operation::Kind::collective && !executor.options.engine) {
      auto arrived = part.inProcess[op.index]->arrive(*this, op.stream);
      if (!arrived || !*arrived)
        return arrived;
    } else {
      bool swaps = op.kind == Operation::Kind::collective && faults.swapCollectives == device;
      TESSERA_RETURN_IF_ERROR(issue(op, swaps ? swapped(segment, op.index) : op.index));
    }
    if (op.record >= 0)
      TESSERA_RETURN_IF_ERROR(driver.record(events[op.record], streams[op.stream]));
  }
  operation = 0;
  return true;
}

Status Issuer::issue(const Operation &op, int64_t collective) {
  GpuDriver &driver = executor.driver();
  std::byte *workspace = part.plan.workspaceBytes ? resolve(kWorkspace, op.stream) : nullptr;
  auto withWorkspace = [&](Issue issue) {
    if (workspace && driver.checksTouches())
      issue.touches.push_back({workspace, part.plan.workspaceBytes, true});
    return issue;
  };
  switch (op.kind) {
  case Operation::Kind::launch: {
    const auto &step = std::get<LaunchStep>(op.step->action);
    std::vector<void *> slots;
    for (int64_t index : step.slots)
      slots.push_back(slot(index));
    return driver.launch(withWorkspace(issueOf(op, "launch")), step, std::move(slots), workspace);
  }
  case Operation::Kind::gemm: {
    const auto &step = std::get<GemmStep>(op.step->action);
    if (!op.group.empty()) {
      auto done =
          driver.gemmGroup(withWorkspace(issueOf(op, "gemm")), step, operandsOf(op), workspace);
      if (!done || *done)
        return done.status();
    }
    auto issueOne = [&](const GemmStep &one) {
      return driver.gemm(withWorkspace(issueOf(op, "gemm")), one, slot(one.a), slot(one.b),
                         slot(one.c), one.bias ? slot(*one.bias) : nullptr, workspace);
    };
    TESSERA_RETURN_IF_ERROR(issueOne(step));
    for (const Step *other : op.group)
      TESSERA_RETURN_IF_ERROR(issueOne(std::get<GemmStep>(other->action)));
    return {};
  }
  case Operation::Kind::contract: {
    const auto &step = std::get<ContractStep>(op.step->action);
    return driver.contract(issueOf(op, "contract"), step, slot(step.a), slot(step.b), slot(step.c));
  }
  case Operation::Kind::copy: {
    const auto &step = std::get<CopyStep>(op.step->action);
    if (!overlaps(*part.part, step))
      return driver.copy(issueOf(op, "copy"), slot(step.dst), slot(step.src), step.bytes);
    std::byte *between = resolve(kStaging, op.stream);
    TESSERA_RETURN_IF_ERROR(driver.copy(issueOf(op, "copy"), between, slot(step.src), step.bytes));
    return driver.copy(issueOf(op, "copy"), slot(step.dst), between, step.bytes);
  }
  case Operation::Kind::index:
    return driver.setIndex(issueOf(op, "loop"), slot(op.slot), op.value);
  case Operation::Kind::collective:
    return issueCollective(op, collective);
  case Operation::Kind::none:
    break; // only waits and records an event
  }
  return {};
}

/// Consecutive calls for fused tensors are one group: they start together.
Status Issuer::issueCollective(const Operation &op, int64_t collective) {
  const std::vector<RankAction> &actions =
      part.plan.collectives[collective].ranks.actions[position];
  auto isMove = [](const RankAction &each) { return each.kind == RankAction::Kind::move; };
  for (auto it = actions.begin(); it != actions.end();) {
    if (isMove(*it)) {
      TESSERA_RETURN_IF_ERROR(issueAction(op, *it++, collective));
      continue;
    }
    auto end = std::find_if(it, actions.end(), isMove);
    bool isGroup = end - it > 1;
    if (isGroup)
      TESSERA_RETURN_IF_ERROR(executor.options.engine->beginCalls());
    int64_t communicator = communicatorOf(op, collective);
    for (; it != end; ++it)
      TESSERA_RETURN_IF_ERROR(issueAction(op, *it, collective));
    if (isGroup)
      TESSERA_RETURN_IF_ERROR(
          executor.options.engine->endCalls(communicator, op.step->loc.c_str()));
  }
  return {};
}

int64_t Issuer::communicatorOf(const Operation &op, int64_t collective) const {
  const RankPlan &ranks = part.plan.collectives[collective].ranks;
  return part.communicators[op.stream - 1][ranks.groupOf[position]];
}

Status Issuer::issueAction(const Operation &op, const RankAction &action, int64_t collective) {
  const PlannedCollective &planned = part.plan.collectives[collective];
  Issue issue{streams[op.stream], planned.step, action.what, {}};
  auto at = [&](int64_t address) { return resolve(address, op.stream); };
  if (action.kind == RankAction::Kind::move) {
    MoveJob job{&action.strides,     action.dtype, action.reduction, action.scale, {},
                {at(action.target)}, action.value};
    for (int64_t source : action.sources)
      job.sources.push_back(at(source));
    return executor.driver().move(std::move(issue), std::move(job));
  }
  const std::vector<int64_t> &group = planned.ranks.groups[planned.ranks.groupOf[position]];
  int64_t rank = std::lower_bound(group.begin(), group.end(), device) - group.begin();
  int64_t communicator = communicatorOf(op, collective);
  bool wrongCount = executor.options.faults.wrongCount == device;
  const Issue timed{issue.stream, issue.step, issue.what, {}};
  TESSERA_RETURN_IF_ERROR(executor.driver().beginTimed(timed));
  if (action.kind == RankAction::Kind::call) {
    RankCall call = action.call;
    call.count -= wrongCount && call.count > 0;
    TESSERA_RETURN_IF_ERROR(executor.options.engine->call(
        std::move(issue), communicator, rank, call, at(action.send), at(action.receive)));
    return executor.driver().endTimed(timed);
  }
  std::vector<RankMessage> messages;
  for (const RankAction::Message &each : action.messages)
    messages.push_back({each.peer, each.send, at(each.address),
                        each.bytes - (wrongCount && each.send ? sizeOf(action.dtype) : 0)});
  TESSERA_RETURN_IF_ERROR(
      executor.options.engine->exchange(std::move(issue), communicator, rank, std::move(messages)));
  return executor.driver().endTimed(timed);
}

} // namespace tessera::runtime::gpu
