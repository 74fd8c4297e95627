//===- CostModel.cpp - Time of communication ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/CostModel.h"

#include "tessera/Sharding/CollectiveTraits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::sharding {

double CopyRates::seconds(const Traffic &traffic) const {
  auto secondsOf = [](const Copies &copies, double rate, double strided) {
    return static_cast<double>(copies.bytes - copies.strided) / rate +
           static_cast<double>(copies.strided) / strided;
  };
  return secondsOf(traffic.written, copy, stridedCopy) + secondsOf(traffic.added, add, stridedAdd);
}

bool LinkModel::countsCopies() const {
  return has(Algorithm::shared_memory) &&
         std::any_of(axes.begin(), axes.end(), [](const Link &link) { return link.copies; });
}

Link LinkModel::linkOf(const Mesh &mesh, const AxisList &group) const {
  auto at = [&](int64_t axis) {
    return axis < static_cast<int64_t>(axes.size()) ? axes[axis] : Link();
  };
  Link slowest{0.0, 1e300, CopyRates{1e300, 1e300, 1e300, 1e300}};
  auto include = [&](int64_t axis) {
    Link link = at(axis);
    slowest.alpha = std::max(slowest.alpha, link.alpha);
    slowest.rate = std::min(slowest.rate, link.rate);
    if (!link.copies)
      slowest.copies.reset();
    if (!slowest.copies)
      return;
    for (double CopyRates::*rate :
         {&CopyRates::copy, &CopyRates::stridedCopy, &CopyRates::add, &CopyRates::stridedAdd})
      (*slowest.copies).*rate = std::min((*slowest.copies).*rate, (*link.copies).*rate);
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
  int rounds = traitsOf(kind).rounds;
  return rounds < 0 ? traffic.messages : rounds * doublings;
}

constexpr std::pair<Algorithm, std::string_view> algorithmNames[] = {
    {Algorithm::direct, "direct"},
    {Algorithm::ring, "ring"},
    {Algorithm::tree, "tree"},
    {Algorithm::doubling, "doubling"},
    {Algorithm::hierarchical, "hierarchical"},
    {Algorithm::shared_memory, "shared_memory"},
};

std::string_view toString(Algorithm algorithm) {
  for (auto [known, name] : algorithmNames)
    if (known == algorithm)
      return name;
  return {};
}

std::optional<Algorithm> parseAlgorithm(std::string_view text) {
  for (auto [known, name] : algorithmNames)
    if (name == text)
      return known;
  return std::nullopt;
}

bool LinkModel::has(Algorithm algorithm) const {
  if (algorithms.empty())
    return algorithm != Algorithm::shared_memory;
  return std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
}

/// Whether a collective has an algorithm other than sending boxes between pairs of devices.
static bool isCollective(CollectiveKind kind) {
  return traitsOf(kind).rounds > 0;
}

/// Rounds and bytes of one algorithm on one class of links; empty if it does not support the kind.
static std::optional<std::pair<double, double>> workOf(Algorithm algorithm, CollectiveKind kind,
                                                       int64_t devices, double wireBytes) {
  auto n = static_cast<double>(devices);
  auto doublings = static_cast<double>(roundsOf(CollectiveKind::all_gather, devices, {}));
  bool isRooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  double whole = isRooted || devices < 2 ? wireBytes : wireBytes * n / (n - 1);
  bool isReduced = kind == CollectiveKind::all_reduce;
  switch (algorithm) {
  case Algorithm::ring:
    return std::pair((isReduced ? 2 : 1) * (n - 1), wireBytes);
  case Algorithm::doubling:
    return std::pair(static_cast<double>(roundsOf(kind, devices, {})), wireBytes);
  case Algorithm::tree:
    if (kind == CollectiveKind::all_to_all)
      return std::nullopt;
    if (isRooted)
      return std::pair(doublings, wireBytes);
    // An all-reduce sends the whole buffer up and down: its wire bytes are nearly twice the buffer.
    // The others send parts in one of the directions.
    return std::pair(2 * doublings, isReduced ? whole : wireBytes + whole);
  default:
    return std::nullopt;
  }
}

/// Bytes of the larger of a device's buffers: the result of a gather, the operand of a
/// reduce-scatter, either of an all-reduce. Inverts the formulas of wire bytes in `Collective.h`.
static double largerSide(CollectiveKind kind, int64_t devices, double wireBytes) {
  auto n = static_cast<double>(std::max<int64_t>(devices, 2));
  int shares = traitsOf(kind).shares;
  return shares == 0 ? wireBytes : wireBytes * n / (shares * (n - 1));
}

/// The levels of a group, equal links merged, fastest first; empty if the group contains parts of
/// axes.
std::vector<LinkLevel> LinkModel::levelsOf(const Mesh &mesh, const AxisList &group) const {
  std::vector<LinkLevel> found;
  auto include = [&](int64_t axis) {
    std::vector<LinkLevel> own;
    if (axis < static_cast<int64_t>(levels.size()))
      own = levels[axis];
    if (own.empty())
      own = {{mesh.shape[axis], linkOf(mesh, {AxisRef::full(mesh, axis)})}};
    for (const LinkLevel &level : own) {
      auto same = std::find_if(found.begin(), found.end(), [&](const LinkLevel &known) {
        return known.link.alpha == level.link.alpha && known.link.rate == level.link.rate;
      });
      if (same == found.end())
        found.push_back(level);
      else
        same->devices *= level.devices;
    }
  };
  for (const AxisRef &axis : group) {
    if (!axis.isFull(mesh))
      return {};
    include(axis.axis);
  }
  if (group.empty())
    for (int64_t axis = 0; axis < mesh.numAxes(); ++axis)
      include(axis);
  std::erase_if(found, [](const LinkLevel &level) { return level.devices == 1; });
  std::stable_sort(found.begin(), found.end(), [](const LinkLevel &a, const LinkLevel &b) {
    return a.link.rate > b.link.rate;
  });
  return found;
}

/// Level by level: after reducing or before gathering over the inner links, the outer links carry
/// only the part that a device keeps (as in NCCL's collnet and Horovod's hierarchical all-reduce).
std::optional<double> LinkModel::hierarchical(const std::vector<LinkLevel> &levels,
                                              CollectiveKind kind, double wireBytes) const {
  using Kind = CollectiveKind;
  if (levels.size() < 2 || !isCollective(kind) || kind == Kind::broadcast || kind == Kind::reduce)
    return std::nullopt;
  double n = 1, slowest = 0, seconds = 0;
  for (const LinkLevel &level : levels) {
    n *= static_cast<double>(level.devices);
    slowest = std::max(slowest, level.link.alpha);
  }
  double bytes = wireBytes * n / (n - 1); // for an all-reduce twice the buffer
  for (const LinkLevel &level : levels) {
    auto own = static_cast<double>(level.devices);
    std::optional<double> best;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::doubling})
      if (auto work = workOf(algorithm, kind, level.devices, bytes * (own - 1) / own);
          work && has(algorithm))
        if (double duration = work->first * level.link.alpha + work->second / level.link.rate;
            !best || duration < *best)
          best = duration;
    if (!best)
      return std::nullopt;
    seconds += *best;
    if (kind != Kind::all_to_all)
      bytes /= own;
  }
  return slowest + seconds;
}

Timing LinkModel::timing(const Mesh &mesh, const AxisList &group, CollectiveKind kind,
                         const Traffic &traffic) const {
  if (traffic.count == 0 && traffic.written.bytes == 0)
    return {};
  Link link = linkOf(mesh, group);
  if (traffic.count == 0) // devices copy their own data without waiting
    return {has(Algorithm::shared_memory) && link.copies ? link.copies->seconds(traffic) : 0,
            Algorithm::direct};
  int64_t n = group.empty() ? mesh.numDevices() : sizeOf(group);
  auto wireBytes = static_cast<double>(traffic.wireBytes);
  // One more latency for the launch: of two chains with equal rounds, the one with fewer
  // collectives is preferred.
  auto onOneLink = [&](double rounds, double bytes) {
    return (1 + rounds) * link.alpha + bytes / link.rate;
  };
  if (has(Algorithm::shared_memory) && link.copies)
    return {link.alpha + link.copies->seconds(traffic), Algorithm::shared_memory};
  if (has(Algorithm::shared_memory))
    return {onOneLink(0, largerSide(kind, n, wireBytes)), Algorithm::shared_memory};
  if (!isCollective(kind))
    return {onOneLink(static_cast<double>(roundsOf(kind, n, traffic)), wireBytes),
            Algorithm::direct};
  std::optional<Timing> best;
  auto offer = [&](Algorithm algorithm, double seconds) {
    if (has(algorithm) && (!best || seconds < best->seconds))
      best = Timing{seconds, algorithm};
  };
  for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::doubling})
    if (auto work = workOf(algorithm, kind, n, wireBytes))
      offer(algorithm, onOneLink(work->first, work->second));
  if (auto seconds = hierarchical(levelsOf(mesh, group), kind, wireBytes))
    offer(Algorithm::hierarchical, *seconds);
  // Without any algorithm for the kind, the library sends boxes.
  return best ? *best : Timing{onOneLink(static_cast<double>(n - 1), wireBytes), Algorithm::direct};
}

Cost Cost::of(Objective objective, double seconds, const Traffic &traffic) {
  auto bytes = static_cast<double>(traffic.wireBytes);
  auto count = static_cast<double>(traffic.count);
  // Whole picoseconds add up exactly: chains of equal time compare equal.
  if (objective == Objective::time)
    return {std::round(seconds * 1e12), bytes, count};
  return {bytes, count, static_cast<double>(traffic.messages)};
}

} // namespace tessera::sharding
