//===- CostModel.h - What communication takes -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The α-β model: a collective takes its number of rounds times a latency plus
// its bytes over a rate (R. Hockney, "The communication challenge for MPP",
// Parallel Computing 20, 1994). The one price that the planner, propagation,
// search and the report use.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_COSTMODEL_H
#define TESSERA_SHARDING_COSTMODEL_H

#include "tessera/Sharding/Collective.h"

namespace tessera::sharding {

/// One class of links.
struct Link {
  double alpha = 2e-6; ///< seconds a message
  double rate = 450e9; ///< bytes a second, one direction
};

/// The links along each axis of a mesh.
struct LinkModel {
  std::vector<Link> axes; ///< by mesh axis; missing ones are the default link

  /// The slowest latency and rate among the axes of a group; of all axes when it is empty.
  Link linkOf(const Mesh &mesh, const AxisList &group) const;
  /// Seconds of a collective over `group` (of all devices when it is empty) with this traffic:
  /// (1 + rounds) x α + wire bytes / rate.
  double seconds(const Mesh &mesh, const AxisList &group, CollectiveKind kind,
                 const Traffic &traffic) const;
};

/// Rounds in which no device waits for a message of the same round, over n devices: log2(n) for
/// gathers, reduce-scatters and all-to-alls by recursive doubling and halving, twice that for an
/// all-reduce (R. Thakur et al., "Optimization of collective communication operations in MPICH",
/// 2005), one a message for the others.
int64_t roundsOf(CollectiveKind kind, int64_t n, const Traffic &traffic);

/// What a plan minimises.
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
