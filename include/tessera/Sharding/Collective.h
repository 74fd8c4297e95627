//===- Collective.h - Collectives and their traffic -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only model of the bytes and messages of a collective, for the report, the planner
// and the tests.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_COLLECTIVE_H
#define TESSERA_SHARDING_COLLECTIVE_H

#include "tessera/Sharding/Redistribution.h"

#include <span>

namespace tessera::sharding {

/// The kinds of moves. What one moves is its pair of layouts; the kind selects the algorithm, and
/// so the cost (`trafficOf`).
enum class CollectiveKind {
  slice, ///< local: each device keeps a part of its values
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  permute,
  broadcast,
  scatter,
  gather,
  reduce,
  halo_exchange,
  exchange, ///< every device sends exactly the boxes that others lack
  transfer, ///< send and receive between two meshes
};

/// "all_reduce", …
std::string_view toString(CollectiveKind kind);
std::optional<CollectiveKind> parseCollectiveKind(std::string_view text);

/// Bytes that a device copies. Buffers that are cut along an inner dimension are copied in runs:
/// `strided` counts the bytes within a kilobyte of the start of a run, which hardware does not
/// prefetch.
struct Copies {
  int64_t bytes = 0;
  int64_t strided = 0;

  Copies &operator+=(const Copies &other);
};

/// The cost of one execution of a collective on one tensor, as reports show it.
struct Traffic {
  int64_t bytes = 0;     ///< B of the formulas: the local operand, or the result of an all-gather
  int64_t wireBytes = 0; ///< bytes that the busiest device sends (ring or pairwise algorithms)
  int64_t count = 0;     ///< 1; 2 for a halo exchange; 0 for local moves
  int64_t messages = 0;  ///< point-to-point sends of the busiest device
  /// If devices read each other's buffers: bytes that a device writes to its result, or to copies
  /// of its own values.
  Copies written = {};
  Copies added = {}; ///< of a device's contribution, if it is added to others

  /// Elements that are consecutive both in a buffer of `source` and in one of `target`: the product
  /// of the common sizes up to the innermost dimension that either of them cuts.
  static int64_t runOf(std::span<const int64_t> source, std::span<const int64_t> target);
  /// Sets `written` and `added` for buffers of these shapes.
  void setCopies(CollectiveKind kind, int64_t bytesPerElement, std::span<const int64_t> source,
                 std::span<const int64_t> target);
  Traffic &operator+=(const Traffic &other);
};

/// Wire bytes, count and messages of moving a tensor from `source` to `target` by a collective of
/// the given kind over groups of `groupSize` devices. Valid elements only, n = group size:
///
///   all_reduce      2B(n-1)/n, B = local operand          2(n-1) messages
///   all_gather      B(n-1)/n, B = result; uneven: max over devices of (result - own part)    n-1
///   reduce_scatter  B(n-1)/n, B = local operand           n-1
///   all_to_all      B(n-1)/n, B = local operand           n-1
///   gather, scatter B(n-1)/n, B = the root's buffer       n-1
///   permute, broadcast, reduce, send: B                   1
///   halo_exchange   both slabs of an interior device      as many as it sends
///   exchange        max over devices of max(sent, received)  what it sends
Traffic trafficOf(CollectiveKind kind, int64_t groupSize, int64_t bytesPerElement,
                  const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                  const Layout &target);

/// One tensor of a collective that moves several.
struct MovedTensor {
  int64_t bytesPerElement = 0;
  Layout source, target;
};
/// The same for one collective of several tensors: bytes add up, counts and messages do not. The
/// busiest device of an exchange is that of all tensors together.
Traffic trafficOf(CollectiveKind kind, int64_t groupSize, const Mesh &sourceMesh,
                  const Mesh &targetMesh, std::span<const MovedTensor> tensors);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_COLLECTIVE_H
