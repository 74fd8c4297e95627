//===- ReshardTable.h - The times of all reshards of a tensor ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search needs the times between all pairs of shardings of a tensor: tens of
// thousands of reshards, of which a program later uses a few. The table runs the
// planner's shortest path with placements as states: one run of Dijkstra's algorithm
// per source yields all targets, computed on demand. Moves and
// their prices are those of the planner (lib/Sharding/ReshardGraph.h), but for three
// that need a target or the boxes of all pairs of devices: permutations, exchanges where
// parts divide, and gathers of several dimensions at once. So where sizes divide, a time
// is that of the best chain of the others. Where they do not, moves between parts that
// do not end at common boundaries are exchanges.
//
// The number of placements grows with the factorial of the mesh axes, so a reshard is
// made small first, and equal ones are one:
//
//   [a, b] [c] -> [a] [c, b]    what both begin with stays: the shape is that of a part
//   [a, b] []  -> [] [a, b]     axes that stay beside each other are one
//   [a] -> [] and [c] -> []     the same, where links and sizes of a and c are
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
  /// `planner` answers for what this does not know: parts of axes, windows that become others.
  /// `mesh`, `planner` and `links` outlive it.
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner, const LinkModel &links);
  ReshardTable(const Mesh &mesh, std::vector<int64_t> shape, int64_t bytesPerElement,
               ReshardPlanner &planner)
      : ReshardTable(mesh, std::move(shape), bytesPerElement, planner, planner.linksOf(mesh)) {}
  ReshardTable(const ReshardTable &) = delete; ///< its parts refer to it
  ReshardTable &operator=(const ReshardTable &) = delete;
  ~ReshardTable();

  /// Seconds from `source` to `target`, both closed and canonical. Hurried, what is not known is
  /// priced by one chain that always works (what changes is reduced, gathered and cut again), which
  /// takes no time to find.
  double seconds(const TensorSharding &source, const TensorSharding &target,
                 bool isHurried = false);
  /// From each source to each target, row-major. What was asked for before is looked up.
  std::vector<double> seconds(const std::vector<TensorSharding> &sources,
                              const std::vector<TensorSharding> &targets, bool isHurried = false);

private:
  static constexpr size_t kMostAxes = 16, kMostDims = 31;
  using ByAxis = std::array<int8_t, kMostAxes>;

  /// Where each mesh axis is: a dimension and the place among its axes, whole or partial.
  struct AxisPlaces {
    static constexpr int8_t whole = -2, partial = -1;
    ByAxis dim, at;
  };
  /// A reshard made small.
  struct Small {
    int8_t numGroups = 0;
    ByAxis groupOf, staysIn; ///< by axis: its group, or the dimension in which it stays, or -1
    ByAxis order, first;     ///< axes as the groups have them; by group its first axis
    uint64_t source, target; ///< see ReshardSpace
  };

  double price(const TensorSharding &source, const TensorSharding &target, bool isHurried);
  double windowSeconds(const TensorSharding &source, const TensorSharding &target, bool isHurried);
  double haloSeconds(const TensorSharding &shard, const TensorSharding &target);
  double plainSeconds(const TensorSharding &source, const AxisPlaces &a, const AxisPlaces &b,
                      bool isHurried);
  double gatherSeconds(const TensorSharding &source) const;
  bool readAxisPlaces(const TensorSharding &sharding, AxisPlaces &places) const;
  Small makeSmall(const AxisPlaces &source, const AxisPlaces &target) const;
  std::pair<std::vector<PartDim>, std::vector<AxisList>> partsOf(const Small &small) const;

  const Mesh &mesh;
  std::vector<int64_t> shape;
  int64_t bytesPerElement;
  ReshardPlanner &planner;
  const LinkModel &links;
  std::vector<int64_t> classOf; ///< by axis: equal ones have equal sizes and links
  bool isEven;                  ///< all parts of all dimensions are equal, however they are cut
  /// By shape and the classes of the groups.
  std::map<std::vector<int64_t>, std::unique_ptr<ReshardSpace>> spaces;
  std::map<std::pair<ByAxis, ByAxis>, ReshardSpace *> bySignature;
  std::mutex mutex;
  std::map<TensorSharding, double> halos; ///< what windows have beyond their shards
  std::map<TensorSharding, size_t> numbers;
  using Rows = std::vector<std::vector<double>>;
  Rows known, hurried; ///< by source and target; NaN: not asked for yet
};

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_RESHARDTABLE_H
