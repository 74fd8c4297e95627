//===- RankPlan.cpp - A collective step as library calls ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankPlanner.h"

#include <algorithm>
#include <numeric>

namespace tessera::runtime {

using sharding::CollectiveKind;
using sharding::ReduceKind;

bool librariesReduceExactly(DType dtype, ReduceKind kind) {
  if (dtype == DType::i16)
    return false;
  bool ordered = kind == ReduceKind::max || kind == ReduceKind::min;
  return !(ordered && isFloat(dtype));
}

static int64_t alignedUp(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

RankPlanner::RankPlanner(const Program &program, const Part &part, const CollectiveStep &step,
                         ReducesExactly reducesExactly)
    : part(part), step(step), reducesExactly(reducesExactly), partMesh(program.meshes[part.mesh]),
      mesh(program.meshes[step.mesh]),
      targetMesh(program.meshes[step.targetMesh.value_or(step.mesh)]),
      devices(partMesh.numDevices()) {
  TrafficCounter counter(program.numDevices());
  for (const Operand &operand : step.operands) {
    moves.emplace_back(operand.dtype, mesh, operand.source, targetMesh, operand.target,
                       Move::Options{operand.fill, false, runtime::attributionOf(step.kind)});
    moves.back().countAll(counter);
  }
  plan.sent = counter.sentBytes();
  plan.received = counter.receivedBytes();
}

RankPlan RankPlanner::run() {
  formGroups();
  stageUnsafeSources();
  for (size_t i = 0; i < moves.size(); ++i) {
    std::vector<std::vector<const MovePiece *>> byGroup(plan.groups.size());
    for (const MovePiece &piece : moves[i].pieces()) {
      int64_t group = plan.groupOf[placeOf(piece.targets.front())];
      if (piece.isFill())
        addFill(i, piece);
      else if (group < 0)
        addLocal(i, piece, placeOf(piece.targets.front()));
      else
        byGroup[group].push_back(&piece);
    }
    for (size_t group = 0; group < byGroup.size(); ++group)
      if (!byGroup[group].empty())
        planGroup(i, static_cast<int64_t>(group), byGroup[group]);
  }
  for (DevicePlan &device : devices) {
    auto &actions = plan.actions.emplace_back(std::move(device.prepare));
    auto append = [&](std::vector<RankAction> &more) {
      std::move(more.begin(), more.end(), std::back_inserter(actions));
    };
    append(device.calls);
    if (!device.exchange.messages.empty()) {
      device.exchange.kind = RankAction::Kind::exchange;
      device.exchange.what = "exchange";
      actions.push_back(std::move(device.exchange));
    }
    append(device.finish);
    plan.stagingBytes = std::max(plan.stagingBytes, device.staged);
    plan.communicates |= std::any_of(actions.begin(), actions.end(), [](const RankAction &each) {
      return each.kind != RankAction::Kind::move;
    });
  }
  return std::move(plan);
}

void RankPlanner::formGroups() {
  // Devices of a common piece, and the groups of the axes, so that collectives over the same axes
  // share communicators even with uneven shards.
  std::vector<int64_t> leader(devices.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](int64_t place) {
    while (leader[place] != place)
      place = leader[place] = leader[leader[place]];
    return place;
  };
  auto join = [&](int64_t a, int64_t b) {
    a = find(a), b = find(b);
    leader[std::max(a, b)] = std::min(a, b);
  };
  bool meets = false;
  for (const Move &move : moves)
    for (const MovePiece &piece : move.pieces())
      for (const std::vector<End> *ends : {&piece.sources, &piece.targets})
        for (const End &end : *ends) {
          meets |= end.device != piece.targets.front().device;
          join(placeOf(piece.targets.front()), placeOf(end));
        }
  if (meets)
    for (const std::vector<int64_t> &group : sharding::deviceGroups(mesh, step.axes))
      for (int64_t position : group)
        join(partMesh.positionOf(mesh.processIds[group.front()]),
             partMesh.positionOf(mesh.processIds[position]));
  plan.groupOf.assign(devices.size(), -1);
  std::vector<int64_t> groupOfLeader(devices.size(), -1);
  for (size_t place = 0; place < devices.size(); ++place) {
    int64_t first = find(static_cast<int64_t>(place));
    if (!meets || std::count_if(leader.begin(), leader.end(),
                                [&](int64_t &l) { return find(&l - leader.data()) == first; }) < 2)
      continue;
    if (groupOfLeader[first] < 0) {
      groupOfLeader[first] = static_cast<int64_t>(plan.groups.size());
      plan.groups.emplace_back();
    }
    plan.groupOf[place] = groupOfLeader[first];
    plan.groups[groupOfLeader[first]].push_back(partMesh.processIds[place]);
  }
  for (auto &group : plan.groups)
    std::sort(group.begin(), group.end());
}

int64_t RankPlanner::stage(int64_t place, int64_t bytes) {
  int64_t at = kStaging + devices[place].staged;
  devices[place].staged += alignedUp(bytes);
  return at;
}

void RankPlanner::stageUnsafeSources() {
  auto overlap = [](const Slot &a, const Slot &b) {
    return a.space == b.space && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  for (size_t i = 0; i < moves.size(); ++i) {
    const Operand &operand = step.operands[i];
    const Slot &source = part.slots[operand.src];
    bool unsafe = false, overlaps = false;
    for (size_t j = 0; j < moves.size(); ++j) {
      const Slot &target = part.slots[step.operands[j].dst];
      if (!overlap(source, target))
        continue;
      bool sameBuffer = i == j && source.offset == target.offset;
      overlaps = true;
      unsafe |= !(sameBuffer && moves[i].inPlaceSafe());
    }
    Buffers buffers{addressOf(source), addressOf(part.slots[operand.dst]), overlaps && !unsafe};
    if (unsafe) {
      int64_t count = *elementCount(operand.source.localShape());
      Strides flat;
      flat.run = flat.elements = count;
      // Staged first on every device, so the address is the same on all of them.
      int64_t at = kStaging;
      for (size_t place = 0; place < devices.size(); ++place)
        at = stage(static_cast<int64_t>(place), count * moves[i].elementBytes());
      plan.staged.push_back(moveAction("stage", i, flat, {buffers.source}, at));
      for (DevicePlan &device : devices)
        device.prepare.push_back(plan.staged.back());
      buffers.source = at;
    }
    plan.sources.push_back(buffers.source);
    plan.targets.push_back(buffers.target);
    addresses.push_back(buffers);
  }
}

RankAction RankPlanner::moveAction(const char *what, size_t operand, Strides strides,
                                   std::vector<int64_t> sources, int64_t target) const {
  RankAction action;
  action.what = what;
  action.strides = std::move(strides);
  action.dtype = step.operands[operand].dtype;
  action.sources = std::move(sources);
  action.target = target;
  return action;
}

int64_t RankPlanner::sourceAt(size_t operand, const End &end) const {
  return addresses[operand].source + end.offset * moves[operand].elementBytes();
}
int64_t RankPlanner::targetAt(size_t operand, const End &end) const {
  return addresses[operand].target + end.offset * moves[operand].elementBytes();
}

void RankPlanner::addFill(size_t operand, const MovePiece &piece) {
  for (const End &to : piece.targets) {
    RankAction fill = moveAction("fill", operand, piece.strides, {}, targetAt(operand, to));
    fill.value = piece.value;
    devices[placeOf(to)].finish.push_back(std::move(fill));
  }
}

void RankPlanner::addLocal(size_t operand, const MovePiece &piece, int64_t place) {
  for (const End &to : piece.targets) {
    if (placeOf(to) != place)
      continue;
    int64_t from = sourceAt(operand, piece.sources.front()), at = targetAt(operand, to);
    if (from == at && moves[operand].resultScale() == 1)
      continue; // already in place: the strides of a safe move agree
    RankAction action = moveAction("slice", operand, piece.strides, {from}, at);
    action.scale = moves[operand].resultScale();
    devices[place].finish.push_back(std::move(action));
  }
}

RankPlan planRanks(const Program &program, const Part &part, const CollectiveStep &step,
                   ReducesExactly reducesExactly) {
  return RankPlanner(program, part, step, reducesExactly).run();
}

} // namespace tessera::runtime
