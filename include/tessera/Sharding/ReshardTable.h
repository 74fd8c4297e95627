//===- ReshardTable.h - Times of all reshards of a tensor -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search needs the times between all pairs of shardings of a tensor: tens of
// thousands of reshards, of which a program later uses a few. The table runs the
// planner's shortest path with placements as states: one run of Dijkstra's algorithm
// per source yields all targets, computed on demand. Moves and their costs are those of
// the planner (lib/Sharding/ReshardGraph.h), except three that need a target or the
// boxes of all pairs of devices: permutations, exchanges where parts divide, and
// gathers of several dimensions at once. Where sizes divide, a time is thus that of the
// best chain of the other moves. Elsewhere, moves between parts without common
// boundaries are exchanges.
//
// The number of placements grows with the factorial of the mesh axes, so a reshard is
// reduced to a smaller one first, and equal ones share an entry:
//
//   [a, b] [c] -> [a] [c, b]    a common prefix is dropped: the shape is that of a part
//   [a, b] []  -> [] [a, b]     axes that stay neighbors are merged
//   [a] -> [] and [c] -> []     equal if links and sizes of a and c are
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_RESHARDTABLE_H
#define TESSERA_SHARDING_RESHARDTABLE_H

#include "tessera/Sharding/ReshardPlanner.h"

#include <array>
#include <map>
#include <memory>

namespace tessera::sharding {

class ReshardSpace;
struct PartDim;

/// The times of the reshards of tensors of one shape on one mesh. Threads may share it.
class ReshardTable {
public:
  /// `planner` handles cases outside of the table: parts of axes, changes of windows. `mesh`,
  /// `planner` and `links` must outlive this.
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner, const LinkModel &links);
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner)
      : ReshardTable(mesh, std::move(shape), bytesPerElement, planner, planner.linksOf(mesh)) {}
  ReshardTable(const ReshardTable &) = delete; ///< its parts refer to it
  ReshardTable &operator=(const ReshardTable &) = delete;
  ~ReshardTable();

  /// Seconds from `source` to `target`, both closed and canonical. If `isApproximate`, unknown
  /// times are replaced by the time of one generic chain (reduce, gather and cut again every
  /// changed dimension), which needs no search.
  double seconds(const TensorSharding &source, const TensorSharding &target,
                 bool isApproximate = false);
  /// From each source to each target, row-major. Results are cached.
  std::vector<double> seconds(const std::vector<TensorSharding> &sources,
                              const std::vector<TensorSharding> &targets,
                              bool isApproximate = false);

private:
  static constexpr size_t kMostAxes = 16, kMostDims = 31;
  using ByAxis = std::array<int8_t, kMostAxes>;

  /// The position of each mesh axis: a dimension and the index among its axes, whole or partial.
  struct AxisPlaces {
    static constexpr int8_t whole = -2, partial = -1;
    ByAxis dim, at;
  };
  /// A reduced reshard.
  struct ReducedReshard {
    int8_t numGroups = 0;
    ByAxis groupOf, staysIn; ///< by axis: its group, or the dimension in which it stays, or -1
    ByAxis order, first;     ///< axes in the order of the groups; by group its first axis
    uint64_t source, target; ///< see ReshardSpace
  };

  double price(const TensorSharding &source, const TensorSharding &target, bool isApproximate);
  double windowSeconds(const TensorSharding &source, const TensorSharding &target,
                       bool isApproximate);
  std::vector<int64_t> withinParts(TensorSharding &source, TensorSharding &target) const;
  double haloSeconds(const TensorSharding &shard, const TensorSharding &target);
  double plainSeconds(const TensorSharding &source, const AxisPlaces &a, const AxisPlaces &b,
                      bool isApproximate);
  double gatherSeconds(const TensorSharding &source) const;
  bool readAxisPlaces(const TensorSharding &sharding, AxisPlaces &places) const;
  ReducedReshard reduceReshard(const AxisPlaces &source, const AxisPlaces &target) const;
  std::pair<std::vector<PartDim>, std::vector<AxisList>>
  partsOf(const ReducedReshard &reduced) const;

  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  ReshardPlanner &planner;
  const LinkModel &links;
  std::vector<int64_t> classOf; ///< by axis: equal classes have equal sizes and links
  bool isEven;                  ///< all parts of all dimensions are equal under every cut
  /// By shape and the classes of the groups.
  std::map<std::vector<int64_t>, std::unique_ptr<ReshardSpace>> spaces;
  std::map<std::pair<ByAxis, ByAxis>, ReshardSpace *> bySignature;
  std::mutex mutex;
  std::map<TensorSharding, double> halos; ///< times of halos of windows
  std::map<TensorSharding, size_t> numbers;
  using Rows = std::vector<std::vector<double>>;
  Rows known, approximateRows; ///< by source and target; NaN: unknown
};

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDTABLE_H
