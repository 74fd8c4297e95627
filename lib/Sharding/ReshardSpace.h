//===- ReshardSpace.h - Shortest paths to many placements -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reshard graph (ReshardGraph.h) over groups of mesh axes, as ReshardTable walks it:
// from a source to all targets. A group is an axis of a mesh of its own, and a
// placement a number, so that moves and their prices are found once for all walks.
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

/// A dimension, and in how many parts it stays cut whatever is done.
struct PartDim {
  int64_t extent = 1;
  int64_t parts = 1;
  friend auto operator<=>(const PartDim &, const PartDim &) = default;
};

/// All placements of tensors of one shape over groups of axes, found as they are needed.
class ReshardSpace {
public:
  /// A placement, a byte a group: whole, partial, or the place in a dimension.
  using Code = uint64_t;
  static constexpr int8_t kMostGroups = 8;
  static constexpr uint8_t kIsWhole = 0, kIsPartial = 1;
  static uint8_t codeOf(size_t dim, size_t position) {
    return static_cast<uint8_t>(kIsCut + dim * kMostGroups + position);
  }

  /// `mesh` and `links` outlive this. A group's axes are in their order, the major first.
  ReshardSpace(const Mesh &mesh, const LinkModel &links, const std::vector<PartDim> &dims,
               int64_t bytesPerElement, std::vector<AxisList> groups);

  /// Seconds of the fastest chain that is found; of one that always works (what is partial is
  /// reduced, all is gathered and cut again) where that takes long, or at once where hurried.
  double seconds(Code source, Code target, bool isHurried);

private:
  static constexpr uint8_t kIsCut = 2;
  struct Step {
    int32_t target;
    double seconds;
  };
  /// Of equally far states the one of the smaller code comes first, so that a run does not depend
  /// on what was asked for before it.
  using Entry = std::tuple<double, Code, int32_t>;
  /// A run of Dijkstra's algorithm, which goes on when the next target is asked for.
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
  bool fits(const TensorSharding &state) const; ///< every part has an index
  double secondsOf(const Move &move) const;
  const std::vector<Step> &stepsFrom(int32_t from);

  const Mesh &mesh;
  const LinkModel &links;
  std::vector<AxisList> groups;  ///< axes of `mesh`
  Mesh groupMesh;                ///< an axis a group, then those that stay
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
