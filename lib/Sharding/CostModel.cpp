//===- CostModel.cpp - What communication takes ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/CostModel.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::sharding {

Link LinkModel::linkOf(const Mesh &mesh, const AxisList &group) const {
  auto at = [&](int64_t axis) {
    return axis < static_cast<int64_t>(axes.size()) ? axes[axis] : Link();
  };
  Link slowest{0.0, 1e300};
  auto include = [&](int64_t axis) {
    slowest.alpha = std::max(slowest.alpha, at(axis).alpha);
    slowest.rate = std::min(slowest.rate, at(axis).rate);
  };
  for (const AxisRef &axis : group)
    include(axis.axis);
  if (group.empty())
    for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
      include(axis);
  return slowest;
}

int64_t roundsOf(CollectiveKind kind, int64_t n, const Traffic &traffic) {
  auto doublings =
      static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(n, 1) - 1)));
  switch (kind) {
  case CollectiveKind::slice:
    return 0;
  case CollectiveKind::all_reduce:
    return 2 * doublings;
  case CollectiveKind::all_gather:
  case CollectiveKind::reduce_scatter:
  case CollectiveKind::all_to_all:
  case CollectiveKind::broadcast:
  case CollectiveKind::reduce:
    return doublings;
  default:
    return traffic.messages;
  }
}

double LinkModel::seconds(const Mesh &mesh, const AxisList &group, CollectiveKind kind,
                          const Traffic &traffic) const {
  if (traffic.count == 0)
    return 0;
  Link link = linkOf(mesh, group);
  int64_t n = group.empty() ? mesh.numDevices() : sizeOf(group);
  // One more latency for the launch: of two chains with equal rounds the one with fewer collectives
  // wins.
  return static_cast<double>(1 + roundsOf(kind, n, traffic)) * link.alpha +
         static_cast<double>(traffic.wireBytes) / link.rate;
}

Cost Cost::of(Objective objective, double seconds, const Traffic &traffic) {
  auto bytes = static_cast<double>(traffic.wireBytes);
  auto count = static_cast<double>(traffic.count);
  // Whole picoseconds add up exactly: chains that take equally long compare equal.
  if (objective == Objective::time)
    return {std::round(seconds * 1e12), bytes, count};
  return {bytes, count, static_cast<double>(traffic.messages)};
}

} // namespace tessera::sharding
