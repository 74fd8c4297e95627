//===- ProcessExecutor.cpp - One device of a job of processes -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProcessExecutor.h"

#include "../Execution/Deadlock.h"
#include "../Execution/MoveJob.h"
#include "../Execution/RankTracks.h"

#include <algorithm>
#include <sstream>

namespace tessera::runtime {

ProcessExecutor::ProcessExecutor(std::shared_ptr<const Artifact> loaded,
                                 std::unique_ptr<Transport> messages, double seconds,
                                 HeldPlacement placement, const BackendOptions &options)
    : artifact(std::move(loaded)), log(messages->rank()), transport(std::move(messages)),
      conversation(*transport, seconds), pool(std::move(placement)),
      workers(pool.placement().workers), processor{kernels, packed, pool, clock, workers > 1},
      trace(options.trace), guardsCalls(options.guardsCalls),
      mayDropConstants(options.ownsConstants) {
  log.folder = dumpFolderOf(options.dumpFolder);
  log.host = transport->hostOf(transport->rank());
  log.about = hexText(artifact->fingerprint());
}

ProcessExecutor::~ProcessExecutor() {
  // Others may wait for messages in our lanes: they must not wait long after we leave.
  if (!isIdle())
    transport->abandon();
}

Status ProcessExecutor::open() {
  TESSERA_RETURN_IF_ERROR(conversation.open());
  TESSERA_RETURN_IF_ERROR(conversation.agree(load(), "to load the program"));
  auto prints = conversation.allGather(hexText(artifact->fingerprint()), "to load the program");
  if (!prints)
    return prints.status();
  for (size_t rank = 1; rank < prints->size(); ++rank)
    if ((*prints)[rank] != prints->front()) {
      Status other = Status::error(conversation.rankText(static_cast<int64_t>(rank)) +
                                   " runs another program, " + (*prints)[rank] + ", than " +
                                   conversation.rankText(0) + ", " + prints->front() +
                                   "; give all ranks the same artifact");
      return reportsResults() ? other : other.asReportedElsewhere();
    }
  TESSERA_RETURN_IF_ERROR(
      conversation.agree(packed.load(*artifact, pool, mayDropConstants), "to load the program"));
  engine = std::make_unique<HostEngine>(*transport, *this);
  for (const Part &part : program().parts)
    codes.push_back(flatten(part));
  for (size_t part = 0; part < program().parts.size(); ++part)
    TESSERA_RETURN_IF_ERROR(loadPart(static_cast<int64_t>(part)));
  TESSERA_RETURN_IF_ERROR(loadTransfers());
  TESSERA_RETURN_IF_ERROR(conversation.agree({}, "to load the program"));
  auto started = Watchdog::start(*transport, conversation, log,
                                 {conversation.deadline(), true, Calls::blocking});
  if (!started)
    return started.status();
  watchdog = std::move(*started);
  conversation.record(&log, watchdog.get());
  return {};
}

/// The local part of loading.
Status ProcessExecutor::load() {
  if (pool.size() < workers)
    return Status::error("this machine starts " + std::to_string(pool.size()) +
                         " workers, not the " + std::to_string(workers) + " of --cores");
  if (artifact->kernels.empty() && !artifact->gpu.empty())
    return Status::error("the artifact was compiled for a GPU (" +
                         artifact->gpu.architecturesText() +
                         "); the backend 'mpi' needs one compiled with --target=cpu");
  TESSERA_RETURN_IF_ERROR(memory.allocate(*artifact, pool.placement(), transport->rank()));
  return kernels.open(artifact->kernels, program().kernels);
}

/// " by sum" for reductions.
static std::string reductionText(const Operand &operand) {
  for (const sharding::PartialAxis &axis : operand.source.partial)
    return " by " + std::string(sharding::toString(axis.kind));
  return "";
}

/// "all_reduce 3 of 16 f32 by sum": members of its group must agree on it.
static CallShapePtr shapeOf(const Step &step, int64_t part, int64_t lane,
                            const std::vector<int64_t> &group) {
  const auto &collective = std::get<CollectiveStep>(step.action);
  auto shape = std::make_shared<CallShape>();
  shape->id = collective.id;
  shape->kind = toString(collective.kind);
  std::string operands;
  for (const Operand &operand : collective.operands) {
    int64_t count = 1;
    for (int64_t size : operand.globalShape)
      count *= size;
    shape->count += count;
    shape->dtype = toString(operand.dtype);
    operands += (operands.empty() ? "" : ", ") + std::to_string(count) + " " + shape->dtype +
                reductionText(operand);
  }
  shape->text = shape->kind + " " + std::to_string(shape->id) + " of " + operands;
  shape->loc = step.loc;
  shape->stream = "part " + std::to_string(part) + " lane " + std::to_string(lane);
  for (int64_t rank : group)
    shape->stream += " " + std::to_string(rank);
  shape->group = group;
  return shape;
}

Status ProcessExecutor::openGuard(ProcessPart::Grouping &grouping) {
  for (const std::vector<int64_t> &group : grouping.groups)
    if (std::binary_search(group.begin(), group.end(), transport->rank())) {
      auto opened = transport->openChannel(group);
      if (!opened)
        return opened.status();
      grouping.guardChannel = *opened;
    }
  return {};
}

Status ProcessExecutor::loadPart(int64_t index) {
  const Part &part = program().parts[index];
  const sharding::Mesh &mesh = program().meshes[part.mesh];
  if (mesh.positionOf(transport->rank()) < 0)
    return {};
  auto loaded = std::make_unique<ProcessPart>();
  loaded->index = index;
  loaded->position = mesh.positionOf(transport->rank());
  loaded->part = &part;
  loaded->code = &codes[index];
  std::vector<int64_t> stagingBytes(1);
  for (const Step *step : loaded->code->collectives) {
    ProcessCollective made{
        step,
        // Contributions are added in rank order, by the runtime's own reductions.
        planRanks(program(), part, std::get<CollectiveStep>(step->action),
                  [](DType, sharding::ReduceKind) { return true; }),
        0,
        {},
        -1,
        0,
        -1,
        nullptr,
        0,
        0};
    if (made.plan.communicates) {
      auto &groupings = loaded->groupings;
      auto known = std::find_if(groupings.begin(), groupings.end(), [&](const auto &grouping) {
        return grouping.groups == made.plan.groups;
      });
      made.lane = 1 + (known - groupings.begin());
      if (known == groupings.end()) {
        auto opened = engine->makeCommunicators(made.plan.groups, {transport->rank()},
                                                RankEngine::Calls::ordered);
        if (!opened)
          return opened.status();
        groupings.push_back({made.plan.groups, std::move(*opened)});
        if (guardsCalls)
          TESSERA_RETURN_IF_ERROR(openGuard(loaded->groupings.back()));
        stagingBytes.push_back(0);
      }
      if (int64_t group = made.plan.groupOf[loaded->position]; group >= 0) {
        made.group = made.plan.groups[group];
        made.communicator = groupings[made.lane - 1].communicators[group];
        made.rank = std::lower_bound(made.group.begin(), made.group.end(), transport->rank()) -
                    made.group.begin();
        made.guardChannel = groupings[made.lane - 1].guardChannel;
      }
    }
    stagingBytes[made.lane] = std::max(stagingBytes[made.lane], made.plan.stagingBytes);
    made.shape = shapeOf(*step, index, made.lane, made.group);
    loaded->collectives.push_back(std::move(made));
  }
  loaded->lanes = std::vector<Lane>(stagingBytes.size());
  for (int64_t bytes : stagingBytes) {
    loaded->staging.emplace_back(static_cast<size_t>(bytes));
    loaded->claims.emplace_back(transport->rank(), nullptr, bytes);
  }
  std::vector<std::byte *> slots;
  for (size_t slot = 0; slot < part.slots.size(); ++slot)
    slots.push_back(memory.slot(index, loaded->position, static_cast<int64_t>(slot)));
  streams.push_back(std::make_unique<ProcessStream>(*this, *loaded, std::move(slots),
                                                    memory.packed(index, loaded->position)));
  order.push_back(streams.back().get());
  parts.push_back(std::move(loaded));
  return {};
}

Status ProcessExecutor::loadTransfers() {
  struct Ends {
    const Step *send = nullptr, *recv = nullptr;
    int64_t sendPart = 0, recvPart = 0;
  };
  std::map<int64_t, Ends> ends; ///< by id
  for (size_t part = 0; part < codes.size(); ++part)
    for (const Instruction &each : codes[part].instructions)
      if (each.op == Instruction::Op::send) {
        ends[each.index].send = each.step;
        ends[each.index].sendPart = static_cast<int64_t>(part);
      } else if (each.op == Instruction::Op::recv) {
        ends[each.index].recv = each.step;
        ends[each.index].recvPart = static_cast<int64_t>(part);
      }
  auto slotsOf = [&](int64_t index) {
    std::vector<std::byte *> slots;
    for (auto &part : parts)
      for (size_t slot = 0; part->index == index && slot < part->part->slots.size(); ++slot)
        slots.push_back(memory.slot(index, part->position, static_cast<int64_t>(slot)));
    return slots;
  };
  for (auto &[id, each] : ends) { // the verifier has paired them
    auto sends = slotsOf(each.sendPart), receives = slotsOf(each.recvPart);
    if (sends.empty() && receives.empty())
      continue;
    auto made =
        std::make_unique<ProcessTransfer>(program(), *each.send, *each.recv, transport->rank(),
                                          std::move(sends), std::move(receives));
    TESSERA_RETURN_IF_ERROR(made->open(*engine));
    transfers[id] = std::move(made);
  }
  return {};
}

Status ProcessExecutor::issue(Issue issue, Start start) {
  Lane::of(issue.stream).push(std::move(start));
  return {};
}

std::byte *ProcessExecutor::resolve(const ProcessPart &part, int64_t lane, int64_t address) const {
  int64_t space = spaceOf(address);
  if (space == kStaging)
    return const_cast<std::byte *>(part.staging[lane].data()) + (address - kStaging);
  if (space == kConstants)
    return const_cast<std::byte *>(artifact->constants.data()) + (address - kConstants);
  return memory.arena(part.index, part.position) + address;
}

namespace {
/// Compares the calls of the members.
class GuardWork final : public HostWork {
public:
  GuardWork(Transport &transport, int64_t channel, const std::vector<int64_t> &members,
            const CallDescription &mine)
      : members(members), guard(transport, channel, members, mine) {}

  Expected<bool> advance() override {
    auto haveAllReported = guard.advance();
    if (!haveAllReported || !*haveAllReported)
      return haveAllReported;
    TESSERA_RETURN_IF_ERROR(guard.verdict());
    return true;
  }
  std::vector<int64_t> awaited() const override { return guard.missing(); }

private:
  const std::vector<int64_t> members;
  Guard guard;
};
} // namespace

/// Calls of a lane have the same order on all members, so that the n-th compares with the n-th.
void ProcessExecutor::guard(Lane &lane, const ProcessCollective &collective) {
  std::string text = collective.shape->text + ", execution " +
                     std::to_string(collective.started + 1) + ", of program " + log.about;
  lane.push([this, &collective, text]() -> Expected<std::unique_ptr<HostWork>> {
    return std::unique_ptr<HostWork>(
        new GuardWork(*transport, collective.guardChannel, collective.group,
                      {text, "", {}, {}, "", 0, collective.shape->loc}));
  });
}

Status ProcessExecutor::begin(ProcessPart &part, ProcessCollective &collective) {
  Lane &lane = part.lanes[collective.lane];
  bool isRecorded = collective.group.size() > 1;
  int64_t sequence = -1;
  if (isRecorded) {
    sequence = log.issue(collective.shape);
    lane.pushLocal([this, sequence] { log.begin(sequence); });
    if (collective.guardChannel >= 0)
      guard(lane, collective);
  }
  auto at = [&](int64_t address) { return resolve(part, collective.lane, address); };
  for (const RankAction &action : collective.plan.actions[part.position]) {
    if (action.kind == RankAction::Kind::move) {
      lane.pushLocal([&action, at] {
        MoveJob job{&action.strides,     action.dtype, action.reduction, action.scale, {},
                    {at(action.target)}, action.value};
        for (int64_t source : action.sources)
          job.sources.push_back(at(source));
        runMoveJob(job);
      });
      continue;
    }
    const Issue issue{lane.stream(), collective.step, action.what, {}};
    if (action.kind == RankAction::Kind::call) {
      TESSERA_RETURN_IF_ERROR(engine->call(issue, collective.communicator, collective.rank,
                                           action.call, at(action.send), at(action.receive)));
      continue;
    }
    std::vector<RankMessage> messages;
    for (const RankAction::Message &each : action.messages)
      messages.push_back({each.peer, each.send, at(each.address), each.bytes});
    TESSERA_RETURN_IF_ERROR(
        engine->exchange(issue, collective.communicator, collective.rank, std::move(messages)));
  }
  int64_t arrived = clock.now();
  ++collective.started;
  lane.pushLocal([this, &collective, arrived, isRecorded, sequence] {
    if (isRecorded) {
      log.end(sequence);
      const auto &step = std::get<CollectiveStep>(collective.step->action);
      recorder.add({step.id, toString(step.kind), collective.step->loc, collective.completed,
                    collective.group.front(), arrived, clock.now()});
    }
    ++collective.completed;
  });
  return {};
}

Expected<bool> ProcessExecutor::progress() {
  bool any = false;
  for (auto &part : parts)
    for (Lane &lane : part->lanes) {
      if (lane.idle())
        continue;
      auto went = lane.advance();
      if (!went)
        return went.status();
      any |= *went;
    }
  for (auto &[id, transfer] : transfers) {
    auto went = transfer->progress();
    if (!went)
      return went.status();
    any |= *went;
  }
  return any;
}

bool ProcessExecutor::isIdle() const {
  for (auto &part : parts)
    for (const Lane &lane : part->lanes)
      if (!lane.idle())
        return false;
  return std::all_of(transfers.begin(), transfers.end(),
                     [](auto &each) { return each.second->isIdle(); });
}

Status ProcessExecutor::timeoutStatus() const {
  std::string text = conversation.rankText(transport->rank()) + " ";
  auto waiting = std::find_if(order.begin(), order.end(),
                              [](const PartStream *stream) { return !stream->finished(); });
  text += waiting == order.end() ? "waits for its last messages to be received"
                                 : (*waiting)->describeWait();
  return Status::error(text + "; no progress for " +
                       std::to_string(static_cast<int64_t>(conversation.deadline())) + " s");
}

Status ProcessExecutor::runSteps() {
  Backoff patience(conversation.deadline());
  while (true) {
    auto went = advanceOne(order, trace ? &track : nullptr);
    if (!went)
      return went.status();
    auto moved = progress();
    if (!moved)
      return moved.status();
    if (std::all_of(order.begin(), order.end(), [](auto *each) { return each->finished(); }) &&
        isIdle())
      return {};
    if (*went || *moved) {
      patience.reset();
      log.progressed();
      continue;
    }
    log.waits();
    if (watchdog && watchdog->hasVerdict())
      return watchdog->verdict();
    if (!patience.wait(*transport))
      return timeoutStatus();
  }
}

Status ProcessExecutor::run() {
  if (failed)
    return Status::error("an earlier step failed: " + failure);
  for (auto &stream : streams)
    stream->restart();
  Status status = runSteps();
  if (!status.ok() && watchdog)
    status = watchdog->explain(status);
  log.rests();
  if (!status.ok()) {
    log.dump(status.message());
    failed = true;
    failure = status.message();
    transport->abandon();
  }
  return status;
}

std::string ProcessExecutor::countsText() const {
  std::ostringstream text;
  auto add = [&](int64_t id, int64_t executions, int64_t sent, int64_t received) {
    text << id << ' ' << executions << ' ' << sent << ' ' << received << '\n';
  };
  for (auto &part : parts)
    for (const ProcessCollective &each : part->collectives)
      add(std::get<CollectiveStep>(each.step->action).id, each.completed,
          each.completed * each.plan.sent[transport->rank()],
          each.completed * each.plan.received[transport->rank()]);
  for (auto &[id, transfer] : transfers)
    add(std::get<TransferStep>(transfer->step().action).id, transfer->executions(),
        transfer->sentBytes(), transfer->receivedBytes());
  return text.str();
}

Status ProcessExecutor::finish() {
  if (failed)
    return {};
  auto all = conversation.allGather(countsText(), "to end the run");
  if (!all)
    return all.status();
  counted = std::move(*all);
  return {};
}

std::vector<CollectiveStats> ProcessExecutor::stats() const {
  std::map<int64_t, CollectiveStats> all;
  const std::vector<int64_t> none(static_cast<size_t>(program().numDevices()));
  for (const Code &code : codes) {
    for (const Step *step : code.collectives) {
      const auto &collective = std::get<CollectiveStep>(step->action);
      all[collective.id] = {collective.id,
                            std::string(toString(collective.kind)),
                            step->loc,
                            0,
                            collective.wireBytes,
                            none,
                            none};
    }
    for (const Instruction &each : code.instructions)
      if (each.op == Instruction::Op::recv) {
        const auto &transfer = std::get<TransferStep>(each.step->action);
        all[transfer.id] = {transfer.id, "transfer", each.step->loc, 0, transfer.wireBytes,
                            none,        none};
      }
  }
  auto add = [&](size_t rank, const std::string &text) {
    std::istringstream lines(text);
    for (int64_t id, executions, sent, received; lines >> id >> executions >> sent >> received;) {
      CollectiveStats &stats = all.at(id);
      stats.executions = std::max(stats.executions, executions);
      stats.sentBytes[rank] += sent;
      stats.receivedBytes[rank] += received;
    }
  };
  if (counted.empty())
    add(static_cast<size_t>(transport->rank()), countsText());
  for (size_t rank = 0; rank < counted.size(); ++rank)
    add(rank, counted[rank]);
  std::vector<CollectiveStats> list;
  for (auto &[id, stats] : all)
    list.push_back(std::move(stats));
  return list;
}

std::string ProcessExecutor::traceJson() const {
  if (!trace)
    return "";
  std::vector<Track> tracks(static_cast<size_t>(program().numDevices()));
  tracks[transport->rank()] = track;
  auto text = traceOfRanks(program(), tracks, transport->rank(), [this](const std::string &mine) {
    return conversation.allGather(mine, "to write a trace");
  });
  if (text)
    return *text;
  std::vector<std::string> titles = {"no trace: " + text.message()};
  const Track none;
  return runtime::traceJson({&none}, titles, program());
}

bool ProcessExecutor::holds(int64_t part, int64_t position) const {
  return memory.holds(part, position);
}

std::byte *ProcessExecutor::slotData(int64_t part, int64_t position, int64_t slot) {
  return holds(part, position) ? memory.slot(part, position, slot) : nullptr;
}

Status ProcessExecutor::writeSlot(int64_t part, int64_t position, int64_t slot,
                                  const std::byte *data, int64_t size) {
  if (holds(part, position))
    std::copy_n(data, size, memory.slot(part, position, slot));
  return {};
}

Status ProcessExecutor::readHeld(int64_t part, int64_t position, int64_t slot, std::byte *data,
                                 int64_t size) {
  if (failed)
    return Status::error("an earlier step failed: " + failure);
  return Executor::readHeld(part, position, slot, data, size);
}

Expected<std::vector<const std::byte *>>
ProcessExecutor::readSlots(int64_t part, const std::vector<int64_t> &positions, int64_t slot,
                           int64_t size, Readers readers, std::vector<Bytes> &staging) {
  if (failed)
    return Status::error("an earlier step failed: " + failure);
  const sharding::Mesh &mesh = program().meshes[program().parts[part].mesh];
  std::vector<int64_t> owners;
  std::vector<std::byte *> data;
  for (int64_t position : positions) {
    owners.push_back(mesh.processIds[position]);
    if (holds(part, position))
      data.push_back(memory.slot(part, position, slot));
    else if (readers == Readers::all || reportsResults())
      data.push_back(staging.emplace_back(static_cast<size_t>(size)).data());
    else
      data.push_back(nullptr);
  }
  TESSERA_RETURN_IF_ERROR(
      conversation.share(owners, data, size, readers == Readers::all, "to read a result"));
  return std::vector<const std::byte *>(data.begin(), data.end());
}

} // namespace tessera::runtime
