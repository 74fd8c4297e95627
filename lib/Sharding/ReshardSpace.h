//===- ReshardSpace.h - Shortest paths to many placements -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reshard graph (ReshardGraph.h) over groups of mesh axes, on which ReshardTable
// computes paths from a source to all targets. A group is an axis of its own mesh and a
// placement is a number, so that moves and their costs are computed once for all
// searches.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_RESHARDSPACE_H
#define TESSERA_LIB_SHARDING_RESHARDSPACE_H

#include "ReshardGraph.h"

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

namespace tessera::sharding {

/// A dimension, and the number of parts into which it is cut in all placements.
struct PartDim {
  int64_t extent = 1;
  int64_t parts = 1;
  friend auto operator<=>(const PartDim &, const PartDim &) = default;
};

/// All placements of tensors of one shape over groups of axes, computed on demand.
class ReshardSpace {
public:
  /// A placement, one byte per group: whole, partial, or the place in a dimension.
  using Code = uint64_t;
  static constexpr int8_t kMostGroups = 8;
  static constexpr uint8_t kIsWhole = 0, kIsPartial = 1;
  static uint8_t codeOf(size_t dim, size_t position) {
    return static_cast<uint8_t>(kIsCut + dim * kMostGroups + position);
  }

  /// `mesh` and `links` must outlive this. A group's axes are in order, the major first.
  ReshardSpace(const Mesh &mesh, const LinkModel &links, const std::vector<PartDim> &dims,
               int64_t bytesPerElement, std::vector<AxisList> groups);

  /// Seconds of the fastest chain found. If that takes long, or if `isApproximate`, of a chain that
  /// always works: partials are reduced, then everything is gathered and cut again.
  double seconds(Code source, Code target, bool isApproximate);

private:
  static constexpr uint8_t kIsCut = 2;
  struct Step {
    int32_t target;
    double seconds;
  };
  /// Ties go to the smaller code, so that a result does not depend on previous queries.
  using Entry = std::tuple<double, Code, int32_t>;
  /// A run of Dijkstra's algorithm, resumed for the next target.
  struct Run {
    std::vector<double> distance; ///< by state
    std::vector<char> isSettled;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    size_t numSettled = 0;
  };

  double shortest(Code source, Code target);
  double directSeconds(Code source);
  Code encode(const TensorSharding &state) const;
  TensorSharding decode(Code code) const;
  int32_t numberOf(Code code);
  bool fits(const TensorSharding &state) const; ///< no part is empty
  double secondsOf(const Move &move) const;
  const std::vector<Step> &stepsFrom(int32_t from);

  const Mesh &mesh;
  const LinkModel &links;
  std::vector<AxisList> groups;  ///< axes of `mesh`
  Mesh groupMesh;                ///< one axis per group, then those that stay
  std::vector<AxisList> staying; ///< by dimension, axes of `groupMesh`
  std::vector<int64_t> shape;
  ReshardGraph graph; ///< over `groupMesh`
  ReshardWalk walk;
  std::vector<Code> codes;
  std::unordered_map<Code, int32_t> numbers;
  std::vector<std::vector<Step>> steps; ///< by state
  std::vector<char> hasSteps;
  std::unordered_map<int32_t, Run> runs;   ///< by source
  std::unordered_map<Code, double> direct; ///< by source
};

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_RESHARDSPACE_H
