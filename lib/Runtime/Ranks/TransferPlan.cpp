//===- TransferPlan.cpp - A transfer between parts as messages ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransferPlan.h"

#include <algorithm>
#include <set>

namespace tessera::runtime {

TransferPlan::TransferPlan(const Program &program, const TransferStep &send,
                           const TransferStep &recv) {
  const sharding::Mesh &sourceMesh = program.meshes[send.sourceMesh];
  const sharding::Mesh &targetMesh = program.meshes[send.targetMesh];
  TrafficCounter counter(program.numDevices());
  for (size_t i = 0; i < send.operands.size(); ++i) {
    const Operand &from = send.operands[i], &to = recv.operands[i];
    moves.emplace_back(from.dtype, sourceMesh, from.source, targetMesh, to.target,
                       Move::Options{to.fill, true, Attribution::direct});
    moves.back().countAll(counter);
  }
  sentBytes = counter.sentBytes();
  receivedBytes = counter.receivedBytes();
  std::set<int64_t> both;
  for (auto [mesh, sides] : {std::pair(&sourceMesh, &senders), std::pair(&targetMesh, &receivers)})
    for (int64_t device : mesh->processIds) {
      sides->push_back({device, 0});
      both.insert(device);
    }
  members.assign(both.begin(), both.end());
  layOut();
}

TransferPlan::Route &TransferPlan::routeOf(int64_t source, int64_t target) {
  auto it = std::find_if(routes.begin(), routes.end(), [&](const Route &route) {
    return route.source == source && route.target == target;
  });
  return it != routes.end() ? *it : routes.emplace_back(Route{source, target});
}

int64_t TransferPlan::rankOf(int64_t device) const {
  return std::lower_bound(members.begin(), members.end(), device) - members.begin();
}

/// Offsets in staging: the boxes of a route are contiguous on both sides, in the same order.
void TransferPlan::layOut() {
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
  auto sideOf = [](std::vector<Side> &sides, int64_t device) -> Side & {
    return *std::find_if(sides.begin(), sides.end(),
                         [&](const Side &side) { return side.device == device; });
  };
  for (Route &route : routes) {
    Side &from = sideOf(senders, route.source), &to = sideOf(receivers, route.target);
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

} // namespace tessera::runtime
