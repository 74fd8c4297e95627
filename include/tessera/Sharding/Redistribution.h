//===- Redistribution.h - Moves between two layouts, by pieces --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The semantics of all collectives: each element of a destination buffer is
// copied from a device that holds it, or reduced from the devices that hold its
// contributions. All-gather, all-to-all, halo exchange, all-reduce and the others
// differ only in their source and target layouts. The interpreter, the runtime
// and the byte counts use the pieces that are computed here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_REDISTRIBUTION_H
#define TESSERA_SHARDING_REDISTRIBUTION_H

#include "tessera/Sharding/Layout.h"

namespace tessera::sharding {

/// A box of the tensor with its sources and targets. Several sources are reduced in the given order
/// (ascending index over the reduced axes) on every backend.
struct Piece {
  Box box;                      ///< in global indices
  std::vector<int64_t> sources; ///< positions in the source mesh
  std::vector<int64_t> targets; ///< positions in the destination mesh
};

/// The move of one tensor.
struct Redistribution {
  /// How the sources of a piece combine; `avg` sums and multiplies by `scale`.
  ReduceKind kind = ReduceKind::sum;
  /// The factor applied to each written value: 1/n if n contributions of an `avg` are reduced, n if
  /// shards become a partial(avg); otherwise 1.
  double scale = 1.0;
  std::vector<Piece> pieces;
  /// Boxes that a destination device fills with the identity of `fillKind`: the part of a new
  /// partial that it does not hold. (position, box).
  std::vector<std::pair<int64_t, Box>> fills;
  ReduceKind fillKind = ReduceKind::sum;
};

/// The move from `source` on `sourceMesh` to `target` on `targetMesh` (the same global shape). A
/// device keeps the elements that it has; missing elements come from the nearest holder after it in
/// mesh order, so that replicas share the load. Partial axes of the source that the target does not
/// name are reduced. Partial axes that only the target names are created: coordinate 0 keeps the
/// value, the others hold the identity (`avg` has none: all keep the value).
Redistribution redistribute(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                            const Layout &target);

/// Layouts on a smaller mesh.
struct MeshLayouts {
  Mesh mesh;
  std::vector<Layout> layouts;
};
/// The layouts on the mesh of the axes that they use. Every slice of `mesh` along the other axes
/// redistributes independently and in the same way, so traffic per device is the same on both
/// meshes:
///
///   mesh [2048, 8] of "dp", "tp"; [shard(0) over tp] to [shard(1) over tp] | mesh [8] of "tp"
MeshLayouts withoutIdleAxes(const Mesh &mesh, const std::vector<const Layout *> &layouts);

/// Elements that a device receives from others and sends to others in a redistribution whose
/// pieces have one source each (an exchange). Positions are of the target and the source mesh.
struct ExchangeTraffic {
  std::vector<int64_t> received; ///< elements by position of the target mesh
  std::vector<int64_t> sent;     ///< elements by position of the source mesh
  std::vector<int64_t> messages; ///< point-to-point sends by position of the source mesh
  int64_t busiest() const;       ///< max over devices of max(sent, received)
  int64_t busiestMessages() const;
};
ExchangeTraffic exchangeTraffic(const Mesh &sourceMesh, const Mesh &targetMesh,
                                const Redistribution &move);

/// Max over devices of the destination elements that it does not hold: a lower bound on the
/// elements that any plan receives.
/// Contributions of a partial source count as missing.
int64_t receiveBound(const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
                     const Layout &target);

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_REDISTRIBUTION_H
