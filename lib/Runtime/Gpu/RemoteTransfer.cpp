//===- RemoteTransfer.cpp - Moves between parts, as messages --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RemoteTransfer.h"

#include "../Execution/MoveJob.h"
#include "Executor.h"

#include <algorithm>
#include <set>

namespace tessera::runtime::gpu {

RemoteTransfer::RemoteTransfer(GpuDriver &driver, Collectives &collectives, const Program &program,
                               const Step &send, const Step &recv)
    : driver(driver), collectives(collectives), recv(recv),
      sending(std::get<TransferStep>(send.action)), receiving(std::get<TransferStep>(recv.action)) {
  const sharding::Mesh &sourceMesh = program.meshes[sending.sourceMesh];
  const sharding::Mesh &targetMesh = program.meshes[sending.targetMesh];
  TrafficCounter counter(program.numDevices());
  for (size_t i = 0; i < sending.operands.size(); ++i) {
    const Operand &from = sending.operands[i], &to = receiving.operands[i];
    moves.emplace_back(from.dtype, sourceMesh, from.source, targetMesh, to.target,
                       Move::Options{to.fill, true, Attribution::direct});
    moves.back().countAll(counter);
  }
  sentBytes = counter.sentBytes();
  receivedBytes = counter.receivedBytes();
  std::set<int64_t> both;
  for (auto [mesh, sides] : {std::pair(&sourceMesh, &senders), std::pair(&targetMesh, &receivers)})
    for (int64_t device : mesh->processIds) {
      sides->emplace_back().device = device;
      both.insert(device);
    }
  members.assign(both.begin(), both.end());
  layOut();
}

RemoteTransfer::Route &RemoteTransfer::routeOf(int64_t source, int64_t target) {
  auto it = std::find_if(routes.begin(), routes.end(), [&](const Route &route) {
    return route.source == source && route.target == target;
  });
  return it != routes.end() ? *it : routes.emplace_back(Route{source, target});
}

RemoteTransfer::Side *RemoteTransfer::find(std::vector<Side> &sides, int64_t device) const {
  auto it = std::find_if(sides.begin(), sides.end(),
                         [&](const Side &side) { return side.device == device; });
  return it == sides.end() ? nullptr : &*it;
}

int64_t RemoteTransfer::rankOf(int64_t device) const {
  return std::lower_bound(members.begin(), members.end(), device) - members.begin();
}

/// Places in staging: the boxes of a route lie together on both sides, in one order.
void RemoteTransfer::layOut() {
  for (size_t operand = 0; operand < moves.size(); ++operand)
    for (const MovePiece &piece : moves[operand].pieces()) {
      Box box{operand, &piece, piece.strides, piece.strides, 0, {}, {}};
      box.pack.target = box.unpack.source = denseStrides(piece.strides);
      box.bytes = (piece.strides.elements * moves[operand].elementBytes() + 15) / 16 * 16;
      for (const End &from : piece.sources) {
        Route &route = routeOf(from.device, piece.targets.front().device);
        box.sent.push_back(route.bytes);
        route.bytes += box.bytes;
      }
      box.received = box.sent;
      boxes.push_back(std::move(box));
    }
  for (Route &route : routes) {
    Side &from = *find(senders, route.source), &to = *find(receivers, route.target);
    route.sendAt = from.stagingBytes;
    route.receiveAt = to.stagingBytes;
    from.stagingBytes += route.bytes;
    to.stagingBytes += route.bytes;
  }
  for (Box &box : boxes)
    for (size_t i = 0; i < box.sent.size(); ++i) {
      const Route &route = routeOf(box.piece->sources[i].device, box.piece->targets.front().device);
      box.sent[i] += route.sendAt;
      box.received[i] += route.receiveAt;
    }
}

Status RemoteTransfer::addRoom(Side &side) {
  Room room;
  auto memory = driver.allocate(side.device, side.stagingBytes);
  if (!memory)
    return memory.status();
  room.staging = *memory;
  for (Event *event : {&room.packed, &room.sent, &room.taken}) {
    auto made = driver.createEvent(side.device);
    if (!made)
      return made.status();
    *event = *made;
  }
  side.rooms.push_back(room);
  return {};
}

Status RemoteTransfer::openSide(Side &side, const char *name, int64_t rooms) {
  side.isHere = true;
  for (int64_t i = 0; i < rooms; ++i)
    TESSERA_RETURN_IF_ERROR(addRoom(side));
  auto stream = driver.createStream(side.device, std::string(name) + " of device " +
                                                     std::to_string(side.device));
  if (!stream)
    return stream.status();
  side.stream = *stream;
  auto event = driver.createEvent(side.device);
  if (!event)
    return event.status();
  side.done = *event;
  return {};
}

Status RemoteTransfer::open(const std::vector<int64_t> &here, int64_t rooms) {
  roomsAreKnown = rooms > 0;
  auto made = collectives.makeCommunicators({members}, here, Collectives::Calls::concurrent);
  if (!made)
    return made.status();
  communicator = made->front();
  auto isHere = [&](const Side &side) {
    return std::find(here.begin(), here.end(), side.device) != here.end();
  };
  for (Side &side : senders)
    if (isHere(side))
      TESSERA_RETURN_IF_ERROR(openSide(side, "sends", std::max<int64_t>(rooms, 1)));
  for (Side &side : receivers)
    if (isHere(side))
      TESSERA_RETURN_IF_ERROR(openSide(side, "receives", 1));
  return {};
}

Expected<size_t> RemoteTransfer::chooseRoom(Side &side, Stream compute) {
  bool alsoReceives = find(receivers, side.device) != nullptr;
  if (roomsAreKnown) {
    size_t index = static_cast<size_t>(side.count) % side.rooms.size();
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.rooms[index].sent));
    if (alsoReceives)
      TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.rooms[index].taken));
    return index;
  }
  for (size_t index = 0; index < side.rooms.size(); ++index) {
    // A message to itself is taken from a room that no event may have been recorded for yet.
    if (std::find(side.toSelf.begin(), side.toSelf.end(), index) != side.toSelf.end())
      continue;
    bool free = true;
    for (Event event : {side.rooms[index].sent, side.rooms[index].taken}) {
      auto done = driver.isDone(event);
      if (!done)
        return done.status();
      free &= *done;
    }
    if (!free)
      continue;
    // Done, which whoever looks for hazards learns by a wait.
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.rooms[index].sent));
    TESSERA_RETURN_IF_ERROR(driver.wait(compute, side.rooms[index].taken));
    return index;
  }
  TESSERA_RETURN_IF_ERROR(addRoom(side));
  return side.rooms.size() - 1;
}

Status RemoteTransfer::exchange(const Side &side, std::byte *staging, Issuer &issuer, bool sends) {
  std::vector<PeerCopy> messages;
  for (const Route &route : routes) {
    if ((sends ? route.source : route.target) != side.device || route.source == route.target ||
        route.bytes == 0)
      continue;
    messages.push_back({rankOf(sends ? route.target : route.source), sends,
                        staging + (sends ? route.sendAt : route.receiveAt), route.bytes});
  }
  if (messages.empty())
    return {};
  const Issue issue{side.stream, issuer.currentStep(), sends ? "send" : "recv", {}};
  TESSERA_RETURN_IF_ERROR(driver.beginTimed(issue));
  TESSERA_RETURN_IF_ERROR(
      collectives.exchange(issue, communicator, rankOf(side.device), std::move(messages)));
  return driver.endTimed(issue);
}

Expected<bool> RemoteTransfer::trySend(Issuer &issuer) {
  Side &side = *find(senders, issuer.device);
  Stream compute = issuer.stream(0);
  // What it gave itself must have been issued to be taken: an event says nothing before.
  size_t next = static_cast<size_t>(side.count) % side.rooms.size();
  if (roomsAreKnown && std::count(side.toSelf.begin(), side.toSelf.end(), next) > 0)
    return false;
  auto index = chooseRoom(side, compute);
  if (!index)
    return index.status();
  Room &room = side.rooms[*index];
  for (const Box &box : boxes)
    for (size_t i = 0; i < box.sent.size(); ++i) {
      const End &from = box.piece->sources[i];
      if (from.device != issuer.device)
        continue;
      const Operand &operand = sending.operands[box.operand];
      MoveJob job{&box.pack,
                  operand.dtype,
                  {},
                  1,
                  {issuer.slot(operand.src) + from.offset * moves[box.operand].elementBytes()},
                  {room.staging + box.sent[i]},
                  {}};
      TESSERA_RETURN_IF_ERROR(
          driver.move({compute, issuer.currentStep(), "pack", {}}, std::move(job)));
    }
  TESSERA_RETURN_IF_ERROR(driver.record(room.packed, compute));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, room.packed));
  TESSERA_RETURN_IF_ERROR(exchange(side, room.staging, issuer, true));
  TESSERA_RETURN_IF_ERROR(driver.record(room.sent, side.stream));
  ++side.count;
  if (find(receivers, issuer.device))
    side.toSelf.push_back(*index);
  return true;
}

Expected<bool> RemoteTransfer::tryReceive(Issuer &issuer) {
  Side &side = *find(receivers, issuer.device);
  Side *own = find(senders, issuer.device);
  if (own && own->toSelf.empty())
    return false; // it has not given itself its part
  Room *given = own ? &own->rooms[own->toSelf.front()] : nullptr;
  std::byte *staging = side.rooms.front().staging;
  ++side.count;
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), issuer.stream(0)));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, issuer.spareEvent()));
  if (given)
    TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, given->packed));
  TESSERA_RETURN_IF_ERROR(exchange(side, staging, issuer, false));
  for (const Box &box : boxes) {
    const End &to = box.piece->targets.front();
    if (to.device != issuer.device)
      continue;
    const Operand &operand = receiving.operands[box.operand];
    const Move &move = moves[box.operand];
    MoveJob job{box.piece->isFill() ? &box.piece->strides : &box.unpack,
                operand.dtype,
                move.reduction(),
                move.resultScale(),
                {},
                {issuer.slot(operand.dst) + to.offset * move.elementBytes()},
                box.piece->value};
    for (size_t i = 0; i < box.received.size(); ++i)
      job.sources.push_back(box.piece->sources[i].device == issuer.device
                                ? given->staging + box.sent[i]
                                : staging + box.received[i]);
    TESSERA_RETURN_IF_ERROR(
        driver.move({side.stream, issuer.currentStep(), "unpack", {}}, std::move(job)));
  }
  if (given) {
    TESSERA_RETURN_IF_ERROR(driver.record(given->taken, side.stream));
    own->toSelf.pop_front();
  }
  TESSERA_RETURN_IF_ERROR(driver.record(side.done, side.stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(issuer.stream(0), side.done));
  return true;
}

std::vector<int64_t> RemoteTransfer::missingFor(int64_t device) const {
  auto receiver = std::find_if(receivers.begin(), receivers.end(),
                               [&](const Side &side) { return side.device == device; });
  std::vector<int64_t> missing;
  for (const Side &side : senders) {
    bool sends = std::any_of(routes.begin(), routes.end(), [&](const Route &route) {
      return route.source == side.device && route.target == device;
    });
    // A device that gives itself its part is not counted as receiving before it has.
    int64_t awaited = receiver->count + (side.device == device);
    if (sends && side.isHere && side.count < awaited)
      missing.push_back(side.device);
  }
  return missing;
}

CollectiveStats RemoteTransfer::stats() const {
  CollectiveStats stats{receiving.id,        "transfer", recv.loc,     0,
                        receiving.wireBytes, sentBytes,  receivedBytes};
  for (const std::vector<Side> *sides : {&senders, &receivers})
    for (const Side &side : *sides)
      if (side.isHere)
        stats.executions = std::max(stats.executions, side.count);
  for (auto *bytes : {&stats.sentBytes, &stats.receivedBytes})
    for (int64_t &each : *bytes)
      each *= stats.executions;
  return stats;
}

} // namespace tessera::runtime::gpu
