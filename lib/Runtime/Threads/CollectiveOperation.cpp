//===- CollectiveOperation.cpp - Collectives within one process -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveOperation.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tessera::runtime {

/// The approximate bytes of a task; a collective with fewer runs on the arriving worker.
static constexpr int64_t kTaskBytes = 1 << 19;

CollectiveOperation::CollectiveOperation(Context &context, int64_t part, const Step &step)
    : context(context), step(step), definition(std::get<CollectiveStep>(step.action)),
      mesh(context.program.meshes[definition.mesh]),
      targetMesh(context.program.meshes[definition.targetMesh.value_or(definition.mesh)]),
      counter(context.program.numDevices()) {
  build(part);
  stageWhereUnsafe(part);
  formGroups();
}

void CollectiveOperation::build(int64_t part) {
  const sharding::Mesh &partMesh = context.program.meshes[context.program.parts[part].mesh];
  for (const Operand &operand : definition.operands) {
    Buffers buffers;
    buffers.move =
        std::make_unique<Move>(operand.dtype, mesh, operand.source, targetMesh, operand.target,
                               Move::Options{operand.fill, false, attributionOf(definition.kind)});
    for (int64_t device : mesh.processIds) {
      int64_t position = partMesh.positionOf(device);
      buffers.sources.push_back(context.memory.slot(part, position, operand.src));
    }
    for (int64_t device : targetMesh.processIds)
      buffers.targets.push_back(
          context.memory.slot(part, partMesh.positionOf(device), operand.dst));
    operands.push_back(std::move(buffers));
  }
}

void CollectiveOperation::stageWhereUnsafe(int64_t part) {
  const std::vector<Slot> &slots = context.program.parts[part].slots;
  auto overlap = [](const Slot &a, const Slot &b) {
    return a.space == b.space && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand &operand = definition.operands[i];
    const Slot &source = slots[operand.src];
    bool unsafe = false;
    for (size_t j = 0; j < operands.size(); ++j) {
      const Slot &target = slots[definition.operands[j].dst];
      if (!overlap(source, target))
        continue;
      bool sameBuffer = i == j && source.offset == target.offset;
      unsafe |= !(sameBuffer && operands[i].move->inPlaceSafe());
    }
    if (!unsafe)
      continue;
    int64_t bytes = *elementCount(operand.source.localShape()) * sizeOf(operand.dtype);
    operands[i].staging.resize(operands[i].sources.size());
    for (size_t p = 0; p < operands[i].sources.size(); ++p) {
      operands[i].staging[p].resize(static_cast<size_t>(bytes));
      operands[i].arenaSources.push_back(operands[i].sources[p]);
      operands[i].sources[p] = operands[i].staging[p].data();
      operands[i].claims.emplace_back(mesh.processIds[p], nullptr, bytes);
    }
  }
}

void CollectiveOperation::formGroups() {
  // Devices with a common piece form a group; others need not wait for each other.
  std::vector<int64_t> leader(mesh.processIds.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](int64_t position) {
    while (leader[position] != position)
      position = leader[position] = leader[leader[position]];
    return position;
  };
  for (const Buffers &buffers : operands)
    for (const MovePiece &piece : buffers.move->pieces()) {
      auto meets = [&](int64_t position) {
        int64_t a = find(position), b = find(sourcePosition(piece.targets.front().position));
        leader[std::max(a, b)] = std::min(a, b);
      };
      for (const End &end : piece.sources)
        meets(end.position);
      for (const End &end : piece.targets)
        meets(sourcePosition(end.position));
    }
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t position = 0; position < leader.size(); ++position)
    members[find(static_cast<int64_t>(position))].push_back(static_cast<int64_t>(position));

  groupIndex.assign(context.program.numDevices(), -1);
  std::map<int64_t, GroupMeeting *> groupOfLeader;
  for (auto &[first, positions] : members) {
    for (int64_t position : positions)
      groupIndex[mesh.processIds[position]] = static_cast<int64_t>(groups.size());
    groups.push_back(std::make_unique<GroupMeeting>(*this, positions));
    groupOfLeader[first] = groups.back().get();
  }
  for (size_t i = 0; i < operands.size(); ++i)
    for (const MovePiece &piece : operands[i].move->pieces())
      groupOfLeader[find(sourcePosition(piece.targets.front().position))]->addTasks(
          static_cast<int64_t>(i), *operands[i].move, piece);
}

CollectiveStats CollectiveOperation::stats() const {
  CollectiveStats stats{definition.id,
                        std::string(toString(definition.kind)),
                        loc(),
                        0,
                        definition.wireBytes,
                        counter.sentBytes(),
                        counter.receivedBytes()};
  for (auto &group : groups)
    stats.executions = std::max(stats.executions, group->completed());
  return stats;
}

GroupMeeting::GroupMeeting(CollectiveOperation &operation, std::vector<int64_t> positions)
    : operation(operation) {
  for (int64_t position : positions)
    devices.push_back(operation.mesh.processIds[position]);
  std::sort(devices.begin(), devices.end());
}

void GroupMeeting::addTasks(int64_t operand, const Move &move, const MovePiece &piece) {
  auto ends = static_cast<int64_t>(piece.sources.size() + piece.targets.size());
  int64_t bytesPerElement = move.elementBytes() * ends;
  int64_t step = std::max<int64_t>(1, kTaskBytes / (bytesPerElement * kReduceChunk)) * kReduceChunk;
  for (int64_t begin = 0; begin < piece.strides.elements; begin += step)
    tasks.push_back(
        {&move, &piece, operand, begin, std::min(begin + step, piece.strides.elements)});
  touchedBytes += piece.strides.elements * bytesPerElement;
}

void GroupMeeting::arrive(int64_t device) {
  int64_t position = operation.mesh.positionOf(device);
  for (auto &buffers : operation.operands)
    if (!buffers.staging.empty())
      std::copy_n(buffers.arenaSources[position], buffers.staging[position].size(),
                  buffers.staging[position].data());
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<int64_t>(devices.size()))
    execute();
}

void GroupMeeting::execute() {
  arrivedNs = operation.context.clock.now();
  WorkerPool &pool = operation.context.pool;
  bool asynchronous = operation.definition.token.has_value();
  if (touchedBytes <= kTaskBytes || tasks.size() <= 1 || (pool.size() == 1 && !asynchronous)) {
    for (size_t i = 0; i < tasks.size(); ++i)
      runTask(static_cast<int64_t>(i));
    finish();
    return;
  }
  pool.submit(*this, static_cast<int64_t>(tasks.size()));
  if (!asynchronous)
    pool.help(*this);
}

void GroupMeeting::runTask(int64_t index) {
  const Task &task = tasks[index];
  auto &buffers = operation.operands[task.operand];
  task.move->run(*task.piece, task.begin, task.end, buffers.sources.data(), buffers.targets.data(),
                 &operation.counter);
}

void GroupMeeting::finish() {
  Context &context = operation.context;
  if (devices.size() > 1)
    context.recorder.add({operation.definition.id, toString(operation.definition.kind),
                          operation.loc(), completed(), devices.front(), arrivedNs,
                          context.clock.now()});
  arrived.store(0, std::memory_order_relaxed);
  generation.fetch_add(1);
  for (int64_t device : devices)
    context.waiters[device]->notify();
}

} // namespace tessera::runtime
