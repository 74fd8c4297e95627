//===- CostModel.h - Time of communication ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The α-β model: a collective takes its number of rounds times a latency plus its bytes
// over a rate (R. Hockney, "The communication challenge for MPP", Parallel Computing
// 20, 1994). The only cost of communication: the planner, propagation, search and the
// report use it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_COSTMODEL_H
#define TESSERA_SHARDING_COSTMODEL_H

#include "tessera/Sharding/Collective.h"

#include <optional>

namespace tessera::sharding {

/// Copy rates of devices that share one memory, in bytes per second per device while all copy.
struct CopyRates {
  double copy = 0;        ///< written in long runs
  double stridedCopy = 0; ///< written at the beginning of a run (Copies)
  double add = 0;         ///< of contributions, added to those of others in long runs
  double stridedAdd = 0;  ///< the same at the beginning of a run

  double seconds(const Traffic &traffic) const;
  friend auto operator<=>(const CopyRates &, const CopyRates &) = default;
};

/// One class of links.
struct Link {
  double alpha = 2e-6; ///< seconds per message
  double rate = 450e9; ///< bytes per second, one direction
  /// For Algorithm::shared_memory, instead of the rate.
  std::optional<CopyRates> copies = {};
  friend auto operator<=>(const Link &, const Link &) = default;
};

/// The algorithm of a collective over n devices.
enum class Algorithm {
  direct,       ///< one message after the other: for moves of boxes between pairs
  ring,         ///< n-1 rounds, all-reduce 2(n-1); exactly the wire bytes
  tree,         ///< to a root and back, log2(n) rounds each; whole buffers
  doubling,     ///< recursive doubling and halving: log2(n) rounds, the wire bytes
  hierarchical, ///< one level of links after the other, by doubling or ring within each
  /// Every device reads the others' buffers and writes its own, between two barriers: for any kind
  /// and group, the larger side of a device's buffers passes through memory once. If the link has
  /// CopyRates, the bytes that a device writes and those that it adds count, in long runs and in
  /// short ones.
  shared_memory,
};

/// "ring", …
std::string_view toString(Algorithm algorithm);
std::optional<Algorithm> parseAlgorithm(std::string_view text);

/// The time of a collective by the fastest available algorithm.
struct Timing {
  double seconds = 0;
  Algorithm algorithm = Algorithm::direct;
};

/// Devices joined by one class of links: the 8 of each node, then the nodes.
struct LinkLevel {
  int64_t devices = 1;
  Link link;
};

/// The links along each axis of a mesh.
struct LinkModel {
  std::vector<Link> axes; ///< by mesh axis; missing ones are the default link
  /// By mesh axis its levels, innermost first: an axis of 16 over nodes of 8 has levels of 8 and of
  /// 2. Missing: one level.
  std::vector<std::vector<LinkLevel>> levels = {};
  /// of the communication library; empty: all that send messages
  std::vector<Algorithm> algorithms = {};

  /// The slowest latency and rates among the axes of a group; of all axes if the group is empty.
  /// Has CopyRates if all of them do.
  Link linkOf(const Mesh &mesh, const AxisList &group) const;
  /// The time of a collective over `group` (all devices if empty) with this traffic, by the fastest
  /// algorithm: (1 + rounds) x α + bytes / rate.
  Timing timing(const Mesh &mesh, const AxisList &group, CollectiveKind kind,
                const Traffic &traffic) const;
  /// Whether the copies of a Traffic count.
  bool countsCopies() const;
  double seconds(const Mesh &mesh, const AxisList &group, CollectiveKind kind,
                 const Traffic &traffic) const {
    return timing(mesh, group, kind, traffic).seconds;
  }

private:
  bool has(Algorithm algorithm) const;
  std::vector<LinkLevel> levelsOf(const Mesh &mesh, const AxisList &group) const;
  std::optional<double> hierarchical(const std::vector<LinkLevel> &levels, CollectiveKind kind,
                                     double wireBytes) const;
};

/// Rounds in which no device waits for a message of the same round, over n devices: log2(n) for
/// gathers, reduce-scatters and all-to-alls by recursive doubling and halving, twice that for an
/// all-reduce (R. Thakur et al., "Optimization of collective communication operations in MPICH",
/// 2005), one per message for the others.
int64_t roundsOf(CollectiveKind kind, int64_t n, const Traffic &traffic);

/// What a plan minimizes.
enum class Objective {
  time,  ///< modelled seconds, then bytes, then count
  bytes, ///< wire bytes, then count, then messages: for studying bounds
};

/// Cost of a chain in the order in which an objective compares it.
struct Cost {
  double first = 0;
  double second = 0;
  double third = 0;

  static Cost of(Objective objective, double seconds, const Traffic &traffic);
  Cost operator+(const Cost &other) const {
    return {first + other.first, second + other.second, third + other.third};
  }
  auto operator<=>(const Cost &) const = default;
};

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_COSTMODEL_H
