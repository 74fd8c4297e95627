//===- Executor.cpp - Execute parts on real or emulated GPUs --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "../Artifact/Steps.h"
#include "../Execution/Deadlock.h"
#include "../Ranks/MessageBuffers.h"
#include "RemoteTransfer.h"

#include <algorithm>

namespace tessera::runtime::gpu {

static int64_t alignedUp(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

GpuExecutor::~GpuExecutor() {
  if (opened && failure.empty())
    (void)settle(); // kept values
  if (opened && failure.empty() && options.leave)
    options.leave();
}

Status GpuExecutor::open() {
  if (options.devices.empty())
    for (int64_t id = 0; id < program().numDevices(); ++id)
      options.devices.push_back(id);
  options.plan.inProcess = !options.engine;
  for (int64_t device : options.devices) {
    TESSERA_RETURN_IF_ERROR(driver().load(device, *artifact));
    std::byte *&constants = constantsOf[driver().memoryOf(device)];
    if (constants || artifact->constants.empty())
      continue;
    auto size = static_cast<int64_t>(artifact->constants.size());
    auto memory = driver().allocate(device, size);
    if (!memory)
      return memory.status();
    constants = *memory;
    TESSERA_RETURN_IF_ERROR(driver().write(device, constants, artifact->constants.data(), size));
  }
  int64_t count = static_cast<int64_t>(program().parts.size());
  for (int64_t part = 0; part < count; ++part)
    TESSERA_RETURN_IF_ERROR(openPart(part, driver().kernelWorkspaceBytes()));
  for (auto &issuer : issuers)
    for (const std::vector<int64_t> &grouping : issuer->part.communicators)
      TESSERA_RETURN_IF_ERROR(
          options.engine->registerBuffer(issuer->memory(), issuer->part.blockBytes, grouping));
  TESSERA_RETURN_IF_ERROR(openTransfers());
  opened = true;
  return {};
}

Status GpuExecutor::openPart(int64_t index, int64_t workspaceBytes) {
  auto opened = std::make_unique<GpuPart>();
  GpuPart &part = *opened;
  part.index = index;
  part.part = &program().parts[index];
  if (hasStep<ContractStep>(part.part->steps) && !driver().runsContractions())
    return Status::error("part '" + part.part->name +
                         "' has steps 'contract', which run in host memory; compile the program "
                         "for this target");
  if (hasStep<GemmStep>(part.part->steps))
    workspaceBytes = std::max(workspaceBytes, driver().gemmWorkspaceBytes());
  part.plan = planPart(program(), index, workspaceBytes, options.plan);
  part.workspaceOffset = alignedUp(part.part->arenaBytes);
  part.blockBytes = part.workspaceOffset + alignedUp(workspaceBytes);
  for (int64_t bytes : part.plan.stagingBytes) {
    part.stagingOffsets.push_back(part.blockBytes);
    part.blockBytes += alignedUp(bytes);
  }
  auto isHere = [&](int64_t id) {
    return std::find(options.devices.begin(), options.devices.end(), id) != options.devices.end();
  };
  for (const auto &grouping : part.plan.groupings) {
    if (!options.engine)
      break;
    auto made = options.engine->makeCommunicators(grouping, options.devices);
    if (!made)
      return made.status();
    part.communicators.push_back(std::move(*made));
  }
  if (!options.engine)
    for (const PlannedCollective &planned : part.plan.collectives) {
      part.inProcess.push_back(
          std::make_unique<InProcessCollective>(program(), *part.part, planned));
      TESSERA_RETURN_IF_ERROR(part.inProcess.back()->open(driver()));
    }
  for (int64_t id : program().meshes[part.part->mesh].processIds)
    if (isHere(id)) {
      issuers.push_back(std::make_unique<Issuer>(*this, part, id));
      TESSERA_RETURN_IF_ERROR(issuers.back()->open(constantsOf[driver().memoryOf(id)]));
    }
  parts.push_back(std::move(opened));
  return {};
}

Status GpuExecutor::openTransfers() {
  std::map<int64_t, std::pair<const Step *, const Step *>> ends; ///< sends and recvs by id
  for (auto &part : parts)
    for (const PlanStep &step : part->plan.code) {
      if (step.op == PlanStep::Op::send)
        ends[step.index].first = step.step;
      else if (step.op == PlanStep::Op::recv)
        ends[step.index].second = step.step;
    }
  MessageBuffers buffers;
  if (options.messages && !ends.empty()) {
    std::vector<Code> codes;
    for (auto &part : parts)
      codes.push_back(flatten(*part->part));
    std::vector<const Code *> list;
    for (const Code &code : codes)
      list.push_back(&code);
    auto found = messageBuffersOf(list);
    if (!found)
      return found.status();
    buffers = std::move(*found);
    options.engine->expectConcurrent(static_cast<int64_t>(ends.size()));
  }
  for (auto &[id, pair] : ends) { // the verifier has paired them
    if (!options.messages) {
      transfers[id] = std::make_unique<InProcessTransfer>(driver(), recorder, program(),
                                                          *pair.first, *pair.second);
      continue;
    }
    auto made = std::make_unique<RemoteTransfer>(driver(), *options.engine, program(), *pair.first,
                                                 *pair.second);
    int64_t numBuffers = buffers.isKnown ? std::max<int64_t>(1, buffers.messages[id]) : 0;
    TESSERA_RETURN_IF_ERROR(made->open(options.devices, numBuffers));
    transfers[id] = std::move(made);
  }
  return {};
}

Status GpuExecutor::run() {
  if (!failure.empty())
    return Status::error("an earlier step failed: " + failure);
  for (auto &issuer : issuers)
    issuer->restart();
  settled = false;
  Status status = driver().enter();
  if (status.ok())
    status = driver().finishWrites();
  if (status.ok() && timed)
    status = driver().mark(issuers.front()->stream(0));
  bool captures = !whole;
  if (status.ok())
    status = whole ? launchWhole() : issueAll();
  // The compute stream of a device starts first and ends last in each segment.
  if (status.ok() && timed)
    status = driver().mark(issuers.front()->stream(0));
  if (status.ok() && captures)
    status = captureAll();
  if (status.ok())
    status = driver().progress();
  if (status.ok() && driver().isStuck())
    status = stuck();
  failure = status.message();
  if (!status.ok() && options.engine)
    options.engine->abandon();
  return status;
}

/// Increases with every issued operation: a round without an increase has made no progress.
static int64_t activity(const GpuDriver &driver) {
  const DriverCounts &counts = driver.counts();
  return counts.launches + counts.graphLaunches + counts.records + counts.waits;
}

Status GpuExecutor::issueAll() {
  // The least order first; an issuer that waits lets the others continue.
  while (true) {
    bool progress = false, finished = true;
    int64_t before = activity(driver());
    std::vector<Issuer *> open;
    for (auto &issuer : issuers)
      if (!issuer->finished())
        open.push_back(issuer.get());
    std::sort(open.begin(), open.end(), [](Issuer *a, Issuer *b) {
      return std::pair(a->order(), a->device) < std::pair(b->order(), b->device);
    });
    for (Issuer *issuer : open) {
      auto went = issuer->advance();
      if (!went)
        return went.status();
      progress |= *went;
      finished &= issuer->finished();
    }
    if (finished)
      return {};
    // An issuer that stops within a segment has made progress, too.
    if (!progress && activity(driver()) == before)
      return stuck();
  }
}

Status GpuExecutor::launchWhole() {
  TESSERA_RETURN_IF_ERROR(driver().launchGraph(whole, issuers.front()->stream(0)));
  for (auto &issuer : issuers)
    if (!issuer->finished())
      issuer->skipSegment();
  return {};
}

/// Collectives in one process synchronize all devices, so a capture gives one graph of all devices,
/// or none. The graph is for the steps after the first, which runs without one (Issuer::runSegment
/// states why).
Status GpuExecutor::captureAll() {
  bool possible = options.capture && !options.engine && parts.size() == 1 &&
                  parts.front()->plan.isOneSegment() && !issuers.empty();
  if (!possible)
    return {};
  const Segment &segment = parts.front()->plan.segments.front();
  Stream origin = issuers.front()->stream(0);
  TESSERA_RETURN_IF_ERROR(driver().beginCapture(origin));
  waitsIssued = 0;
  for (size_t i = 1; i < issuers.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(driver().record(issuers[i]->spareEvent(), origin));
    TESSERA_RETURN_IF_ERROR(driver().wait(issuers[i]->stream(0), issuers[i]->spareEvent()));
  }
  std::vector<bool> done(issuers.size());
  for (size_t left = issuers.size(); left > 0;) {
    int64_t before = activity(driver());
    for (size_t i = 0; i < issuers.size(); ++i) {
      if (done[i])
        continue;
      auto went = issuers[i]->issueSegment(segment);
      if (!went)
        return went.status();
      done[i] = *went;
      left -= *went;
    }
    if (left > 0 && activity(driver()) == before)
      return stuck();
  }
  auto join = [&]() -> Status {
    for (size_t i = 1; i < issuers.size(); ++i) {
      TESSERA_RETURN_IF_ERROR(driver().record(issuers[i]->spareEvent(), issuers[i]->stream(0)));
      TESSERA_RETURN_IF_ERROR(driver().wait(origin, issuers[i]->spareEvent()));
    }
    return {};
  };
  TESSERA_RETURN_IF_ERROR(join());
  auto graph = driver().endCapture(origin);
  if (!graph)
    return graph.status();
  whole = *graph;
  return join(); // the next step's graph starts after this step on all devices
}

Status GpuExecutor::stuck() const {
  DeadlockReport report;
  for (auto &issuer : issuers)
    report.add(issuer->device, issuer->describeWait());
  return Status::error(report.text());
}

Status GpuExecutor::settle() {
  TESSERA_RETURN_IF_ERROR(driver().enter());
  if (settled || !failure.empty())
    return {};
  for (auto &issuer : issuers) {
    auto done = driver().synchronize(issuer->stream(0), /*forStep=*/false);
    if (!done) {
      failure = done.message();
      return done.status();
    }
  }
  settled = true;
  return {};
}

Status GpuExecutor::timeSteps(int64_t steps) {
  timed = steps > 0 && !issuers.empty();
  TESSERA_RETURN_IF_ERROR(driver().enter());
  return driver().timeSteps(steps);
}

Expected<std::vector<double>> GpuExecutor::stepSeconds() {
  TESSERA_RETURN_IF_ERROR(settle());
  return driver().stepSeconds();
}

Issuer *GpuExecutor::find(int64_t part, int64_t position) const {
  for (auto &issuer : issuers)
    if (issuer->part.index == part && issuer->position == position)
      return issuer.get();
  return nullptr;
}

Status GpuExecutor::readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                             int64_t size) {
  Issuer *issuer = find(part, position);
  TESSERA_RETURN_IF_ERROR(settle());
  return driver().read(issuer->device, data, issuer->slot(slot), size);
}

Status GpuExecutor::readSlot(int64_t part, int64_t position, int64_t slot, std::byte *data,
                             int64_t size) {
  Issuer *issuer = find(part, position);
  if (issuer)
    TESSERA_RETURN_IF_ERROR(readHeld(part, position, slot, data, size));
  if (!options.share)
    return {};
  const sharding::Mesh &mesh = program().meshes[program().parts[part].mesh];
  return options.share(mesh.processIds[position], issuer != nullptr, data, size);
}

bool GpuExecutor::holds(int64_t part, int64_t position) const {
  return find(part, position) != nullptr;
}

std::byte *GpuExecutor::slotData(int64_t part, int64_t position, int64_t slot) {
  Issuer *issuer = find(part, position);
  if (!issuer || !driver().hostReachable() || !settle().ok())
    return nullptr;
  return issuer->slot(slot);
}

std::vector<CollectiveStats> GpuExecutor::stats() const {
  std::vector<CollectiveStats> all;
  for (auto &part : parts)
    for (size_t i = 0; i < part->plan.collectives.size(); ++i) {
      const PlannedCollective &planned = part->plan.collectives[i];
      const auto &step = std::get<CollectiveStep>(planned.step->action);
      CollectiveStats stats{
          step.id, std::string(toString(step.kind)), planned.step->loc, 0, step.wireBytes, {}, {}};
      stats.sentBytes.resize(program().numDevices());
      stats.receivedBytes.resize(program().numDevices());
      for (auto &issuer : issuers) {
        if (&issuer->part != part.get())
          continue;
        int64_t times = issuer->executions[i];
        stats.executions = std::max(stats.executions, times);
        stats.sentBytes[issuer->device] = times * planned.ranks.sent[issuer->device];
        stats.receivedBytes[issuer->device] = times * planned.ranks.received[issuer->device];
      }
      all.push_back(std::move(stats));
    }
  for (auto &[id, transfer] : transfers)
    all.push_back(transfer->stats());
  std::sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.id < b.id; });
  return all;
}

} // namespace tessera::runtime::gpu
