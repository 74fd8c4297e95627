//===- InProcess.cpp - Collectives as moves in one address space ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include <algorithm>

namespace tessera::runtime::gpu {

InProcessCollective::InProcessCollective(const Program &program, const Part &part,
                                         const PlannedCollective &planned)
    : planned(planned), groupOf(planned.ranks.groupOf), partMesh(program.meshes[part.mesh]) {
  const auto &step = std::get<CollectiveStep>(planned.step->action);
  for (const Operand &operand : step.operands)
    moves.emplace_back(operand.dtype, program.meshes[step.mesh], operand.source,
                       program.meshes[step.targetMesh.value_or(step.mesh)], operand.target,
                       Move::Options{operand.fill, false, Attribution::direct});
  for (const std::vector<int64_t> &ids : planned.ranks.groups) {
    Group group;
    for (int64_t id : ids)
      group.positions.push_back(partMesh.positionOf(id));
    groups.push_back(std::move(group));
  }
  for (size_t position = 0; position < groupOf.size(); ++position)
    if (groupOf[position] < 0) { // a group of one
      groupOf[position] = static_cast<int64_t>(groups.size());
      groups.emplace_back().positions = {static_cast<int64_t>(position)};
    }
  restart();
}

Status InProcessCollective::open(GpuDriver &opened) {
  driver = &opened;
  for (Group &group : groups) {
    for (size_t i = 0; i <= group.positions.size(); ++i) {
      auto event = driver->createEvent(partMesh.processIds[group.positions.front()]);
      if (!event)
        return event.status();
      group.arrived.push_back(*event);
    }
    group.done = group.arrived.back();
    group.arrived.pop_back();
  }
  return {};
}

void InProcessCollective::restart() {
  for (Group &group : groups) {
    group.members.assign(group.positions.size(), nullptr);
    group.count = group.told = 0;
    group.issued = false;
  }
}

Expected<bool> InProcessCollective::arrive(Issuer &issuer, int64_t stream) {
  Group &group = groups[groupOf[issuer.position]];
  auto size = static_cast<int64_t>(group.positions.size());
  size_t place = std::find(group.positions.begin(), group.positions.end(), issuer.position) -
                 group.positions.begin();
  if (!group.issued) {
    if (!group.members[place]) {
      group.members[place] = &issuer;
      ++group.count;
    }
    if (group.count < size)
      return false;
    TESSERA_RETURN_IF_ERROR(issue(group, stream));
    group.issued = true;
  }
  if (!group.members[place])
    return false; // it is one execution ahead
  group.members[place] = nullptr;
  if (++group.told == size) {
    group.count = group.told = 0;
    group.issued = false;
  }
  return true;
}

Status InProcessCollective::issue(Group &group, int64_t streamIndex) {
  auto streamOf = [&](size_t place) { return group.members[place]->stream(streamIndex); };
  Stream leader = streamOf(0);
  for (size_t i = 1; i < group.members.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(driver->record(group.arrived[i], streamOf(i)));
    TESSERA_RETURN_IF_ERROR(driver->wait(leader, group.arrived[i]));
  }
  std::map<int64_t, Issuer *> member; ///< by process id
  for (Issuer *each : group.members)
    member[each->device] = each;
  for (auto &[device, each] : member)
    for (const RankAction &action : planned.ranks.staged) {
      MoveJob job{&action.strides,
                  action.dtype,
                  {},
                  1,
                  {each->resolve(action.sources[0], streamIndex)},
                  {each->resolve(action.target, streamIndex)},
                  {}};
      TESSERA_RETURN_IF_ERROR(driver->move({leader, planned.step, "stage", {}}, std::move(job)));
    }
  const char *what =
      toString(std::get<CollectiveStep>(planned.step->action).kind).data(); // of a string literal
  for (size_t operand = 0; operand < moves.size(); ++operand) {
    const Move &move = moves[operand];
    for (const MovePiece &piece : move.pieces()) {
      if (!member.count(piece.targets.front().device))
        continue;
      MoveJob job;
      job.strides = &piece.strides;
      job.dtype = std::get<CollectiveStep>(planned.step->action).operands[operand].dtype;
      job.reduction = move.reduction();
      job.scale = move.resultScale();
      job.value = piece.value;
      auto at = [&](const End &end, int64_t base) {
        return member.at(end.device)->resolve(base, streamIndex) + end.offset * move.elementBytes();
      };
      for (const End &from : piece.sources)
        job.sources.push_back(at(from, planned.ranks.sources[operand]));
      for (const End &to : piece.targets)
        if (std::byte *out = at(to, planned.ranks.targets[operand]);
            job.sources.size() != 1 || job.scale != 1 || out != job.sources[0])
          job.targets.push_back(out);
      if (!job.targets.empty())
        TESSERA_RETURN_IF_ERROR(driver->move({leader, planned.step, what, {}}, std::move(job)));
    }
  }
  TESSERA_RETURN_IF_ERROR(driver->record(group.done, leader));
  for (size_t i = 1; i < group.members.size(); ++i)
    TESSERA_RETURN_IF_ERROR(driver->wait(streamOf(i), group.done));
  return {};
}

} // namespace tessera::runtime::gpu
