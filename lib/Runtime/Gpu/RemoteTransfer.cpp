//===- RemoteTransfer.cpp - Moves between parts, as messages --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RemoteTransfer.h"

#include "Executor.h"
#include "MoveJob.h"

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

Status RemoteTransfer::openSide(Side &side, const char *name) {
  side.isHere = true;
  auto memory = driver.allocate(side.device, side.stagingBytes);
  if (!memory)
    return memory.status();
  side.staging = *memory;
  auto stream = driver.createStream(side.device, std::string(name) + " of device " +
                                                     std::to_string(side.device));
  if (!stream)
    return stream.status();
  side.stream = *stream;
  for (Event *event : {&side.ready, &side.done}) {
    auto made = driver.createEvent(side.device);
    if (!made)
      return made.status();
    *event = *made;
  }
  return {};
}

Status RemoteTransfer::open(const std::vector<int64_t> &here) {
  auto made = collectives.makeCommunicators({members}, here, Collectives::Calls::concurrent);
  if (!made)
    return made.status();
  communicator = made->front();
  for (auto [sides, name] : {std::pair(&senders, "sends"), std::pair(&receivers, "receives")})
    for (Side &side : *sides)
      if (std::find(here.begin(), here.end(), side.device) != here.end())
        TESSERA_RETURN_IF_ERROR(openSide(side, name));
  return {};
}

Status RemoteTransfer::exchange(const Side &side, Issuer &issuer, bool sends) {
  std::vector<PeerCopy> messages;
  for (const Route &route : routes) {
    if ((sends ? route.source : route.target) != side.device || route.source == route.target ||
        route.bytes == 0)
      continue;
    messages.push_back({rankOf(sends ? route.target : route.source), sends,
                        side.staging + (sends ? route.sendAt : route.receiveAt), route.bytes});
  }
  if (messages.empty())
    return {};
  return collectives.exchange({side.stream, issuer.currentStep(), sends ? "send" : "recv", {}},
                              communicator, rankOf(side.device), std::move(messages));
}

Status RemoteTransfer::send(Issuer &issuer) {
  Side &side = *find(senders, issuer.device);
  Side *own = find(receivers, issuer.device);
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), issuer.stream(0)));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, issuer.spareEvent()));
  if (own) // what it gave itself last must have been taken
    TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, own->done));
  for (const Box &box : boxes)
    for (size_t i = 0; i < box.sent.size(); ++i) {
      const End &from = box.piece->sources[i];
      if (from.device != issuer.device)
        continue;
      const Operand &operand = sending.operands[box.operand];
      bool toItself = box.piece->targets.front().device == issuer.device;
      MoveJob job{&box.pack,
                  operand.dtype,
                  {},
                  1,
                  {issuer.slot(operand.src) + from.offset * moves[box.operand].elementBytes()},
                  {toItself ? own->staging + box.received[i] : side.staging + box.sent[i]},
                  {}};
      TESSERA_RETURN_IF_ERROR(
          driver.move({side.stream, issuer.currentStep(), "pack", {}}, std::move(job)));
    }
  TESSERA_RETURN_IF_ERROR(driver.record(side.ready, side.stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(issuer.stream(0), side.ready));
  ++side.count;
  return exchange(side, issuer, true);
}

Expected<bool> RemoteTransfer::tryReceive(Issuer &issuer) {
  Side &side = *find(receivers, issuer.device);
  Side *own = find(senders, issuer.device);
  if (own && own->count <= side.count)
    return false; // it has not given itself its part
  ++side.count;
  TESSERA_RETURN_IF_ERROR(driver.record(issuer.spareEvent(), issuer.stream(0)));
  TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, issuer.spareEvent()));
  if (own)
    TESSERA_RETURN_IF_ERROR(driver.wait(side.stream, own->ready));
  TESSERA_RETURN_IF_ERROR(exchange(side, issuer, false));
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
    for (int64_t at : box.received)
      job.sources.push_back(side.staging + at);
    TESSERA_RETURN_IF_ERROR(
        driver.move({side.stream, issuer.currentStep(), "unpack", {}}, std::move(job)));
  }
  TESSERA_RETURN_IF_ERROR(driver.record(side.done, side.stream));
  TESSERA_RETURN_IF_ERROR(driver.wait(issuer.stream(0), side.done));
  return true;
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
