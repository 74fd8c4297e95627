//===- Collective.cpp - Kinds of collectives and what they send ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Collective.h"

#include <algorithm>
#include <array>

namespace tessera::sharding {

static constexpr std::array<std::string_view, 13> kKindNames = {
    "slice",   "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast",
    "scatter", "gather",     "reduce",     "halo_exchange",  "exchange",   "transfer"};

std::string_view toString(CollectiveKind kind) {
  return kKindNames[static_cast<int>(kind)];
}

std::optional<CollectiveKind> parseCollectiveKind(std::string_view text) {
  for (size_t i = 0; i < kKindNames.size(); ++i)
    if (kKindNames[i] == text)
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

Traffic &Traffic::operator+=(const Traffic &other) {
  bytes += other.bytes;
  wireBytes += other.wireBytes;
  count += other.count;
  messages += other.messages;
  return *this;
}

/// Max over devices of what the gathered result adds to a device's own part.
static int64_t gatheredElements(const Mesh &mesh, const Layout &source, const Layout &target) {
  int64_t most = 0;
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<int64_t> coordinate = mesh.coordinate(position);
    most = std::max(most, target.valid(mesh, coordinate).numElements() -
                              source.valid(mesh, coordinate).numElements());
  }
  return most;
}

Traffic trafficOf(CollectiveKind kind, int64_t groupSize, int64_t bytesPerElement,
                  const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                  const Layout &target) {
  int64_t n = groupSize;
  int64_t operand = source.maxValidElements() * bytesPerElement;
  int64_t result = target.maxValidElements() * bytesPerElement;
  bool byLayout = kind == CollectiveKind::halo_exchange || kind == CollectiveKind::exchange ||
                  kind == CollectiveKind::transfer;
  if (n == 1 && !byLayout)
    return {operand, 0, 0, 0}; // a group of one has nobody to talk to
  switch (kind) {
  case CollectiveKind::slice:
    return {operand, 0, 0, 0};
  case CollectiveKind::all_reduce:
    return {operand, 2 * operand * (n - 1) / n, 1, 2 * (n - 1)};
  case CollectiveKind::all_gather:
    return {result, gatheredElements(sourceMesh, source, target) * bytesPerElement, 1, n - 1};
  case CollectiveKind::reduce_scatter:
  case CollectiveKind::all_to_all:
  case CollectiveKind::scatter:
    return {operand, operand * (n - 1) / n, 1, n - 1};
  case CollectiveKind::gather:
    return {result, result * (n - 1) / n, 1, n - 1};
  case CollectiveKind::permute:
  case CollectiveKind::broadcast:
  case CollectiveKind::reduce:
    return {operand, operand, 1, 1};
  case CollectiveKind::halo_exchange:
  case CollectiveKind::exchange:
  case CollectiveKind::transfer: {
    Redistribution move = redistribute(sourceMesh, source, targetMesh, target);
    ExchangeTraffic traffic = exchangeTraffic(sourceMesh, targetMesh, move);
    // What every device already holds is no communication.
    int64_t count = traffic.busiest() == 0 ? 0 : kind == CollectiveKind::halo_exchange ? 2 : 1;
    int64_t wire = traffic.busiest() * bytesPerElement;
    return {kind == CollectiveKind::halo_exchange ? wire : operand, wire, count,
            traffic.busiestMessages()};
  }
  }
  return {};
}

} // namespace tessera::sharding
